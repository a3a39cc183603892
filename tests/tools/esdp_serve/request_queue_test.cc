#include "tools/esdp_serve/request_queue.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace esdp_serve {
namespace {

using esdp_files::ToFrame;
using esdp_files::wire::Request;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string Hello() {
  Request request;
  request.set_id(1);
  request.mutable_hello()->set_version(1);
  return ToFrame(request);
}

std::string Stat(uint64_t id) {
  Request request;
  request.set_id(id);
  request.mutable_stat()->set_name("name");
  return ToFrame(request);
}

std::string Put(uint64_t id) {
  Request request;
  request.set_id(id);
  request.mutable_put()->set_name("name");
  return ToFrame(request);
}

std::string Cancel(uint64_t id) {
  Request request;
  request.set_id(1000);
  request.mutable_cancel()->set_request(id);
  return ToFrame(request);
}

std::string Resync(uint64_t id) {
  Request request;
  request.set_id(id);
  request.mutable_resync();
  return ToFrame(request);
}

std::vector<uint64_t> PopAll(RequestQueue& queue) {
  std::vector<uint64_t> ids;
  for (; !queue.empty(); queue.Pop()) ids.push_back(queue.front().id());
  return ids;
}

TEST(RequestQueueTest, RequestsComeInOrderHoweverTheirBytesDo) {
  RequestQueue queue;
  const std::string stream = Hello() + Stat(2) + Stat(3);
  for (const char byte : stream) queue.Add(Bytes(std::string(1, byte)));
  EXPECT_EQ(PopAll(queue), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(queue.fault(), "");
}

TEST(RequestQueueTest, MoreThanItsNumberWaitAsBytes) {
  RequestQueue queue;
  std::string stream = Hello();
  for (uint64_t id = 2; id <= 40; ++id) stream += Stat(id);
  queue.Add(Bytes(stream));
  EXPECT_FALSE(queue.WantsMore());
  queue.Pop();
  EXPECT_FALSE(queue.WantsMore());
  EXPECT_EQ(PopAll(queue).size(), 39u);
  EXPECT_TRUE(queue.WantsMore());
}

TEST(RequestQueueTest, WhoDoesNotSayHelloFirstIsAtFault) {
  RequestQueue queue;
  queue.Add(Bytes(Stat(1)));
  EXPECT_NE(queue.fault(), "");
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.WantsMore());
}

TEST(RequestQueueTest, WhatIsNoRequestIsAFaultBehindThoseThatAre) {
  for (const std::string& bad : {std::string(4, '\0'), std::string("\xff\xff\xff\xff", 4),
                                 std::string("\0\0\0\2\xff\xff", 6)}) {
    RequestQueue queue;
    queue.Add(Bytes(Hello() + Stat(2) + bad + Stat(3)));
    EXPECT_NE(queue.fault(), "");
    EXPECT_EQ(PopAll(queue), (std::vector<uint64_t>{1, 2}));
  }
}

TEST(RequestQueueTest, ARequestThatNobodyKnowsIsStillOne) {
  RequestQueue queue;
  // Field 100, of which nobody knows, and an id.
  queue.Add(Bytes(Hello() + std::string("\0\0\0\5\x08\x07\xa2\x06\0", 9)));
  ASSERT_EQ(queue.fault(), "");
  queue.Pop();
  EXPECT_EQ(queue.front().id(), 7u);
  EXPECT_EQ(queue.front().what_case(), Request::WHAT_NOT_SET);
}

TEST(RequestQueueTest, NothingIsReadBehindAPutUntilItIsAnswered) {
  RequestQueue queue;
  queue.Add(Bytes(Hello() + Put(2)));
  EXPECT_FALSE(queue.WantsMore());
  queue.Pop();
  EXPECT_FALSE(queue.WantsMore());
  EXPECT_EQ(queue.fault(), "");
  queue.Pop();
  EXPECT_TRUE(queue.WantsMore());
  queue.Add(Bytes(Put(3) + "x"));
  EXPECT_NE(queue.fault(), "");
}

TEST(RequestQueueTest, ACancelMarksWhatItNamesAndNothingElse) {
  RequestQueue queue;
  queue.Add(Bytes(Hello() + Stat(2) + Stat(3) + Cancel(3) + Cancel(99)));
  EXPECT_FALSE(queue.front_is_cancelled());
  queue.Pop();
  EXPECT_FALSE(queue.front_is_cancelled());
  queue.Pop();
  EXPECT_TRUE(queue.front_is_cancelled());
  EXPECT_EQ(PopAll(queue), std::vector<uint64_t>{3});
}

TEST(RequestQueueTest, AfterAFailureNothingCountsBeforeResync) {
  RequestQueue queue;
  std::string stream = Hello();
  for (uint64_t id = 2; id <= 30; ++id) stream += Stat(id);
  queue.Add(Bytes(stream));
  queue.AwaitResync();
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(queue.WantsMore());
  queue.Add(Bytes(Stat(31) + Resync(32) + Stat(33)));
  EXPECT_FALSE(queue.awaits_resync());
  EXPECT_EQ(PopAll(queue), (std::vector<uint64_t>{32, 33}));
}

}  // namespace
}  // namespace esdp_serve
