// Processes that are killed wherever they happen to be, and processes of other users.

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>

#include "impl/base/random.h"
#include "tests/fabric/local/raw_end.h"

namespace esdp::fabric::local {
namespace {

constexpr size_t kMessage = 600;

pid_t InChild(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  return child;
}

int ExitOf(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void WaitFor(Fabric& fabric) {
  pollfd descriptor{fabric.fd(), POLLIN, 0};
  poll(&descriptor, 1, 10);
}

std::byte ByteAt(uint64_t message, size_t offset) {
  return static_cast<std::byte>(((message << 10) + offset) * 0x9e3779b97f4a7c15ull >> 56);
}

// Connects, and sends messages and writes without end until it is killed.
int SendWithoutEnd(const Address& to) {
  std::unique_ptr<Fabric> fabric = *MakeLocalFabric();
  std::vector<std::byte> memory(64 * kMessage);
  const RegionId region = *fabric->Register(memory.data(), memory.size(), {});
  const QueuePairId queue_pair = *fabric->CreateQueuePair({});
  (void)fabric->Connect(queue_pair, Address{}, to, {}, kTimeInfinite);
  bool ready = false;
  uint64_t number = 0;
  size_t free = 64;
  while (true) {
    RendezvousEvent event;
    while (fabric->PollRendezvous(event)) {
      if (event.type == RendezvousType::kDisconnected) return 1;
      ready = ready || event.type == RendezvousType::kEstablished;
    }
    for (; ready && free != 0; --free, ++number) {
      std::byte* const at = memory.data() + number % 64 * kMessage;
      const size_t bytes = number % 3 == 0 ? 16 : kMessage;
      for (size_t i = 0; i < bytes; ++i) at[i] = ByteAt(number, i);
      const ScatterEntry entry{region, at, static_cast<uint32_t>(bytes)};
      SendWork work{.entries = &entry, .entry_count = 1, .remote = {}};
      if (!fabric->PostSend(queue_pair, {&work, 1}).ok()) return 2;
    }
    std::array<Completion, 16> completions;
    const size_t done = fabric->Poll(absl::MakeSpan(completions));
    free += done;
    if (done == 0) WaitFor(*fabric);
  }
}

class DeathTest : public ::testing::Test {
 protected:
  DeathTest() : fabric_(*MakeLocalFabric()), memory_(kReceives * kMessage) {
    listener_ = *fabric_->Listen(Loopback(), 8);
    address_ = *fabric_->ListenerAddress(listener_);
    region_ = *fabric_->Register(memory_.data(), memory_.size(), {.local_write = true});
  }

  bool Receive(uint64_t id) {
    const ScatterEntry entry{region_, memory_.data() + id % kReceives * kMessage, kMessage};
    const ReceiveWork receive{id, &entry, 1};
    return fabric_->PostReceive(queue_pair_, {&receive, 1}).ok();
  }

  // Takes one event; false when there was none.
  bool TakeEvent() {
    RendezvousEvent event;
    if (!fabric_->PollRendezvous(event)) return false;
    if (event.type == RendezvousType::kConnectRequest) {
      queue_pair_ = *fabric_->CreateQueuePair({.send_work = 8, .receive_work = kReceives});
      for (uint64_t id = 0; id < kReceives; ++id) EXPECT_TRUE(Receive(id));
      EXPECT_TRUE(fabric_->Accept(event.request, queue_pair_, {}).ok());
    }
    if (event.type == RendezvousType::kDisconnected) cause_ = event.cause;
    return true;
  }

  // What has come, message by message, whole and in order.
  void Take() {
    std::array<Completion, 16> completions;
    const size_t count = fabric_->Poll(absl::MakeSpan(completions));
    for (size_t i = 0; i < count; ++i) {
      ++completed_;
      if (completions[i].status != WorkStatus::kSuccess) continue;
      ASSERT_EQ(completions[i].work_id, received_);
      ASSERT_EQ(completions[i].byte_length, received_ % 3 == 0 ? 16 : kMessage);
      const std::byte* const at = memory_.data() + received_ % kReceives * kMessage;
      for (size_t b = 0; b < completions[i].byte_length; ++b) {
        ASSERT_EQ(at[b], ByteAt(received_, b)) << "message " << received_;
      }
      if (Receive(received_ + kReceives)) ++posted_;
      ++received_;
    }
    while (TakeEvent()) {
    }
    if (count == 0) WaitFor(*fabric_);
  }

  static constexpr uint32_t kReceives = 16;

  std::unique_ptr<Fabric> fabric_;
  std::vector<std::byte> memory_;
  ListenerId listener_ = ListenerId::kNone;
  Address address_;
  RegionId region_ = RegionId::kNone;
  QueuePairId queue_pair_ = QueuePairId::kNone;
  Cause cause_ = Cause::kNone;
  uint64_t received_ = 0;
  uint64_t completed_ = 0;
  uint64_t posted_ = kReceives;
};

TEST_F(DeathTest, WhatAKilledPeerHasSentIsWholeAndInOrder) {
  Random random(3);
  for (int life = 0; life < 30; ++life) {
    cause_ = Cause::kNone;
    received_ = completed_ = 0;
    posted_ = kReceives;
    const pid_t peer = InChild([this] { return SendWithoutEnd(address_); });
    const uint64_t enough = random.Between(0, 300);
    while (received_ < enough) ASSERT_NO_FATAL_FAILURE(Take());
    kill(peer, SIGKILL);
    ExitOf(peer);
    while (cause_ == Cause::kNone && queue_pair_ != QueuePairId::kNone) {
      ASSERT_NO_FATAL_FAILURE(Take());
    }
    if (queue_pair_ == QueuePairId::kNone) continue;  // it came to nothing
    EXPECT_EQ(cause_, Cause::kPeerReset) << ToString(cause_);
    EXPECT_EQ(completed_, posted_) << "every receive has completed";
    EXPECT_TRUE(fabric_->DestroyQueuePair(queue_pair_).ok());
    queue_pair_ = QueuePairId::kNone;
  }
}

TEST_F(DeathTest, AChildThatHasInheritedTheSocketKeepsNobodyAlive) {
  std::array<int, 2> told{};
  ASSERT_EQ(pipe(told.data()), 0);
  const pid_t peer = InChild([&] {
    std::unique_ptr<Fabric> fabric = *MakeLocalFabric();
    const QueuePairId queue_pair = *fabric->CreateQueuePair({});
    (void)fabric->Connect(queue_pair, Address{}, address_, {}, kTimeInfinite);
    RendezvousEvent event;
    while (!fabric->PollRendezvous(event)) {
      (void)fabric->Poll({});
      WaitFor(*fabric);
    }
    const pid_t heir = InChild([] { return pause(); });
    (void)!write(told[1], &heir, sizeof(heir));
    return pause();
  });
  pollfd descriptor{told[0], POLLIN, 0};
  while (poll(&descriptor, 1, 0) == 0) Take();
  pid_t heir = 0;
  ASSERT_EQ(read(told[0], &heir, sizeof(heir)), static_cast<ssize_t>(sizeof(heir)));
  kill(peer, SIGKILL);
  ExitOf(peer);
  while (cause_ == Cause::kNone) Take();
  EXPECT_EQ(cause_, Cause::kPeerReset) << ToString(cause_);
  kill(heir, SIGKILL);
  close(told[0]);
  close(told[1]);
}

TEST_F(DeathTest, TheNameOfAKilledListenerIsFreeAtOnce) {
  std::array<int, 2> told{};
  ASSERT_EQ(pipe(told.data()), 0);
  const pid_t child = InChild([&] {
    std::unique_ptr<Fabric> fabric = *MakeLocalFabric();
    const Address address = *fabric->ListenerAddress(*fabric->Listen(Loopback(), 8));
    (void)!write(told[1], &address.port, sizeof(address.port));
    return pause();
  });
  Address address = Loopback();
  ASSERT_EQ(read(told[0], &address.port, sizeof(address.port)), 2);
  EXPECT_TRUE(absl::IsAlreadyExists(fabric_->Listen(address, 8).status()));
  kill(child, SIGKILL);
  ExitOf(child);
  EXPECT_TRUE(fabric_->Listen(address, 8).ok());
  close(told[0]);
  close(told[1]);
}

TEST_F(DeathTest, AnotherUserFindsNobodyAndIsFoundByNobody) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  constexpr uid_t kOther = 4711;
  const pid_t client = InChild([this] {
    if (setresuid(kOther, kOther, kOther) != 0) return 1;
    return ConnectTo(address_).error == ECONNREFUSED ? 0 : 2;
  });
  EXPECT_EQ(ExitOf(client), 0);
  // Root is no exception: what the other user has taken is not there.
  std::array<int, 2> told{};
  ASSERT_EQ(pipe(told.data()), 0);
  const pid_t server = InChild([&] {
    if (setresuid(kOther, kOther, kOther) != 0) return 1;
    Address address = Loopback();
    for (address.port = 20'000; !ListenAt(address, 8).ok();) ++address.port;
    const auto listener = ListenAt(address, 8);
    (void)!write(told[1], &address.port, sizeof(address.port));
    return pause();
  });
  Address address = Loopback();
  ASSERT_EQ(read(told[0], &address.port, sizeof(address.port)), 2);
  EXPECT_EQ(ConnectTo(address).error, ECONNREFUSED);
  kill(server, SIGKILL);
  ExitOf(server);
  close(told[0]);
  close(told[1]);
}

TEST_F(DeathTest, WithoutDescriptorsNothingIsLost) {
  Victim victim;
  RawEnd end = victim.Meet();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const QueuePairId queue_pair = *fabric_->CreateQueuePair({});
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status refused =
      fabric_->Connect(queue_pair, Address{}, victim.address(), {}, kTimeInfinite);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_TRUE(fabric_->Connect(queue_pair, Address{}, victim.address(), {}, kTimeInfinite).ok());
  for (int i = 0; i < 40 && victim.requests() < 2; ++i) victim.Poll();
  EXPECT_EQ(victim.requests(), 2u);
}

}  // namespace
}  // namespace esdp::fabric::local
