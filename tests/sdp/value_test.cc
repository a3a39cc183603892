#include <gtest/gtest.h>

#include "tests/sdp/pair.h"
#include "tests/sdp/solo.h"

// The connection as a value: a copy goes its own way, and equal histories give equal digests.

namespace esdp::sdp::testing {
namespace {

// A history that touches every part.
std::vector<Input> History() {
  Solo script(SmallConfig(true));
  std::vector<Input> inputs;
  const auto add = [&](const Input& input) {
    inputs.push_back(input);
    script.Step(input);
  };
  Established established;
  established.hello_ack = script.PeerHelloAck({});
  established.reads_out_max = established.reads_in_max = 2;
  add(AskConnect{});
  add(established);
  AskSend small;
  small.piece = {OperationId{1}, 10, 0};
  add(small);
  AskSend large;
  large.piece = {OperationId{2}, 3000, 0};
  add(large);
  AskReceive receive;
  receive.piece = {OperationId{3}, 20000, 0};
  receive.placeable = true;
  receive.wait_all = true;
  add(receive);
  add(script.Next(wire::Data{}, 100));
  add(SendFinished{});
  add(script.Next(wire::SrcAvail{10000, 7, 0}, 1));
  add(ReadFinished{});
  add(AskShutdown{OperationId{4}});
  add(AskCancel{OperationId{3}, CancelMode::kIfNotStarted, Outcome::kCancelled});
  add(script.Next(wire::DisConn{}));
  add(SendFinished{});
  add(AskClose{OperationId{5}, false});
  add(ConnectionLost{true, false});
  return inputs;
}

TEST(ConnectionValueTest, EqualHistoriesGiveEqualDigestsAndEachStepAnotherOne) {
  Connection one(SmallConfig(true));
  Connection other(SmallConfig(true));
  Actions actions;
  std::vector<uint64_t> seen = {one.digest()};
  for (const Input& input : History()) {
    one.Step(input, Time{}, actions);
    other.Step(input, Time{}, actions);
    EXPECT_EQ(one.digest(), other.digest());
    for (const uint64_t before : seen) EXPECT_NE(one.digest(), before);
    seen.push_back(one.digest());
  }
}

TEST(ConnectionValueTest, WhatTheDeviceAllowsIsPartOfTheState) {
  const auto digest_with = [](uint32_t reads_out, uint32_t reads_in) {
    Solo solo(SmallConfig(true));
    Solo::Peer peer;
    peer.reads_out = reads_out;
    peer.reads_in = reads_in;
    solo.Establish(peer);
    return solo.core().digest();
  };
  EXPECT_EQ(digest_with(4, 4), digest_with(4, 4));
  EXPECT_NE(digest_with(4, 4), digest_with(0, 4)) << "RDMA Reads of ours";
  EXPECT_NE(digest_with(4, 4), digest_with(4, 0)) << "RDMA Reads of the peer's";
}

TEST(ConnectionValueTest, ACopyGoesOnFromTheSamePlaceAndLeavesTheOriginalAlone) {
  const std::vector<Input> history = History();
  Connection original(SmallConfig(true));
  Actions actions;
  for (size_t i = 0; i < history.size(); ++i) {
    Connection copy = original;
    const uint64_t before = original.digest();
    EXPECT_EQ(copy.digest(), before);

    Actions of_copy, of_original;
    copy.Step(history[i], Time{}, of_copy);
    EXPECT_EQ(original.digest(), before);
    original.Step(history[i], Time{}, of_original);

    EXPECT_EQ(copy.digest(), original.digest());
    EXPECT_EQ(of_copy.size(), of_original.size());
  }
}

TEST(ConnectionValueTest, OneThatNeverCarriedDataIsSmall) { EXPECT_LE(sizeof(Connection), 2304u); }

}  // namespace
}  // namespace esdp::sdp::testing
