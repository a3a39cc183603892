#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <thread>
#include <variant>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Several threads on the same objects. Run with ThreadSanitizer too.

namespace esdp::contract {
namespace {

using Steady = std::chrono::steady_clock;

class ThreadsTest : public PairTest {
 protected:
  ThreadsTest() : PairTest(4096) {}

  // Takes events until `count` of them were terminal; false when that takes too long.
  static bool Take(Side& side, size_t count, const std::function<void(const Event&)>& each) {
    const auto bound = Steady::now() + std::chrono::seconds(60);
    std::array<Event, 16> some;
    while (count > 0 && Steady::now() < bound) {
      const auto taken = side.queue.Dequeue(
          absl::MakeSpan(some), {.deadline = side.context.Now() + absl::Milliseconds(5)});
      for (size_t i = 0; i < taken.value_or(0); ++i) {
        EXPECT_TRUE(some[i].ok()) << some[i].status();
        if (some[i].terminal()) --count;
        each(some[i]);
      }
      if (!taken.ok()) std::this_thread::yield();
    }
    return count == 0;
  }
  // Manual progress: a side that has nothing more to do still has its peer to serve.
  static void Serve(Side& side, const std::function<bool()>& done) {
    const auto bound = Steady::now() + std::chrono::seconds(60);
    std::array<Event, 1> none;
    while (!done() && Steady::now() < bound) {
      EXPECT_EQ(side.queue.TryDequeue(absl::MakeSpan(none)).value_or(1), 0u);
      std::this_thread::yield();
    }
  }
  // A post that waits for room by trying again.
  static void PostInTurn(const std::function<absl::StatusOr<OpId>()>& post) {
    for (;;) {
      const auto posted = post();
      if (posted.ok()) return;
      ASSERT_EQ(posted.status().code(), absl::StatusCode::kResourceExhausted) << posted.status();
      std::this_thread::yield();
    }
  }
  void EchoBesideAThread();
  void ShareContexts();
};
ESDP_ON_REAL_WORLDS(ThreadsTest);

void ThreadsTest::EchoBesideAThread() {
  ASSERT_NO_FATAL_FAILURE(Connect());
  constexpr size_t kRounds = 200;
  Memory& out = Make(client_, 70'000);
  Memory& back = Make(client_, 70'000);
  Memory& mirror = Make(server_, 70'000);
  out.Fill(NewSeed());
  std::thread echo([&] {
    for (size_t i = 0; i < kRounds; ++i) {
      const uint64_t size = i % 2 == 0 ? 64 : 70'000;
      ASSERT_TRUE(
          server_.socket.Recv(mirror.At(0, size), RecvFlags::kWaitAll, server_.Args()).ok());
      ASSERT_TRUE(Take(server_, 1, [](const Event&) {}));
      ASSERT_TRUE(server_.socket.Send(mirror.At(0, size), SendFlags::kNone, server_.Args()).ok());
      ASSERT_TRUE(Take(server_, 1, [](const Event&) {}));
    }
  });
  for (size_t i = 0; i < kRounds; ++i) {
    const uint64_t size = i % 2 == 0 ? 64 : 70'000;
    ASSERT_TRUE(client_.socket.Recv(back.At(0, size), RecvFlags::kWaitAll, client_.Args()).ok());
    ASSERT_TRUE(client_.socket.Send(out.At(0, size), SendFlags::kNone, client_.Args()).ok());
    ASSERT_TRUE(Take(client_, 2, [](const Event&) {})) << i;
  }
  echo.join();
  EXPECT_TRUE(SameBytes(out.bytes, back.bytes));
}

void ThreadsTest::ShareContexts() {
  constexpr size_t kThreads = 4;
  std::vector<Socket> mine;
  std::vector<Socket> theirs;
  for (size_t i = 0; i < kThreads; ++i) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    mine.push_back(std::move(client_.socket));
    theirs.push_back(std::move(server_.socket));
  }
  std::vector<Memory*> from;
  std::vector<Memory*> to;
  for (size_t i = 0; i < kThreads; ++i) {
    from.push_back(&Make(client_, 50'000));
    to.push_back(&Make(server_, 50'000));
    from.back()->Fill(i);
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (uint64_t at = 0; at < 50'000; at += 500) {
        PostInTurn(
            [&] { return mine[i].Send(from[i]->At(at, 500), SendFlags::kNone, client_.Args()); });
        PostInTurn([&] {
          return theirs[i].Recv(to[i]->At(at, 500), RecvFlags::kWaitAll, server_.Args());
        });
      }
    });
  }
  std::atomic<bool> received{false};
  threads.emplace_back([&] {
    EXPECT_TRUE(Take(server_, kThreads * 100, [](const Event&) {}));
    received = true;
  });
  EXPECT_TRUE(Take(client_, kThreads * 100, [](const Event&) {}));
  Serve(client_, [&] { return received.load(); });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kThreads; ++i) EXPECT_TRUE(SameBytes(from[i]->bytes, to[i]->bytes)) << i;
}

TEST_P(ThreadsTest, SendsOfTwoThreadsOnOneSocketStayWhole) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  constexpr size_t kEach = 400;
  constexpr size_t kSize = 100;
  Memory& to = Make(server_, 2 * kEach * kSize);
  std::array<Memory*, 2> from = {&Make(client_, kSize), &Make(client_, kSize)};
  std::fill(from[0]->bytes.begin(), from[0]->bytes.end(), std::byte{1});
  std::fill(from[1]->bytes.begin(), from[1]->bytes.end(), std::byte{2});
  const OpArgs receiving = server_.Args();
  ASSERT_TRUE(server_.socket.Recv(to.All(), RecvFlags::kWaitAll, receiving).ok());
  std::vector<std::thread> threads;
  for (Memory* memory : from) {
    threads.emplace_back([&, memory] {
      for (size_t i = 0; i < kEach; ++i) {
        PostInTurn(
            [&] { return client_.socket.Send(memory->All(), SendFlags::kNone, client_.Args()); });
      }
    });
  }
  std::atomic<bool> received{false};
  threads.emplace_back([&] {
    EXPECT_TRUE(Take(server_, 1, [](const Event&) {}));
    received = true;
  });
  EXPECT_TRUE(Take(client_, 2 * kEach, [](const Event&) {}));
  Serve(client_, [&] { return received.load(); });
  for (std::thread& thread : threads) thread.join();
  std::array<size_t, 3> count{};
  for (size_t i = 0; i < 2 * kEach; ++i) {
    const auto* block = to.bytes.data() + i * kSize;
    ASSERT_TRUE(std::all_of(block, block + kSize, [&](std::byte b) { return b == *block; }))
        << "send " << i << " is torn";
    ++count.at(static_cast<size_t>(*block));
  }
  EXPECT_EQ(count[1], kEach);
  EXPECT_EQ(count[2], kEach);
}

TEST_P(ThreadsTest, OptionsMayBeSetWhileAnotherThreadPosts) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  constexpr size_t kSends = 300;
  Memory& from = Make(client_, 3000);
  Memory& to = Make(server_, kSends * from.size());
  ASSERT_TRUE(server_.socket.Recv(to.All(), RecvFlags::kWaitAll, server_.Args()).ok());
  std::atomic<bool> received{false};
  std::atomic<bool> sent{false};
  std::thread posts([&] {
    for (size_t i = 0; i < kSends; ++i) {
      PostInTurn([&] { return client_.socket.Send(from.All(), SendFlags::kNone, client_.Args()); });
    }
  });
  std::thread sets([&] {
    for (uint64_t least = 0; !received; least = 5000 - least) {
      EXPECT_TRUE(client_.socket.SetOption({OptionName::kZcopySendMin, least}).ok());
      EXPECT_EQ(std::get<uint64_t>(client_.socket.GetOption(OptionName::kZcopySendMin)->value),
                least);
      std::this_thread::yield();
    }
  });
  std::thread receives([&] {
    EXPECT_TRUE(Take(server_, 1, [](const Event&) {}));
    received = true;
    Serve(server_, [&] { return sent.load(); });  // the last answers may wait for credits
  });
  EXPECT_TRUE(Take(client_, kSends, [](const Event&) {}));
  sent = true;
  Serve(client_, [&] { return received.load(); });
  for (std::thread* each : {&posts, &sets, &receives}) each->join();
}

TEST_P(ThreadsTest, EachEventGoesToOneOfSeveralConsumers) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  constexpr size_t kCount = 1'000;
  Memory& from = Make(client_, kCount);
  Memory& to = Make(server_, kCount);
  for (size_t i = 0; i < kCount; ++i) {
    OpArgs args = server_.Args(i);
    ASSERT_TRUE(server_.socket.Recv(to.At(i, 1), RecvFlags::kWaitAll, args).ok());
  }
  std::vector<std::atomic<int>> seen(kCount);
  std::atomic<size_t> total{0};
  std::vector<std::thread> consumers;
  const auto bound = Steady::now() + std::chrono::seconds(60);
  for (int i = 0; i < 3; ++i) {
    consumers.emplace_back([&] {
      std::array<Event, 7> some;
      while (total.load() < kCount && Steady::now() < bound) {
        const auto taken = server_.queue.Dequeue(
            absl::MakeSpan(some), {.deadline = server_.context.Now() + absl::Milliseconds(5)});
        for (size_t k = 0; k < taken.value_or(0); ++k) ++seen.at(some[k].cookie);
        total += taken.value_or(0);
      }
    });
  }
  for (size_t i = 0; i < kCount; i += 50) {
    ASSERT_TRUE(client_.socket.Send(from.At(i, 50), SendFlags::kNone, client_.Args()).ok());
  }
  EXPECT_TRUE(Take(client_, kCount / 50, [](const Event&) {}));
  Serve(client_, [&] { return total.load() == kCount; });
  for (std::thread& thread : consumers) thread.join();
  EXPECT_EQ(total.load(), kCount);
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& n) { return n == 1; }));
}

TEST_P(ThreadsTest, BothSidesWorkInThreadsOfTheirOwn) { EchoBesideAThread(); }

TEST_P(ThreadsTest, AWakeOfAnotherThreadEndsAWait) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const OpId receive = server_.Recv(Make(server_, 10).All());  // so that there is what to wait for
  for (int i = 0; i < 20; ++i) {
    std::thread waker([&] { server_.queue.Wake(); });
    std::array<Event, 1> one;
    const auto taken = server_.queue.Dequeue(
        absl::MakeSpan(one), {.deadline = server_.context.Now() + absl::Seconds(30)});
    EXPECT_TRUE(Refuses(taken, ErrorKind::kCancelled, absl::StatusCode::kCancelled)) << i;
    waker.join();
  }
  EXPECT_TRUE(server_.socket.Cancel(receive).ok());
  (void)End(server_, receive);
}

// Whoever comes first: one terminal event for each accepted operation.
TEST_P(ThreadsTest, CancelsCloseAndPostsMayRace) {
  for (int round = 0; round < 10; ++round) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    Memory& to = Make(server_, 1000);
    Memory& from = Make(client_, 1000);
    std::atomic<size_t> accepted{0};
    std::atomic<uint64_t> last{0};
    std::thread poster([&] {
      for (uint64_t i = 0; i < 200; ++i) {
        const auto posted = server_.socket.Recv(to.At(i, 1), RecvFlags::kNone, server_.Args());
        if (!posted.ok()) return;
        ++accepted;
        last = static_cast<uint64_t>(*posted);
      }
    });
    std::thread canceller([&] {
      for (int i = 0; i < 200; ++i) (void)server_.socket.Cancel(OpId{last.load()});
      (void)server_.socket.CancelAll(Direction::kReceive);
    });
    for (uint64_t i = 0; i < 50; ++i) {
      (void)client_.Send(from.At(i, 1));
    }
    const auto close = server_.socket.Close(CloseMode::kAbort, server_.Args());
    ASSERT_TRUE(close.ok()) << close.status();
    poster.join();
    canceller.join();
    size_t terminal = 0;
    std::array<Event, 64> some;
    const auto bound = Steady::now() + std::chrono::seconds(30);
    bool closed = false;
    while ((!closed || client_.Outstanding() > 0) && Steady::now() < bound) {
      client_.Collect();
      const auto taken = server_.queue.Dequeue(
          absl::MakeSpan(some), {.deadline = server_.context.Now() + absl::Milliseconds(5)});
      for (size_t i = 0; i < taken.value_or(0); ++i) {
        ++terminal;
        EXPECT_FALSE(closed) << "an event after kClose";
        closed = some[i].type == EventType::kClose;
      }
    }
    EXPECT_TRUE(closed);
    EXPECT_EQ(client_.Outstanding(), 0u);
    EXPECT_EQ(terminal, accepted.load() + 1);
  }
}

TEST_P(ThreadsTest, AHandleMayBeDestroyedWhileThePeerSends) {
  for (int round = 0; round < 10; ++round) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    Memory& from = Make(client_, 300'000);
    (void)server_.Recv(Make(server_, 300'000).All(), RecvFlags::kWaitAll);
    std::thread sender([&] {
      for (int i = 0; i < 20; ++i) {
        const auto posted = client_.socket.Send(from.All(), SendFlags::kNone, client_.Args());
        if (!posted.ok()) return;
      }
    });
    server_.socket = {};
    sender.join();
    client_.socket = {};
    std::array<Event, 64> some;
    const auto bound = Steady::now() + std::chrono::seconds(30);
    const auto left = [&] {
      const QueueStats stats = client_.queue.Stats();
      return stats.reserved + stats.waiting + server_.Outstanding();
    };
    while (left() > 0 && Steady::now() < bound) {
      server_.Collect();
      (void)client_.queue.Dequeue(absl::MakeSpan(some),
                                  {.deadline = client_.context.Now() + absl::Milliseconds(5)});
    }
    EXPECT_EQ(left(), 0u);
  }
}

TEST_P(ThreadsTest, ConnectionsOfManyThreadsShareTheirContexts) { ShareContexts(); }

TEST_P(ThreadsTest, TheFirstCopiesOfSeveralThreadsFindOneBouncePool) {
  constexpr size_t kThreads = 4;
  constexpr size_t kBytes = 8'000;  // more than leaves without the pool
  std::vector<Socket> mine;
  std::vector<Socket> theirs;
  std::vector<Memory*> to;
  for (size_t i = 0; i < kThreads; ++i) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    mine.push_back(std::move(client_.socket));
    theirs.push_back(std::move(server_.socket));
    to.push_back(&Make(server_, kBytes));
    ASSERT_TRUE(theirs[i].Recv(to[i]->All(), RecvFlags::kWaitAll, server_.Args()).ok());
  }
  const std::vector<std::byte> bytes(kBytes, std::byte{7});
  const uint32_t before = client_.context.Stats().regions;
  std::barrier ready(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ready.arrive_and_wait();
      EXPECT_TRUE(mine[i].SendCopy(bytes, SendFlags::kNone, client_.Args()).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::atomic<bool> received{false};
  std::thread receiver([&] {
    EXPECT_TRUE(Take(server_, kThreads, [](const Event&) {}));
    received = true;
  });
  EXPECT_TRUE(Take(client_, kThreads, [](const Event&) {}));
  Serve(client_, [&] { return received.load(); });
  receiver.join();
  for (Memory* memory : to) EXPECT_TRUE(SameBytes(bytes, memory->bytes));
  EXPECT_EQ(client_.context.Stats().regions, before) << "those of the application alone count";
  EXPECT_EQ(client_.context.Stats().bounce_bytes, 0u);
}

// Threads that know nothing of each other move one simulated world: no time is real there, and what
// ends with a deadline may end too soon.
class WorldInThreadsTest : public ThreadsTest {};
ESDP_ON_SIM(WorldInThreadsTest);

TEST_P(WorldInThreadsTest, BothSidesWorkInThreadsOfTheirOwn) { EchoBesideAThread(); }

TEST_P(WorldInThreadsTest, ConnectionsOfManyThreadsShareTheirContexts) { ShareContexts(); }

TEST_P(WorldInThreadsTest, AContextMayComeAndGoWhileAnotherMovesTheWorld) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const Address address = listener_.local();
  std::atomic<bool> done{false};
  std::thread guests([&] {
    for (int i = 0; i < 200 && !HasFailure(); ++i) {
      Side guest;
      guest.Open(OptionsOf(world(), &server_.context));
      absl::StatusOr<Socket> socket = guest.context.CreateSocket(Family::kIpv4);
      EXPECT_TRUE(socket.ok() && socket->Connect(address, guest.Args()).ok()) << i;
    }
    done = true;
  });
  Memory& from = Make(client_, 10'000);
  Memory& to = Make(server_, 10'000);
  while (!done) Carry(client_, from, server_, to, from.size());
  guests.join();
}

}  // namespace
}  // namespace esdp::contract
