#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "esdp/stream.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// A Context is closed while other threads are in calls that take several steps below. Each step may
// be the first one that finds it closed. Run with a sanitizer too: a step that goes on reaches what
// is gone.

namespace esdp::contract {
namespace {

class ClosingRaceTest : public PairTest {
 protected:
  // Two threads make these calls again and again, while the client's Context is closed under them,
  // and each is to have come back by the end.
  void CloseUnder(const std::function<void()>& call) {
    std::atomic<int> calls{0};
    std::atomic<bool> ended{false};
    const auto use = [&] {
      while (!ended.load()) {
        call();
        calls.fetch_add(1);
      }
    };
    std::array<std::thread, 2> users{std::thread(use), std::thread(use)};
    while (calls.load() < 100) std::this_thread::yield();
    (void)client_.context.Close(absl::InfinitePast());
    const int before = calls.load();
    while (calls.load() < before + 4) std::this_thread::yield();
    ended.store(true);
    for (std::thread& user : users) user.join();
  }
  void InTurns(const std::function<void()>& turn) {
    for (int i = 0; i < 10 && !HasFailure(); ++i) {
      ASSERT_NO_FATAL_FAILURE(Connect());
      turn();
      client_ = {};
      server_.socket = {};
      ASSERT_NO_FATAL_FAILURE(client_.Open(OptionsOf(world(), &server_.context)));
    }
    ASSERT_NO_FATAL_FAILURE(Connect());
  }
  void InTurnsOverStreams(const std::function<void(Stream& near)>& call) {
    InTurns([&] {
      auto near = Stream::Of(client_.context, std::move(client_.socket)).value();
      auto far = Stream::Of(server_.context, std::move(server_.socket)).value();
      CloseUnder([&] { call(near); });
    });
  }
  absl::Time InAMoment() const { return server_.context.Now() + absl::Microseconds(50); }
};
ESDP_ON_REAL_WORLDS(ClosingRaceTest);

TEST_P(ClosingRaceTest, ReadsThatDoNotWaitEndWithTheContext) {
  InTurnsOverStreams([](Stream& near) {
    std::array<std::byte, 100> bytes;
    EXPECT_FALSE(near.Read(absl::MakeSpan(bytes), {.wait = false}).ok());
  });
}

TEST_P(ClosingRaceTest, ReadsThatAreLateEndWithTheContext) {
  InTurnsOverStreams([this](Stream& near) {
    std::array<std::byte, 100> bytes;
    EXPECT_FALSE(near.Read(absl::MakeSpan(bytes), {.deadline = InAMoment()}).ok());
  });
}

TEST_P(ClosingRaceTest, WritesThatAreLateEndWithTheContext) {
  const std::vector<std::byte> bytes(100'000);
  InTurnsOverStreams([&](Stream& near) { (void)near.Write(bytes, {.deadline = InAMoment()}); });
}

TEST_P(ClosingRaceTest, WritesWhoseWayIsLearnedEndWithTheContext) {
  const std::vector<std::byte> bytes(20'000);
  InTurnsOverStreams([&](Stream& near) { (void)near.Write(bytes, {.deadline = InAMoment()}); });
}

TEST_P(ClosingRaceTest, AStreamWhoseReadinessIsShownEndsWithTheContext) {
  InTurns([&] {
    auto near = Stream::Of(client_.context, std::move(client_.socket)).value();
    auto far = Stream::Of(server_.context, std::move(server_.socket)).value();
    ASSERT_TRUE(near.fd().ok());
    ASSERT_TRUE(far.ShutdownWrite().ok());
    std::array<std::byte, 100> bytes;
    CloseUnder([&] { (void)near.Read(absl::MakeSpan(bytes), {.wait = false}); });
  });
}

TEST_P(ClosingRaceTest, AcceptsThatAreLateEndWithTheContext) {
  InTurns([&] {
    auto listener = StreamListener::Listen(client_.context, HostOf(world(), 0)).value();
    CloseUnder([&] { EXPECT_FALSE(listener.Accept({}, InAMoment()).ok()); });
  });
}

TEST_P(ClosingRaceTest, RegionsThatAreBusyEndWithTheContext) {
  InTurns([&] {
    Memory& memory = Make(client_, 4096);
    (void)client_.Recv(memory.All());
    CloseUnder([&] { (void)memory.region.Close(absl::InfinitePast()); });
  });
}

TEST_P(ClosingRaceTest, QueuesThatAreDestroyedEndWithTheContext) {
  InTurns([&] {
    CloseUnder([&] {
      auto queue = client_.context.CreateQueue({.depth = 4});
      if (!queue.ok()) return;
      (void)client_.socket.Poll(kPollPeerEnded, {.queue = *queue});
    });
  });
}

TEST_P(ClosingRaceTest, ThreadsThatCloseItAllCloseIt) {
  InTurns([&] { CloseUnder([&] { (void)client_.context.Close(absl::InfinitePast()); }); });
}

}  // namespace
}  // namespace esdp::contract
