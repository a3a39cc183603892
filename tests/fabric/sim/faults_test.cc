// What goes wrong in a simulated world: each kind alone, always or at a chance that matters.

#include "impl/fabric/sim/faults.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "impl/base/time.h"
#include "impl/fabric/port.h"
#include "impl/fabric/sim/sim_fabric.h"
#include "impl/fabric/sim/world.h"

namespace esdp::fabric::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kAlways = Faults::kAlways;
constexpr size_t kBytes = 4096;
constexpr Access kAll{.local_write = true, .remote_read = true, .remote_write = true};

// Two fabrics, memory on each, and whatever was polled from them.
class FaultsTest : public ::testing::Test {
 protected:
  struct Side {
    std::unique_ptr<Fabric> fabric;
    std::vector<std::byte> bytes = std::vector<std::byte>(kBytes);
    RegionId region = RegionId::kNone;
    std::vector<Completion> completions;
    std::vector<RendezvousEvent> events;
    std::map<QueuePairId, Time> established;

    // Events first, and again after the last completions, behind which an end is told.
    void Collect() {
      std::array<Completion, 16> some;
      CollectEvents();
      while (const size_t count = fabric->Poll(absl::MakeSpan(some))) {
        completions.insert(completions.end(), some.begin(), some.begin() + count);
        CollectEvents();
      }
    }
    void CollectEvents() {
      RendezvousEvent event;
      while (fabric->PollRendezvous(event)) {
        events.push_back(event);
        if (event.type != RendezvousType::kEstablished) continue;
        established[event.queue_pair] = fabric->Now();
      }
    }
    size_t Count(RendezvousType type) const {
      return static_cast<size_t>(std::count_if(
          events.begin(), events.end(), [&](const auto& event) { return event.type == type; }));
    }
    const RendezvousEvent& Last(RendezvousType type) const {
      return *std::find_if(events.rbegin(), events.rend(),
                           [&](const auto& event) { return event.type == type; });
    }
  };
  struct Link {
    QueuePairId one = QueuePairId::kNone;
    QueuePairId two = QueuePairId::kNone;
  };

  void Open(const Faults& faults, bool infiniband = false, uint64_t seed = 7) {
    world_ = *MakeWorld({.seed = seed, .faults = faults});
    Limits limits = DefaultSimLimits();
    limits.initiator_speaks_first = !infiniband;
    for (Side* side : {&one_, &two_}) {
      side->fabric = *MakeSimFabric(world_, limits);
      side->fabric->SetDoorbell([side] { side->Collect(); });
    }
  }
  void RegisterAll() {
    for (Side* side : {&one_, &two_}) {
      side->region = *side->fabric->Register(side->bytes.data(), kBytes, kAll);
    }
  }
  // Each queue pair of side two has `receives` receives of 64 bytes.
  Link Connect(size_t receives = 8, Duration keep_alive = {}) {
    const QueuePairOptions options{.keep_alive_idle = keep_alive};
    const ListenerId listener = *two_.fabric->Listen({}, 8);
    Link link{*one_.fabric->CreateQueuePair(options), *two_.fabric->CreateQueuePair(options)};
    const ScatterEntry entry{two_.region, two_.bytes.data(), 64};
    const std::vector<ReceiveWork> works(receives, ReceiveWork{0, &entry, 1});
    EXPECT_TRUE(two_.fabric->PostReceive(link.two, works).ok());
    const Address address = *two_.fabric->ListenerAddress(listener);
    EXPECT_TRUE(one_.fabric->Connect(link.one, {}, address, {}, kTimeInfinite).ok());
    const size_t before = two_.Count(RendezvousType::kConnectRequest);
    EXPECT_TRUE(Run([&] { return two_.Count(RendezvousType::kConnectRequest) > before; }));
    const RequestId request = two_.Last(RendezvousType::kConnectRequest).request;
    EXPECT_TRUE(two_.fabric->Accept(request, link.two, {}).ok());
    EXPECT_TRUE(Run([&] { return one_.established.contains(link.one); }));
    return link;
  }
  void Send(QueuePairId queue_pair, uint64_t id = 0) {
    const ScatterEntry entry{one_.region, one_.bytes.data(), 8};
    const SendWork work{.work_id = id, .entries = &entry, .entry_count = 1, .remote = {}};
    EXPECT_TRUE(one_.fabric->PostSend(queue_pair, {&work, 1}).ok());
  }
  bool Run(const std::function<bool()>& done) {
    return world_->RunUntil(done, world_->Now() + seconds(200));
  }
  size_t Received() const { return two_.completions.size(); }
  uint64_t Count(FaultKind kind) const { return world_->fault_counts()[static_cast<size_t>(kind)]; }

  std::shared_ptr<World> world_;
  Side one_;
  Side two_;
};

TEST_F(FaultsTest, WithoutFaultsNothingGoesWrong) {
  Open({});
  RegisterAll();
  const Link link = Connect();
  Send(link.one);
  ASSERT_TRUE(Run([&] { return Received() == 1; }));
  EXPECT_EQ(world_->fault_counts(), FaultCounts{});
}

TEST_F(FaultsTest, DelaysLetQueuePairsOvertakeEachOtherAndNeverThemselves) {
  Open({.delay = kAlways / 2});
  RegisterAll();
  const std::array links{Connect(), Connect()};
  std::set<std::vector<QueuePairId>> orders;
  for (int round = 0; round < 8; ++round) {
    two_.completions.clear();
    const ScatterEntry entry{two_.region, two_.bytes.data(), 64};
    for (const Link& link : links) {
      for (uint64_t i = 0; i < 3; ++i) Send(link.one);
    }
    ASSERT_TRUE(Run([&] { return Received() == 6; }));
    std::vector<QueuePairId> order;
    for (const Completion& completion : two_.completions) {
      order.push_back(completion.queue_pair);
      const ReceiveWork work{completion.work_id + 1, &entry, 1};
      ASSERT_TRUE(two_.fabric->PostReceive(completion.queue_pair, {&work, 1}).ok());
    }
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 3u) << "always the same order";
  EXPECT_GT(Count(FaultKind::kDelay), 20u);
}

TEST_F(FaultsTest, DelayedMessagesOfOneQueuePairStayInOrder) {
  Open({.delay = kAlways / 2});
  RegisterAll();
  const Link link = Connect(0);
  for (uint64_t i = 0; i < 20; ++i) {
    const ScatterEntry entry{two_.region, two_.bytes.data() + 64 * i, 64};
    const ReceiveWork work{i, &entry, 1};
    ASSERT_TRUE(two_.fabric->PostReceive(link.two, {&work, 1}).ok());
  }
  for (uint64_t i = 0; i < 20; ++i) {
    const ScatterEntry entry{one_.region, one_.bytes.data(), static_cast<uint32_t>(i + 1)};
    const SendWork work{.entries = &entry, .entry_count = 1, .remote = {}};
    ASSERT_TRUE(one_.fabric->PostSend(link.one, {&work, 1}).ok());
  }
  ASSERT_TRUE(Run([&] { return Received() == 20; }));
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(two_.completions[i].byte_length, i + 1);
}

TEST_F(FaultsTest, DataThatOvertakesTheLateNewsOfAConnectionBringsIt) {
  Open({.late_news = kAlways, .news_delay_max = seconds(100)});
  RegisterAll();
  const Link link = Connect();
  world_->RunUntil([] { return false; }, world_->Now() + milliseconds(1));
  EXPECT_FALSE(two_.established.contains(link.two)) << "the news was not late";
  Send(link.one);
  ASSERT_TRUE(world_->RunUntil([&] { return Received() == 1; }, world_->Now() + milliseconds(1)));
  EXPECT_TRUE(two_.established.contains(link.two));
}

TEST_F(FaultsTest, LateNewsOfAnEndComesAfterAll) {
  Open({});
  RegisterAll();
  const Link link = Connect();
  ASSERT_TRUE(Run([&] { return two_.established.contains(link.two); }));
  world_->SetFaults({.late_news = kAlways});
  const Time begin = world_->Now();
  ASSERT_TRUE(one_.fabric->Disconnect(link.one, false).ok());
  ASSERT_TRUE(Run([&] { return two_.Count(RendezvousType::kDisconnected) == 1; }));
  EXPECT_EQ(two_.Last(RendezvousType::kDisconnected).cause, Cause::kPeerReset);
  EXPECT_GT(world_->Now() - begin, milliseconds(1));
  EXPECT_LT(world_->Now() - begin, Faults{}.news_delay_max + milliseconds(1));
}

TEST_F(FaultsTest, AReceiverThatIsNotReadyGetsEveryMessageLaterInOrder) {
  Open({.not_ready = kAlways / 2}, true);
  RegisterAll();
  const Link link = Connect();
  for (uint64_t i = 0; i < 8; ++i) Send(link.one, i);
  ASSERT_TRUE(Run([&] { return Received() == 8 && one_.completions.size() == 8; }));
  for (uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(one_.completions[i].work_id, i);
    EXPECT_EQ(one_.completions[i].status, WorkStatus::kSuccess);
    EXPECT_EQ(two_.completions[i].status, WorkStatus::kSuccess);
  }
  EXPECT_GT(Count(FaultKind::kNotReady), 0u);
}

TEST_F(FaultsTest, ASleepingFabricIsPolledLaterAndLosesNothing) {
  Open({});
  RegisterAll();
  const Link link = Connect();
  world_->SetFaults({.sleep = kAlways / 2, .sleep_max = milliseconds(10)});
  const Time begin = world_->Now();
  for (uint64_t i = 0; i < 8; ++i) Send(link.one);
  ASSERT_TRUE(Run([&] { return Received() == 8; }));
  EXPECT_GT(Count(FaultKind::kSleep), 0u);
  EXPECT_GT(world_->Now() - begin, milliseconds(1)) << "nobody slept";
}

TEST_F(FaultsTest, WhatADeviceHasTooLittleOfIsRefused) {
  Open({});
  RegisterAll();
  const Link link = Connect();
  Fabric& fabric = *one_.fabric;
  const auto bind = [&] { return fabric.Bind(link.one, one_.region, one_.bytes.data(), 1, kAll); };

  world_->SetFaults({.no_region = kAlways, .no_window = kAlways, .no_queue_pair = kAlways});
  const Inventory before = world_->Count();
  std::byte more{};
  EXPECT_EQ(fabric.Register(&more, 1, kAll).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(bind().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(fabric.CreateQueuePair({}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(world_->Count(), before);
  EXPECT_EQ(Count(FaultKind::kNoRegion), 1u);
  EXPECT_EQ(Count(FaultKind::kNoWindow), 1u);
  EXPECT_EQ(Count(FaultKind::kNoQueuePair), 1u);

  world_->SetFaults({});
  EXPECT_TRUE(fabric.Register(&more, 1, kAll).ok());
  EXPECT_TRUE(bind().ok());
  EXPECT_TRUE(fabric.CreateQueuePair({}).ok());
}

TEST_F(FaultsTest, MemoryIsRegisteredUpToItsLimitAndAgainWhenItIsGivenBack) {
  Open({.registered_bytes_max = 100});
  Fabric& fabric = *one_.fabric;
  std::byte* const bytes = one_.bytes.data();
  const absl::StatusOr<RegionId> first = fabric.Register(bytes, 60, kAll);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(two_.fabric->Register(bytes, 60, kAll).ok()) << "each fabric has its own limit";
  EXPECT_EQ(fabric.Register(bytes, 41, kAll).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(fabric.Register(bytes, 40, kAll).ok());
  ASSERT_TRUE(fabric.Deregister(*first).ok());
  EXPECT_TRUE(fabric.Register(bytes, 60, kAll).ok());
  EXPECT_EQ(Count(FaultKind::kMemoryLimit), 1u);
}

TEST_F(FaultsTest, ABrokenConnectionIsToldToBothEnds) {
  Open({.reset = kAlways});
  RegisterAll();
  Connect();
  ASSERT_TRUE(Run([&] {
    return one_.Count(RendezvousType::kDisconnected) + two_.Count(RendezvousType::kDisconnected) ==
           2;
  }));
  for (const Side* side : {&one_, &two_}) {
    EXPECT_EQ(side->Last(RendezvousType::kDisconnected).cause, Cause::kPeerReset);
  }
}

TEST_F(FaultsTest, ASilentPeerIsFoundOutByKeepAliveAndNothingArrivesBefore) {
  Open({.silence = kAlways, .break_within = Duration(0)});
  RegisterAll();
  const Link link = Connect(8, seconds(2));
  const Time begin = world_->Now();
  while (world_->Now() < begin + milliseconds(1)) {
    if (!world_->Step(begin + milliseconds(1))) break;
  }
  Send(link.one);
  ASSERT_TRUE(Run([&] { return one_.Count(RendezvousType::kDisconnected) == 1; }));
  EXPECT_EQ(one_.Last(RendezvousType::kDisconnected).cause, Cause::kPeerSilent);
  EXPECT_GE(world_->Now() - begin, seconds(2));
  EXPECT_LE(world_->Now() - begin, seconds(8) + milliseconds(1));
  EXPECT_TRUE(Run([&] {
    return two_.Count(RendezvousType::kDisconnected) + two_.Count(RendezvousType::kConnectFailed) ==
           1;
  }));
  for (const Completion& completion : two_.completions) {
    EXPECT_EQ(completion.status, WorkStatus::kFlushed);
  }
}

TEST_F(FaultsTest, TheInventoryCountsWhatThereIs) {
  Open({});
  EXPECT_EQ(world_->Count(), Inventory{});
  RegisterAll();
  const Link link = Connect();
  ASSERT_TRUE(one_.fabric->Bind(link.one, one_.region, one_.bytes.data(), 1, kAll).ok());
  EXPECT_EQ(world_->Count(),
            (Inventory{.queue_pairs = 2, .listeners = 1, .regions = 2, .windows = 1}));
  ASSERT_TRUE(one_.fabric->DestroyQueuePair(link.one).ok());
  EXPECT_EQ(world_->Count(),
            (Inventory{.queue_pairs = 1, .listeners = 1, .regions = 2, .windows = 0}));
}

// Sees frames, touches and ends; changes the first byte of what side one sends, if told.
class Watcher : public WireObserver {
 public:
  void OnTransmit(const WireEnd& from, Frame& frame) override {
    if (frame.kind != FrameKind::kSend) return;
    ++sent;
    if (changes && from.connecting) frame.payload[0] = std::byte{0xee};
  }
  void OnArrive(const WireEnd& at, const Frame& frame) override {
    if (frame.kind == FrameKind::kSend && !at.connecting) ++arrived;
  }
  void OnTouch(const WireEnd&, const std::byte* address, uint64_t length, Touch touch) override {
    touches.push_back({address, length, touch});
  }
  void OnEstablished(const WireEnd& at) override { established.insert(at.connection); }
  void OnEnd(const WireEnd& at, Cause) override { ended.insert(at.queue_pair); }

  struct Touched {
    const std::byte* address;
    uint64_t length;
    Touch touch;
  };
  bool changes = false;
  int sent = 0;
  int arrived = 0;
  std::vector<Touched> touches;
  std::set<uint16_t> established;
  std::set<uint64_t> ended;
};

TEST_F(FaultsTest, AnObserverSeesTheWireAndMayPlayAHostilePeer) {
  Watcher watcher;
  Open({});
  world_->SetObserver(&watcher);
  RegisterAll();
  const Link link = Connect();
  EXPECT_EQ(watcher.established.size(), 1u);
  watcher.changes = true;
  Send(link.one);
  ASSERT_TRUE(Run([&] { return Received() == 1; }));
  EXPECT_EQ(watcher.sent, 1);
  EXPECT_EQ(watcher.arrived, 1);
  EXPECT_EQ(two_.bytes[0], std::byte{0xee});

  const ScatterEntry entry{one_.region, one_.bytes.data() + 64, 32};
  const RemoteRange key = *two_.fabric->RegionKey(two_.region);
  const SendWork read{.opcode = Opcode::kRead, .entries = &entry, .entry_count = 1, .remote = key};
  ASSERT_TRUE(one_.fabric->PostSend(link.one, {&read, 1}).ok());
  ASSERT_TRUE(Run([&] { return one_.completions.size() == 2; }));
  ASSERT_EQ(watcher.touches.size(), 2u);
  EXPECT_EQ(watcher.touches[0].address, two_.bytes.data());
  EXPECT_EQ(watcher.touches[0].touch, Touch::kRemoteRead);
  EXPECT_EQ(watcher.touches[1].address, one_.bytes.data() + 64);
  EXPECT_EQ(watcher.touches[1].touch, Touch::kReadTarget);
  EXPECT_EQ(watcher.touches[1].length, 32u);

  ASSERT_TRUE(one_.fabric->Disconnect(link.one, false).ok());
  ASSERT_TRUE(Run([&] { return watcher.ended.size() == 2; }));
  world_->SetObserver(nullptr);
}

TEST_F(FaultsTest, EveryFaultIsInTheHistory) {
  uint64_t digests[2] = {};
  for (const bool noted : {false, true}) {
    Open({});
    if (noted) world_->NoteFault(FaultKind::kHostile, 3);
    digests[noted ? 1 : 0] = world_->history().digest();
    EXPECT_EQ(world_->history().Tail().find("fault") != std::string::npos, noted);
  }
  EXPECT_NE(digests[0], digests[1]);
}

TEST_F(FaultsTest, ANegativeTimeIsRefused) {
  EXPECT_FALSE(MakeWorld({.faults = {.delay_max = Duration(-1)}}).ok());
  EXPECT_FALSE(MakeWorld({.faults = {.break_within = Duration(-1)}}).ok());
}

}  // namespace
}  // namespace esdp::fabric::sim
