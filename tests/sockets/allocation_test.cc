#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "esdp/context.h"
#include "esdp/file.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// No allocation per operation in steady state: every operator new of this program is counted.

namespace {

std::atomic<uint64_t> g_allocations{0};
std::atomic<int64_t> g_live{0};

void* Allocate(size_t size, size_t alignment) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  g_live.fetch_add(1, std::memory_order_relaxed);
  void* const memory =
      std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) std::abort();
  return memory;
}

void Free(void* memory) {
  if (memory == nullptr) return;
  g_live.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new[](size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { Free(memory); }

namespace esdp::contract {
namespace {

class AllocationTest : public PairTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(PairTest::SetUp());
    ASSERT_NO_FATAL_FAILURE(Connect());
    Settle();
    client_.Collect();
    server_.Collect();
    from_ = &Make(client_, 1 << 20);
    to_ = &Make(server_, 1 << 20);
    back_ = &Make(client_, 1 << 20);
  }

  // Waits until that many events have come out of both queues, none of them an error.
  bool Take(size_t count) {
    std::array<Event, 64> some;
    for (uint64_t tries = 0; count > 0 && tries < 100'000'000; ++tries) {
      if (HasThread(world())) std::this_thread::yield();  // to those who do the work
      for (EventQueue* queue : {&client_.queue, &server_.queue}) {
        const auto taken = queue->TryDequeue(absl::MakeSpan(some));
        if (!taken.ok()) return false;
        for (size_t i = 0; i < *taken; ++i) {
          if (!some[i].ok()) return false;
        }
        count -= *taken;
      }
    }
    return count == 0;
  }
  // How many allocations `rounds` more rounds cost, after some to warm up. With a thread, how full
  // the library's lists get is a matter of chance: these may grow a few more times, and then stop.
  template <typename Round>
  uint64_t Count(size_t rounds, Round round) {
    for (size_t i = 0; i < rounds; ++i) EXPECT_TRUE(round()) << "while warming up";
    uint64_t allocations = 1;
    const int attempts = HasThread(world()) ? 10 : 1;
    for (int attempt = 0; attempt < attempts && allocations > 0; ++attempt) {
      const uint64_t before = g_allocations.load();
      bool all = true;
      for (size_t i = 0; i < rounds; ++i) all = round() && all;
      allocations = g_allocations.load() - before;
      EXPECT_TRUE(all);
    }
    return allocations;
  }
  bool Bounce(uint64_t size, const OpArgs& mine, const OpArgs& theirs) {
    return server_.socket.Recv(to_->At(0, size), RecvFlags::kWaitAll, theirs).ok() &&
           client_.socket.Recv(back_->At(0, size), RecvFlags::kWaitAll, mine).ok() &&
           client_.socket.Send(from_->At(0, size), SendFlags::kNone, mine).ok() && Take(2) &&
           server_.socket.Send(to_->At(0, size), SendFlags::kNone, theirs).ok() && Take(2);
  }

  Memory* from_ = nullptr;
  Memory* to_ = nullptr;
  Memory* back_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(On, AllocationTest, ::testing::ValuesIn(WorldsInRealTime()), ParamName);

TEST_P(AllocationTest, TheCounterCounts) {
  const uint64_t before = g_allocations.load();
  const std::vector<std::string> some(10, std::string(100, 'x'));
  EXPECT_GE(g_allocations.load(), before + 11) << some.size();
}

TEST_P(AllocationTest, PingPongAllocatesNothingAtAnySize) {
  for (const uint64_t size : {1u, 64u, 2'048u, 20'000u, 65'536u, 1u << 20}) {
    EXPECT_EQ(Count(100, [&] { return Bounce(size, client_.Args(), server_.Args()); }), 0u)
        << size << " bytes";
  }
}

TEST_P(AllocationTest, ADeadlineAndDeliveryCostNoAllocation) {
  OpArgs mine = client_.Args();
  OpArgs theirs = server_.Args();
  mine.complete_at = theirs.complete_at = CompleteAt::kDelivered;
  mine.deadline = theirs.deadline = client_.context.Now() + absl::Seconds(600);
  for (const uint64_t size : {64u, 100'000u}) {
    EXPECT_EQ(Count(50, [&] { return Bounce(size, mine, theirs); }), 0u) << size << " bytes";
  }
}

// Those of the post, and none while data flows.
TEST_P(AllocationTest, AFileAllocatesTheSameHoweverLongItIs) {
  constexpr uint64_t kShort = 1 << 20;
  constexpr uint64_t kLong = 32 << 20;
  const int source = memfd_create("source", MFD_CLOEXEC);
  const int target = memfd_create("target", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(source, kLong), 0);
  const auto carry = [&](uint64_t length) {
    const std::array<FileRange, 1> range = {FileRange{source, 0, length}};
    const uint64_t before = g_allocations.load();
    EXPECT_TRUE(server_.socket.RecvFile({.fd = target, .length = length}, server_.Args()).ok());
    EXPECT_TRUE(client_.socket.SendFile({.ranges = range}, client_.Args()).ok());
    EXPECT_TRUE(Take(2));
    return g_allocations.load() - before;
  };
  for (int i = 0; i < 3; ++i) (void)carry(kLong);
  uint64_t more = 1;
  for (int attempt = 0; attempt < 10 && more > 0; ++attempt) {
    const uint64_t few = carry(kShort);
    const uint64_t many = carry(kLong);
    more = many - std::min(few, many);
  }
  EXPECT_EQ(more, 0u);
  close(source);
  close(target);
}

TEST_P(AllocationTest, AStreamOfSmallSendsAllocatesNothing) {
  const auto round = [&] {
    for (uint64_t i = 0; i < 100; ++i) {
      if (!client_.socket.Send(from_->At(i * 64, 64), SendFlags::kNone, client_.Args()).ok()) {
        return false;
      }
    }
    return server_.socket.Recv(to_->At(0, 6'400), RecvFlags::kWaitAll, server_.Args()).ok() &&
           Take(101);
  };
  EXPECT_EQ(Count(100, round), 0u);
}

TEST_P(AllocationTest, AStreamOfLargeSendsAtDepthEightAllocatesNothing) {
  std::vector<Memory*> sinks(8);
  for (Memory*& sink : sinks) sink = &Make(server_, to_->size());
  const auto round = [&] {
    for (const Memory* sink : sinks) {
      if (!server_.socket.Recv(sink->All(), RecvFlags::kWaitAll, server_.Args()).ok() ||
          !client_.socket.Send(from_->All(), SendFlags::kNone, client_.Args()).ok()) {
        return false;
      }
    }
    return Take(16);
  };
  EXPECT_EQ(Count(5, round), 0u);
}

TEST_P(AllocationTest, ListsOfSlicesAllocateNothing) {
  const std::array<Slice, 4> sources = {from_->At(0, 100), from_->At(5'000, 70'000),
                                        from_->At(100, 0), from_->At(200'000, 3'000)};
  const std::array<Slice, 3> sinks = {to_->At(0, 50'000), to_->At(60'000, 20'000),
                                      to_->At(90'000, 3'100)};
  const auto round = [&] {
    return server_.socket.RecvV(sinks, RecvFlags::kWaitAll, server_.Args()).ok() &&
           client_.socket.SendV(sources, SendFlags::kNone, client_.Args()).ok() && Take(2);
  };
  EXPECT_EQ(Count(100, round), 0u);
}

TEST_P(AllocationTest, UnregisteredMemoryAllocatesNothing) {
  std::vector<std::byte> text(5'000);
  std::vector<std::byte> got(5'000);
  const auto round = [&] {
    return server_.socket.RecvCopy(absl::MakeSpan(got), RecvFlags::kWaitAll, server_.Args()).ok() &&
           client_.socket.SendCopy(text, SendFlags::kNone, client_.Args()).ok() && Take(2);
  };
  EXPECT_EQ(Count(100, round), 0u);
}

TEST_P(AllocationTest, ConnectionsThatEndBeforeAnAcceptTakesThemLeaveNothingBehind) {
  constexpr int kRound = 300;
  const Address address = Listen();
  uint64_t ended = 0;
  const auto come_and_go = [&] {
    for (int i = 0; i < kRound; ++i) {
      Socket socket = *client_.context.CreateSocket(Family::kIpv4);
      ASSERT_TRUE(End(client_, client_.Accepted(socket.Connect(address, client_.Args()))).ok());
      socket = {};
      ASSERT_TRUE(Pump([&] { return listener_.Stats().ended_before_accept > ended; }));
      ++ended;
    }
    Settle();
  };
  ASSERT_NO_FATAL_FAILURE(come_and_go());
  const int64_t before = g_live.load();
  ASSERT_NO_FATAL_FAILURE(come_and_go());
  // What the test notes of each connect is its own, and the library's tables may grow.
  EXPECT_LT(g_live.load() - before, 2 * kRound);
}

}  // namespace
}  // namespace esdp::contract
