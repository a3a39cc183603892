#include "esdp/event_queue.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Slots, order and descriptor of an event queue.

namespace esdp::contract {
namespace {

bool IsReadable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return poll(&one, 1, 0) == 1 && (one.revents & POLLIN) != 0;
}

class EventQueueTest : public PairTest {
 protected:
  // A queue of the server's beside the one of the harness, and receives that end there.
  void Open(uint32_t depth) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    absl::StatusOr<EventQueue> created = server_.context.CreateQueue({.depth = depth});
    ASSERT_TRUE(created.ok()) << created.status();
    queue_ = *std::move(created);
    to_ = &Make(server_, 4096);
    from_ = &Make(client_, 4096);
  }
  absl::StatusOr<OpId> PostReceive() {
    const uint64_t at = next_++ % to_->size();
    return server_.socket.Recv(to_->At(at, 1), RecvFlags::kWaitAll, {.queue = queue_});
  }
  // Lets `count` receives of one byte end.
  void Feed(uint32_t count) {
    const uint32_t before = queue_.Stats().waiting;
    (void)client_.Send(from_->At(0, count));
    EXPECT_TRUE(Pump([&] { return queue_.Stats().waiting == before + count; }));
  }
  void EndEverything() {
    server_.socket = {};
    EXPECT_TRUE(Pump([&] { return queue_.Stats().reserved == 0; }));
    queue_ = {};
  }

  EventQueue queue_;
  Memory* to_ = nullptr;
  Memory* from_ = nullptr;
  uint64_t next_ = 0;
  std::array<Event, 64> out_;
};
ESDP_ON_EVERY_WORLD(EventQueueTest);

// Virtual time moves in Dequeue, not in poll.
class DescriptorTest : public EventQueueTest {};
ESDP_ON_REAL_WORLDS(DescriptorTest);

TEST_P(EventQueueTest, AFullQueueRefusesWithoutAnyEffect) {
  ASSERT_NO_FATAL_FAILURE(Open(3));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(PostReceive().ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(
        Refuses(PostReceive(), ErrorKind::kQueueFull, absl::StatusCode::kResourceExhausted));
    const auto send = server_.socket.Send(to_->At(0, 9), SendFlags::kNone, {.queue = queue_});
    EXPECT_TRUE(Refuses(send, ErrorKind::kQueueFull, absl::StatusCode::kResourceExhausted));
    const auto close = server_.socket.Close(CloseMode::kAbort, {.queue = queue_});
    EXPECT_TRUE(Refuses(close, ErrorKind::kQueueFull, absl::StatusCode::kResourceExhausted));
  }
  EXPECT_EQ(queue_.Stats().full, 6u);
  // A thread of the library may have been at work just then, and takes them over afterwards.
  EXPECT_TRUE(Pump([&] { return to_->region.info().operations == 3; }));
  Feed(3);
  EXPECT_EQ(*queue_.TryDequeue(absl::MakeSpan(out_)), 3u);
  EXPECT_EQ(server_.socket.Stats().bytes_sent_copied, 0u) << "a refused send was sent";
  EXPECT_TRUE(PostReceive().ok());
  EndEverything();
}

TEST_P(EventQueueTest, ASlotIsTakenUntilTheEventIsDequeued) {
  ASSERT_NO_FATAL_FAILURE(Open(2));
  ASSERT_TRUE(PostReceive().ok());
  ASSERT_TRUE(PostReceive().ok());
  Feed(1);
  const QueueStats stats = queue_.Stats();
  EXPECT_EQ(stats.depth, 2u);
  EXPECT_EQ(stats.waiting, 1u);
  EXPECT_EQ(stats.reserved, 1u);
  EXPECT_TRUE(Refuses(PostReceive(), ErrorKind::kQueueFull, absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(*queue_.TryDequeue(absl::MakeSpan(out_)), 1u);
  EXPECT_TRUE(PostReceive().ok());
  EndEverything();
}

TEST_P(EventQueueTest, AnAcceptTakesTheNextConnectionWhenASlotIsFree) {
  const Address address = Listen();
  queue_ = *server_.context.CreateQueue({.depth = 2});
  ASSERT_TRUE(listener_.Accept(0, {.queue = queue_}).ok());
  std::vector<Socket> sockets;
  for (int i = 0; i < 5; ++i) {
    sockets.push_back(*client_.context.CreateSocket(Family::kIpv4));
    (void)client_.Accepted(sockets.back().Connect(address, client_.Args()));
  }
  size_t accepted = 0;
  EXPECT_TRUE(Pump([&] {
    EXPECT_LE(queue_.Stats().waiting, 2u);
    std::array<Event, 1> one;
    const auto taken = queue_.TryDequeue(absl::MakeSpan(one));
    if (taken.value_or(0) == 1 && one[0].ok()) {
      ++accepted;
      EXPECT_NE(one[0].accepted, SocketId::kNone);
    }
    return accepted == 5;
  }));
  listener_ = {};
  EXPECT_TRUE(Pump([&] { return queue_.Stats().reserved == 0; }));
}

TEST_P(EventQueueTest, AnAcceptThatWaitsForASlotGoesOnWhenTheQueueIsMadeDeeper) {
  const Address address = Listen();
  queue_ = *server_.context.CreateQueue({.depth = 2});
  ASSERT_TRUE(listener_.Accept(0, {.queue = queue_}).ok());
  std::vector<Socket> sockets;
  for (int i = 0; i < 4; ++i) {
    sockets.push_back(*client_.context.CreateSocket(Family::kIpv4));
    (void)client_.Accepted(sockets.back().Connect(address, client_.Args()));
  }
  EXPECT_TRUE(Pump([&] { return queue_.Stats().starved > 0; }));
  EXPECT_EQ(queue_.Stats().waiting, 1u);
  EXPECT_TRUE(queue_.Resize(8).ok());
  EXPECT_TRUE(Pump([&] { return queue_.Stats().waiting == 4; }));
  listener_ = {};
  EXPECT_TRUE(Pump([&] { return queue_.Stats().reserved == 0; }));
}

TEST_P(EventQueueTest, ACloseSendsHomeWhoWaits) {
  if (!HasThread(world())) GTEST_SKIP() << "a second thread waits";
  EventQueue queue = *server_.context.CreateQueue({});
  absl::StatusOr<size_t> taken = size_t{0};
  std::atomic<bool> begun = false;
  std::thread waiter([&] {
    std::array<Event, 1> one;
    begun = true;
    taken = queue.Dequeue(absl::MakeSpan(one), {.deadline = absl::Now() + absl::Seconds(60)});
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // most likely it sleeps by now
  const absl::Time before = absl::Now();
  EXPECT_TRUE(queue.Close().ok());
  waiter.join();
  EXPECT_LT(absl::Now() - before, absl::Seconds(30));
  EXPECT_TRUE(Refuses(taken, ErrorKind::kBadHandle, absl::StatusCode::kNotFound));
}

TEST_P(EventQueueTest, EventsAreDequeuedOldestFirstInAnyPortions) {
  ASSERT_NO_FATAL_FAILURE(Open(64));
  std::vector<OpId> posted;
  for (int i = 0; i < 10; ++i) posted.push_back(PostReceive().value_or(OpId::kNone));
  Feed(10);
  std::vector<OpId> seen;
  for (const size_t portion : {size_t{3}, size_t{1}, size_t{60}}) {
    const auto taken = queue_.TryDequeue(absl::MakeSpan(out_).subspan(0, portion));
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_LE(*taken, portion);
    for (size_t i = 0; i < *taken; ++i) seen.push_back(out_[i].op);
  }
  EXPECT_EQ(seen, posted);
  EXPECT_EQ(*queue_.TryDequeue(absl::MakeSpan(out_)), 0u);
  const QueueStats stats = queue_.Stats();
  EXPECT_EQ(stats.events, 10u);
  EXPECT_EQ(stats.waiting_max, 10u);
  EXPECT_EQ(stats.waiting, 0u);
  EXPECT_EQ(stats.reserved, 0u);
}

TEST_P(EventQueueTest, EventsGoToTheQueueThatTheirOperationNames) {
  ASSERT_NO_FATAL_FAILURE(Open(4));
  const auto here = PostReceive();
  ASSERT_TRUE(here.ok());
  const OpId there = server_.Recv(Make(server_, 1).All(), RecvFlags::kWaitAll);
  Feed(1);
  EXPECT_EQ(*queue_.TryDequeue(absl::MakeSpan(out_)), 1u);
  EXPECT_EQ(out_[0].op, *here);
  EXPECT_EQ(server_.Find(there), nullptr);
  (void)client_.Send(from_->At(0, 1));
  EndWell(server_, there, 1);
}

// The descriptor stays readable until the last event is taken, however it is watched.
TEST_P(EventQueueTest, TheDescriptorIsLevelTriggeredUntilDrained) {
  ASSERT_NO_FATAL_FAILURE(Open(8));
  const int inner = epoll_create1(EPOLL_CLOEXEC);
  const int outer = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 5}};
  ASSERT_EQ(epoll_ctl(inner, EPOLL_CTL_ADD, queue_.fd(), &event), 0);
  ASSERT_EQ(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event), 0);
  using Answers = std::array<bool, 3>;  // by itself, in an epoll, in an epoll in an epoll
  const auto readable = [&] {
    epoll_event got{};
    return Answers{IsReadable(queue_.fd()), epoll_wait(inner, &got, 1, 0) == 1,
                   epoll_wait(outer, &got, 1, 0) == 1};
  };
  constexpr Answers kYes = {true, true, true};
  constexpr Answers kNo = {false, false, false};
  // Moved by hand, it also tells of the library's own timers.
  const auto comes_to_rest = [&] {
    for (int i = 0; i < 100; ++i) {
      Settle();
      if (readable() == kNo) return true;
    }
    return false;
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(PostReceive().ok());
  EXPECT_TRUE(comes_to_rest()) << "nothing has happened";
  Feed(3);
  for (int left = 3; left > 0; --left) {
    EXPECT_EQ(readable(), kYes) << left << " events are waiting";
    EXPECT_EQ(readable(), kYes) << "it is no edge";
    EXPECT_EQ(*queue_.TryDequeue(absl::MakeSpan(out_).subspan(0, 1)), 1u);
  }
  EXPECT_TRUE(comes_to_rest()) << "it is drained";
  close(outer);
  close(inner);
}

TEST_P(EventQueueTest, TheDescriptorIsClosedByExecAndNoneForAnEmptyHandle) {
  const int flags = fcntl(server_.queue.fd(), F_GETFD);
  ASSERT_GE(flags, 0);
  EXPECT_NE(flags & FD_CLOEXEC, 0);
  EXPECT_EQ(EventQueue().fd(), -1);
}

// An event loop that does nothing but what the descriptors say.
TEST_P(DescriptorTest, ALoopThatOnlyFollowsTheDescriptorsCarriesEverything) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Memory& from = Make(client_, 1 << 20);
  Memory& to = Make(server_, 1 << 20);
  from.Fill(NewSeed());
  for (uint64_t at = 0; at < from.size(); at += 128 * 1024) {
    (void)server_.Recv(to.At(at, 128 * 1024), RecvFlags::kWaitAll);
    (void)client_.Send(from.At(at, 128 * 1024));
  }
  while (client_.Outstanding() + server_.Outstanding() > 0) {
    std::array<pollfd, 2> both = {pollfd{client_.queue.fd(), POLLIN, 0},
                                  pollfd{server_.queue.fd(), POLLIN, 0}};
    ASSERT_GT(poll(both.data(), both.size(), 10'000), 0) << "no descriptor tells of the work left";
    if (both[0].revents != 0) client_.Collect();
    if (both[1].revents != 0) server_.Collect();
  }
  EXPECT_TRUE(SameBytes(from.bytes, to.bytes));
}

TEST_P(EventQueueTest, ResizeTakesAnyDepthThatHoldsWhatIsPromised) {
  ASSERT_NO_FATAL_FAILURE(Open(2));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(PostReceive().ok());
  EXPECT_TRUE(Refuses(queue_.Resize(1), ErrorKind::kBusy, absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(queue_.Stats().depth, 2u);
  EXPECT_TRUE(queue_.Resize(5).ok());
  EXPECT_EQ(queue_.Stats().depth, 5u);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(PostReceive().ok());
  EXPECT_FALSE(PostReceive().ok());
  Feed(4);
  EXPECT_TRUE(Refuses(queue_.Resize(4), ErrorKind::kBusy, absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(*queue_.TryDequeue(absl::MakeSpan(out_).subspan(0, 3)), 3u);
  EXPECT_TRUE(queue_.Resize(2).ok()) << "one event and one operation are left";
  EXPECT_EQ(*queue_.TryDequeue(absl::MakeSpan(out_)), 1u);
  EXPECT_TRUE(queue_.Resize(1).ok());
  Feed(1);
  EXPECT_EQ(*queue_.TryDequeue(absl::MakeSpan(out_)), 1u);
}

TEST_P(EventQueueTest, ResizeKeepsTheEventsAndTheirOrder) {
  ASSERT_NO_FATAL_FAILURE(Open(7));
  std::vector<OpId> posted;
  for (int round = 0; round < 3; ++round) {  // so that the ring has wrapped
    posted.clear();
    for (int i = 0; i < 5; ++i) posted.push_back(PostReceive().value_or(OpId::kNone));
    Feed(5);
    if (round < 2) {
      EXPECT_EQ(*queue_.TryDequeue(absl::MakeSpan(out_)), 5u);
    }
  }
  EXPECT_TRUE(queue_.Resize(50).ok());
  EXPECT_TRUE(queue_.Resize(5).ok());
  EXPECT_EQ(*queue_.TryDequeue(absl::MakeSpan(out_)), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(out_[i].op, posted[i]);
}

TEST_P(EventQueueTest, DepthsOutsideTheirRangeAreRefusedWithTheRange) {
  for (const uint32_t depth : {0u, (1u << 20) + 1}) {
    const auto queue = server_.context.CreateQueue({.depth = depth});
    EXPECT_TRUE(Refuses(queue, ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument));
    EXPECT_NE(queue.status().message().find("1048576"), std::string::npos) << queue.status();
  }
  EXPECT_TRUE(Refuses(server_.queue.Resize(0), ErrorKind::kInvalidArgument,
                      absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(Refuses(server_.queue.Resize((1 << 20) + 1), ErrorKind::kInvalidArgument,
                      absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace esdp::contract
