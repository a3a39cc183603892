#include "tests/provider/several_fabrics.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace esdp::provider {
namespace {

ESDP_ON_BOTH_TRANSPORTS(SeveralFabricsTest);

TEST_P(SeveralFabricsTest, WhatTheDeviceDoesNotReachIsReachedUnderTheSameName) {
  const ConnectionId id = Connect(ListenThere());
  RunAWhile();
  EXPECT_TRUE(here_.recorder.connected().empty());
  Manager(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
  ASSERT_TRUE(RunUntil([&] { return !here_.recorder.connected().empty(); }));
  EXPECT_EQ(here_.recorder.connected(), std::vector{id});
  EXPECT_EQ(here_.recorder.fabrics(), std::vector<uint8_t>{1});
  EXPECT_TRUE(here_.recorder.closed().empty());
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("now over qpip"), std::string::npos) << log_[0];

  Memory memory(here_, 100'000);
  EXPECT_GT(system_.regions, 0);  // with every fabric
  memory.Fill(1);
  Job job(memory, true, 0, 100'000);
  Submit(here_, id, job);
  Memory sink(there_, 100'000);
  Job receive(sink, false, 0, 100'000);
  receive.transfer.wait_all = true;
  ASSERT_TRUE(RunUntil([&] { return !there_.recorder.incoming().empty(); }));
  Submit(there_, there_.recorder.incoming()[0], receive);
  ASSERT_TRUE(RunUntil([&] { return there_.recorder.Find(receive.transfer).has_value(); }));
  EXPECT_EQ(sink.bytes(), memory.bytes());
  ASSERT_TRUE(RunUntil([&] { return here_.recorder.Find(job.transfer).has_value(); }));
  EXPECT_TRUE(here_.shard->Deregister(memory.region()).ok());
  EXPECT_EQ(system_.regions, 0);  // nor is anything left of the attempt
}

TEST_P(SeveralFabricsTest, ReadinessThatIsWatchedIsToldOverWhicheverFabricComes) {
  const ConnectionId id = Connect(ListenThere());
  Submit(here_, id, Request::Kind::kReadiness);
  RunAWhile();
  EXPECT_EQ(here_.recorder.readiness(id), Readiness{});
  Manager(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
  const Readiness writable{.writable = true};
  EXPECT_TRUE(RunUntil([&] { return here_.recorder.readiness(id) == writable; }));
}

TEST_P(SeveralFabricsTest, ADeviceWhosePeerDoesNotAnswerIsGivenUpInTime) {
  const ConnectionId id = Connect(ListenThere());
  Manager(RDMA_CM_EVENT_ADDR_RESOLVED);
  Manager(RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(system_.Count("connect"), 1u);
  clock_.Pass(std::chrono::milliseconds(2900));
  RunAWhile();
  EXPECT_TRUE(here_.recorder.connected().empty());
  clock_.Pass(std::chrono::milliseconds(200));
  ASSERT_TRUE(RunUntil([&] { return !here_.recorder.connected().empty(); }));
  EXPECT_EQ(here_.recorder.connected(), std::vector{id});
  EXPECT_EQ(here_.recorder.fabrics(), std::vector<uint8_t>{1});
}

TEST_P(SeveralFabricsTest, TheLastFailureTellsAllAttempts) {
  const uint16_t port = [this] {  // of nobody
    const auto listener = *there_.shard->Listen(Loopback(0), 1, {});
    const uint16_t taken = there_.shard->ListenerAddress(listener)->port;
    EXPECT_TRUE(there_.shard->StopListening(listener).ok());
    return taken;
  }();
  (void)Connect(port);
  Manager(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
  ASSERT_TRUE(RunUntil([&] { return !here_.recorder.closed().empty(); }));
  const Failure failure = here_.recorder.closed()[0].failure;
  EXPECT_EQ(failure.ending, EndReason::kRefused);
  EXPECT_NE(failure.text.find("nobody listens there"), std::string::npos) << failure.text;
  EXPECT_NE(failure.text.find("over verbs: "), std::string::npos) << failure.text;
  EXPECT_NE(failure.text.find("no route leads there"), std::string::npos) << failure.text;
}

TEST_P(SeveralFabricsTest, AProgramThatWouldNotHaveUsIsNotAskedAgain) {
  (void)Connect(ListenThere());
  Manager(RDMA_CM_EVENT_ADDR_RESOLVED);
  Manager(RDMA_CM_EVENT_ROUTE_RESOLVED);
  constexpr int kByConsumer = 28;
  Manager(RDMA_CM_EVENT_REJECTED, IsIwarp() ? -ECONNRESET : kByConsumer);
  ASSERT_TRUE(RunUntil([&] { return !here_.recorder.closed().empty(); }));
  EXPECT_EQ(here_.recorder.closed()[0].failure.ending, EndReason::kRejected);
  EXPECT_TRUE(there_.recorder.incoming().empty());
}

TEST_P(SeveralFabricsTest, AnAttemptThatIsAbortedIsNotMadeAgain) {
  const ConnectionId id = Connect(ListenThere());
  Submit(here_, id, Request::Kind::kAbort);
  ASSERT_TRUE(RunUntil([&] { return !here_.recorder.closed().empty(); }));
  RunAWhile();
  EXPECT_TRUE(here_.recorder.connected().empty());
  EXPECT_TRUE(there_.recorder.incoming().empty());
}

TEST_P(SeveralFabricsTest, AListenerHasOnePortOnAllOrOneOfThoseThatShareTheirPorts) {
  const ListenerId listener = *here_.shard->Listen(Loopback(0), 4, {});
  EXPECT_EQ(here_.shard->FabricOf(listener), 0);
  ASSERT_EQ(system_.listens.size(), 1u);
  const uint16_t port = here_.shard->ListenerAddress(listener)->port;
  EXPECT_EQ(system_.listens[0], port);
  if (IsIwarp()) return;  // nobody but the device listens
  (void)there_.shard->Connect({}, Loopback(port), {}, kTimeInfinite);
  ASSERT_TRUE(RunUntil([&] { return !here_.recorder.incoming().empty(); }));
  EXPECT_EQ(here_.recorder.fabrics(), std::vector<uint8_t>{1});
  EXPECT_TRUE(here_.shard->StopListening(listener).ok());
  EXPECT_EQ(system_.Count("destroy_id"), 1u);
}

TEST_P(SeveralFabricsTest, APortThatTheDeviceHasGivenAwayIsChangedOnlyIfAnyWillDo) {
  system_.listen_errors = 3;
  const auto any = here_.shard->Listen(Loopback(0), 4, {});
  ASSERT_TRUE(any.ok()) << any.status();
  EXPECT_EQ(system_.listens.size(), 4u);
  const uint16_t port = here_.shard->ListenerAddress(*any)->port;
  ASSERT_TRUE(here_.shard->StopListening(*any).ok());

  system_.listen_errors = 1;
  EXPECT_TRUE(absl::IsAlreadyExists(here_.shard->Listen(Loopback(port), 4, {}).status()));
  EXPECT_TRUE(here_.shard->Listen(Loopback(port), 4, {}).ok());  // nothing was left behind
}

TEST_P(SeveralFabricsTest, AnAddressThatIsNotTheDevicesIsListenedOnWithoutIt) {
  system_.bind_error = ENODEV;
  const auto listener = here_.shard->Listen(Loopback(0), 4, {});
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_EQ(here_.shard->FabricOf(*listener), 1);
  EXPECT_TRUE(system_.listens.empty());
}

class TwoDevicesTest : public SeveralFabricsTest {
 protected:
  TwoDevicesTest() : SeveralFabricsTest({.two_devices = true}) {}
};
ESDP_ON_BOTH_TRANSPORTS(TwoDevicesTest);

TEST_P(TwoDevicesTest, TheDeviceThatLeadsToThePeerIsTaken) {
  (void)Connect(ListenThere());
  system_.ids.back()->verbs = &system_.other_context;
  Manager(RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(system_.ids.size(), 2u) << "the first gives up, and the second is asked";
  system_.ids.back()->verbs = &system_.other_context;
  Manager(RDMA_CM_EVENT_ADDR_RESOLVED);
  Manager(RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(system_.Count("connect"), 1u);
  EXPECT_TRUE(there_.recorder.incoming().empty()) << "qpip was not asked";
}

TEST_P(TwoDevicesTest, WhereNoDeviceLeadsQpipDoes) {
  (void)Connect(ListenThere());
  Manager(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
  Manager(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
  ASSERT_TRUE(RunUntil([&] { return !here_.recorder.connected().empty(); }));
  EXPECT_EQ(here_.recorder.fabrics(), std::vector<uint8_t>{2});
}

// The connection manager has one listener for an address and a port, whatever device asks.
TEST_P(TwoDevicesTest, AnAddressIsListenedOnByItsDeviceAlone) {
  const auto of_first = here_.shard->Listen(Loopback(0), 4, {});
  ASSERT_TRUE(of_first.ok()) << of_first.status();
  EXPECT_EQ(here_.shard->FabricOf(*of_first), 0);
  EXPECT_EQ(system_.ids.size(), 1u);
  system_.bound_to = &system_.other_context;
  const auto of_second = here_.shard->Listen(Loopback(0), 4, {});
  ASSERT_TRUE(of_second.ok()) << of_second.status();
  EXPECT_EQ(here_.shard->FabricOf(*of_second), 1);
  EXPECT_EQ(system_.listens.size(), 2u);
}

TEST_P(TwoDevicesTest, MemoryIsRegisteredWithBoth) {
  const int before = system_.regions;
  Memory memory(here_, 1000);
  EXPECT_EQ(system_.regions, before + 2);
}

}  // namespace
}  // namespace esdp::provider
