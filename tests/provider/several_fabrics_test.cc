#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "impl/fabric/qpip/qpip_fabric.h"
#include "impl/provider/shard.h"
#include "tests/fabric/verbs/fake_system.h"
#include "tests/provider/shard_pair.h"

// A shard with an RDMA device that only the test sees, and qpip for what it does not reach.

namespace esdp::provider {
namespace {

using fabric::verbs::FakeSystemTest;

class SeveralFabricsTest : public FakeSystemTest {
 protected:
  SeveralFabricsTest() {
    std::vector<std::unique_ptr<fabric::Fabric>> fabrics;
    fabrics.push_back(std::move(fabric_));
    fabrics.push_back(MakeQpip());
    here_.shard = *Shard::Create(std::move(fabrics), here_.recorder, Manual(&log_));
    there_.shard = *Shard::Create(MakeQpip(), there_.recorder, Manual(nullptr));
  }

  static ShardOptions Manual(std::vector<std::string>* log) {
    ShardOptions options;
    options.progress = Progress::kManual;
    if (log != nullptr) options.log = [log](const std::string& line) { log->push_back(line); };
    return options;
  }
  std::unique_ptr<fabric::Fabric> MakeQpip() {
    fabric::qpip::QpipOptions options;
    options.clock = &clock_;
    return *fabric::qpip::MakeQpipFabric(options);
  }

  template <typename Done>
  bool RunUntil(Done done) {
    for (int i = 0; i < 5000 && !done(); ++i) {
      if (!here_.shard->Poll() && !there_.shard->Poll()) poll(nullptr, 0, 1);
    }
    return done();
  }
  void RunAWhile() {
    for (int i = 0; i < 100; ++i) {
      (void)here_.shard->Poll();
      (void)there_.shard->Poll();
    }
  }

  uint16_t ListenThere() {
    const auto listener = there_.shard->Listen(Loopback(0), 4, {});
    return there_.shard->ListenerAddress(*listener)->port;
  }
  // What the connection manager tells of the last attempt.
  void Manager(rdma_cm_event_type type, int status = 0) {
    rdma_cm_event event{};
    event.event = type;
    event.status = status;
    event.id = system_.ids.back().get();
    system_.events.push_back(event);
    const uint64_t one = 1;
    ASSERT_EQ(write(system_.event_channel.fd, &one, sizeof one), ssize_t{sizeof one});
    RunAWhile();
  }
  ConnectionId Connect(uint16_t port) {
    const auto id =
        here_.shard->Connect({}, Loopback(port), {}, here_.shard->Now() + std::chrono::seconds(60));
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(ConnectionId::kNone);
  }

  std::vector<std::string> log_;
  Side here_;
  Side there_;
};
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
  EXPECT_EQ(failure.ending, Ending::kRefused);
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
  EXPECT_EQ(here_.recorder.closed()[0].failure.ending, Ending::kRejected);
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
  // The device does not really pick one.
  const uint16_t port = IsIwarp() ? 7471 : here_.shard->ListenerAddress(*any)->port;
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

}  // namespace
}  // namespace esdp::provider
