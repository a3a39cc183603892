// Processes that are killed wherever they happen to be, and processes of other users.

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "impl/base/random.h"
#include "tests/fabric/local/raw_end.h"
#include "tests/fabric/local/survivor.h"

namespace esdp::fabric::local {
namespace {

TEST_F(DeathTest, WhatAKilledPeerHasSentIsWholeAndInOrder) {
  Random random(3);
  for (int life = 0; life < 30; ++life) {
    BeginLife();
    const pid_t peer = InChild([this] { return SendMessages(address_, kWithoutEnd); });
    const uint64_t enough = random.Between(0, 300);
    while (received_ < enough) ASSERT_NO_FATAL_FAILURE(Take());
    ASSERT_NO_FATAL_FAILURE(EndLife(peer));
    EXPECT_TRUE(cause_ == Cause::kNone || cause_ == Cause::kPeerReset) << ToString(cause_);
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

TEST_F(DeathTest, WithoutDescriptorsAFileIsRegisteredAsOtherMemory) {
  const WritableMemory memory = *MakeWritableMemory(8192, 0);
  const auto with = fabric_->RegisterShared({memory.file.number(), 0}, memory.mapping.base(), 8192,
                                            {});  // a sanitizer looks at types by descriptors, once
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_TRUE(fabric_->Deregister(*with).ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto region =
      fabric_->RegisterShared({memory.file.number(), 0}, memory.mapping.base(), 8192, {});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_TRUE(fabric_->Deregister(*region).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      fabric_->RegisterShared({memory.file.number(), 4096}, memory.mapping.base(), 8192, {})
          .status()));
}

}  // namespace
}  // namespace esdp::fabric::local
