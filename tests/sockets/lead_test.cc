#include <poll.h>

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// A thread inside Dequeue does the work of the Context's own thread. Whatever it does next, and
// whatever others do meanwhile, nothing stands still.

namespace esdp::contract {
namespace {

class PollLeaderTest : public PairTest {
 protected:
  // Takes the lead of that side, and gives it back a little later.
  static void LeadOnce(Side& side) {
    std::array<Event, 1> none;
    const auto taken = side.queue.Dequeue(absl::MakeSpan(none),
                                          {.deadline = side.context.Now() + absl::Milliseconds(5)});
    EXPECT_TRUE(absl::IsDeadlineExceeded(taken.status())) << taken.status();
  }
  // The next event, waited for outside the library: this thread leads nothing.
  static Event AwaitOutside(EventQueue& queue) {
    std::array<Event, 1> one;
    pollfd waited{queue.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&waited, 1, 20'000), 1);
    EXPECT_EQ(queue.TryDequeue(absl::MakeSpan(one)).value_or(0), 1u);
    return one[0];
  }
  static absl::Status Send(Side& side, Memory& from, Path path = Path::kByThreshold) {
    OpArgs args = side.Args();
    args.path = path;
    return side.socket.Send(from.All(), SendFlags::kNone, args).status();
  }
  static absl::Status Recv(Side& side, Memory& to, absl::Time deadline = absl::InfiniteFuture()) {
    OpArgs args = side.Args();
    args.deadline = deadline;
    return side.socket.Recv(to.All(), RecvFlags::kWaitAll, args).status();
  }
  static EventQueue NewQueue(Side& side) {
    auto queue = side.context.CreateQueue({});
    EXPECT_TRUE(queue.ok()) << queue.status();
    return *std::move(queue);
  }
};
INSTANTIATE_TEST_SUITE_P(On, PollLeaderTest, ::testing::ValuesIn(WorldsWithThread()), ParamName);

// A thread that waits in Dequeue until it is woken.
class Sleeper {
 public:
  Sleeper(Context& context, EventQueue queue)
      : queue_(std::move(queue)), thread_([this, &context] {
          std::array<Event, 1> none;
          const auto taken =
              queue_.Dequeue(absl::MakeSpan(none), {.deadline = context.Now() + absl::Minutes(5)});
          EXPECT_TRUE(absl::IsCancelled(taken.status())) << taken.status();
        }) {
    // Long enough that it sleeps, as a rule: the tests hold if it does not.
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  ~Sleeper() {
    queue_.Wake();
    thread_.join();
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

 private:
  EventQueue queue_;
  std::thread thread_;
};

TEST_P(PollLeaderTest, ThePeerIsServedAfterWhoLedHasGoneAway) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  constexpr size_t kSize = size_t{1} << 20;
  Memory& from = Make(client_, kSize);
  Memory& to = Make(server_, kSize);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Recv(server_, to).ok());
    LeadOnce(client_);
    ASSERT_TRUE(Send(client_, from, Path::kZeroCopy).ok());
    // The client makes no call until its event is there, and the peer is to read its memory.
    EXPECT_EQ(AwaitOutside(server_.queue).bytes, kSize);
    EXPECT_EQ(AwaitOutside(client_.queue).bytes, kSize);
  }
}

TEST_P(PollLeaderTest, PostsOfOthersAreCarriedOutWhileALeaderSleeps) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const Sleeper leader(client_.context, NewQueue(client_));
  Memory& from = Make(client_, 100);
  Memory& to = Make(server_, 100);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Recv(server_, to).ok());
    ASSERT_TRUE(Send(client_, from).ok());
    EXPECT_EQ(AwaitOutside(server_.queue).bytes, 100u);
    EXPECT_EQ(AwaitOutside(client_.queue).bytes, 100u);
  }
}

TEST_P(PollLeaderTest, ADeadlineOfAnotherThreadIsKeptWhileALeaderSleeps) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  const Sleeper leader(client_.context, NewQueue(client_));
  Memory& to = Make(client_, 100);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Recv(client_, to, client_.context.Now() + absl::Milliseconds(5)).ok());
    EXPECT_EQ(AwaitOutside(client_.queue).kind, ErrorKind::kDeadlineExceeded);
  }
}

TEST_P(PollLeaderTest, ADeadlineIsKeptAfterWhoLedHasGoneAway) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& to = Make(client_, 100);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Recv(client_, to, client_.context.Now() + absl::Seconds(1)).ok());
    LeadOnce(client_);
    EXPECT_EQ(AwaitOutside(client_.queue).kind, ErrorKind::kDeadlineExceeded);
  }
}

TEST_P(PollLeaderTest, APinnedThreadKeepsTheLeadAndEventsCome) {
  ContextOptions options = OptionsOf(world());
  options.progress_cpu = 0;
  client_.Open(options);
  server_.Open(options);
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 100);
  Memory& to = Make(server_, 100);
  for (int i = 0; i < 20; ++i) Carry(client_, from, server_, to, 100);
}

}  // namespace
}  // namespace esdp::contract
