#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "esdp/stream.h"
#include "gtest/gtest.h"
#include "tests/base/content.h"
#include "tests/sockets/harness.h"

// The descriptor of a Stream: what poll and epoll say of it.

namespace esdp::contract {
namespace {

constexpr short kAsked = POLLIN | POLLOUT | POLLPRI | POLLRDHUP;

class StreamDescriptorTest : public PairTest {
 protected:
  void SetUp() override {
    PairTest::SetUp();
    Connect();
    const StreamOptions options{.send_buffer_bytes = 65536};
    near_ = Stream::Of(client_.context, std::move(client_.socket), options).value();
    far_ = Stream::Of(server_.context, std::move(server_.socket), options).value();
    fd_ = near_.fd().value();
  }
  void TearDown() override {
    if (epoll_ >= 0) close(epoll_);
    near_ = Stream();
    far_ = Stream();
    PairTest::TearDown();
  }
  static short Now(int fd) {
    pollfd entry{.fd = fd, .events = kAsked, .revents = 0};
    return poll(&entry, 1, 0) >= 0 ? entry.revents : short{-1};
  }
  short Now() const { return Now(fd_); }
  // In time.
  void ExpectShows(short expected) {
    EXPECT_TRUE(Pump([&] { return Now() == expected; }))
        << "shows " << Now() << ", not " << expected;
  }
  void Write(Stream& stream, size_t size, const WriteArgs& args = {.wait = false}) {
    const std::vector<std::byte> bytes(size);
    EXPECT_EQ(stream.Write(bytes, args).value_or(0), size);
  }
  size_t Take(Stream& stream, size_t size) {
    std::vector<std::byte> bytes(size);
    const auto read = stream.Read(absl::MakeSpan(bytes), {.wait = false});
    return read.value_or(0);
  }
  // The stream is full, and stays so: whatever lies on the way has taken what it takes.
  void Fill(Stream& stream) {
    const std::vector<std::byte> bytes(65536);
    const auto takes = [&] { return stream.Write(bytes, {.wait = false}).ok(); };
    do {
      EXPECT_TRUE(Pump([&] { return !takes(); }));
      Settle();
    } while (takes());
  }
  void WatchEdges() {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    epoll_event wanted{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {}};
    ASSERT_EQ(epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &wanted), 0);
    (void)Edge();  // that of what holds at first
  }
  // The events of an edge that is there; 0 for none.
  uint32_t Edge() const {
    epoll_event event{};
    return epoll_wait(epoll_, &event, 1, 0) == 1 ? event.events : 0;
  }
  // In time, while others move the stream.
  bool AwaitEdge(uint32_t with) const {
    epoll_event event{};
    do {
      if (epoll_wait(epoll_, &event, 1, 20'000) != 1) return false;
    } while ((event.events & with) == 0);
    return true;
  }
  void ExpectEdge(uint32_t with) {
    uint32_t seen = 0;
    ASSERT_TRUE(Pump([&] { return ((seen |= Edge()) & with) != 0; })) << "no edge with " << with;
  }

  Stream near_, far_;
  int fd_ = -1;
  int epoll_ = -1;
};

TEST_P(StreamDescriptorTest, ItIsTheSameAtEachCall) {
  EXPECT_EQ(near_.fd().value_or(-1), fd_);
  EXPECT_NE(far_.fd().value_or(-1), fd_);
  EXPECT_TRUE(Refuses(Stream().fd(), ErrorKind::kBadHandle, absl::StatusCode::kNotFound));
}

TEST_P(StreamDescriptorTest, ItIsReadableWhileBytesWait) {
  ExpectShows(POLLOUT);
  Write(far_, 10);
  ExpectShows(POLLIN | POLLOUT);
  EXPECT_EQ(Take(near_, 4), 4u);
  ExpectShows(POLLIN | POLLOUT);
  EXPECT_EQ(Take(near_, 10), 6u);
  ExpectShows(POLLOUT);
  Write(far_, 1);
  ExpectShows(POLLIN | POLLOUT);
}

TEST_P(StreamDescriptorTest, WhatIsPeekedAtStaysReadable) {
  Write(far_, 10);
  ExpectShows(POLLIN | POLLOUT);
  std::vector<std::byte> bytes(10);
  EXPECT_EQ(near_.Read(absl::MakeSpan(bytes), {.peek = true, .wait = false}).value_or(0), 10u);
  Settle();
  EXPECT_EQ(Now(), POLLIN | POLLOUT);
  EXPECT_EQ(Take(near_, 10), 10u);
  ExpectShows(POLLOUT);
}

TEST_P(StreamDescriptorTest, ItIsWritableWhileBytesWouldBeTaken) {
  Fill(near_);
  ExpectShows(0);
  EXPECT_TRUE(Pump([&] {
    (void)Take(far_, 65536);
    return Now() == POLLOUT;
  }));
  Write(near_, 1);
}

TEST_P(StreamDescriptorTest, BothDirectionsShowAtOnce) {
  Fill(near_);
  ExpectShows(0);
  Write(far_, 5);
  ExpectShows(POLLIN);
  EXPECT_EQ(Take(near_, 5), 5u);
  ExpectShows(0);
}

TEST_P(StreamDescriptorTest, TheEndOfTheStreamShowsAsOfATcpSocket) {
  Write(far_, 3);
  ExpectShows(POLLIN | POLLOUT);
  ASSERT_TRUE(far_.ShutdownWrite().ok());
  ExpectShows(POLLIN | POLLOUT | POLLRDHUP);
  EXPECT_EQ(Take(near_, 3), 3u);
  ExpectShows(POLLIN | POLLOUT | POLLRDHUP);
  ASSERT_TRUE(near_.ShutdownWrite().ok());
  EXPECT_TRUE(Pump([&] { return (Now() & POLLHUP) != 0; }));
  EXPECT_EQ(Now() & POLLERR, 0);
}

TEST_P(StreamDescriptorTest, BehindTheEndOfItsOwnOutputItIsWritableAsATcpSocketIs) {
  ASSERT_TRUE(near_.ShutdownWrite().ok());
  Write(far_, 3);
  ExpectShows(POLLIN | POLLOUT);
  EXPECT_EQ(Take(near_, 3), 3u);
  ExpectShows(POLLOUT);
}

TEST_P(StreamDescriptorTest, AnAbortShowsAsAReset) {
  far_.Abort();
  EXPECT_TRUE(Pump([&] { return (Now() & (POLLERR | POLLHUP)) == (POLLERR | POLLHUP); })) << Now();
  EXPECT_NE(Now() & POLLIN, 0);
  EXPECT_NE(Now() & POLLOUT, 0);
}

TEST_P(StreamDescriptorTest, OneThatIsAskedForLateShowsWhatHolds) {
  Write(near_, 10);
  EXPECT_TRUE(Pump([&] { return far_.readiness().bytes == 10; }));
  EXPECT_EQ(Now(far_.fd().value()) & POLLIN, POLLIN);
  near_.Abort();
  EXPECT_TRUE(Pump([&] { return far_.readiness().failed; }));
  EXPECT_NE(Now(far_.fd().value()) & POLLERR, 0);
}

TEST_P(StreamDescriptorTest, ItGoesOnOnceTheStreamHasGoneThatHadItsSocketBefore) {
  Stream second = Stream::Of(client_.context, std::move(near_.socket())).value();
  const int fd = second.fd().value();
  near_ = Stream();
  Write(far_, 10);
  EXPECT_TRUE(Pump([&] { return (Now(fd) & POLLIN) != 0; }));
}

TEST_P(StreamDescriptorTest, AnUrgentByteShows) {
  Fill(far_);
  Pump([&] { return near_.readiness().bytes > 0; });
  Settle();
  EXPECT_EQ(Now() & POLLPRI, 0);
  EXPECT_TRUE(Pump([&] {
    (void)Take(near_, 65536);
    const std::byte mark{7};
    return far_.Write({&mark, 1}, {.wait = false, .urgent = true}).ok();
  }));
  EXPECT_TRUE(Pump([&] { return (Now() & POLLPRI) != 0; }));
}

TEST_P(StreamDescriptorTest, EachArrivalIsAnEdge) {
  WatchEdges();
  EXPECT_EQ(Edge(), 0u);
  Write(far_, 10);
  ASSERT_NO_FATAL_FAILURE(ExpectEdge(EPOLLIN));
  for (int i = 0; i < 40; ++i) {  // some are always left
    Write(far_, 10);
    ASSERT_NO_FATAL_FAILURE(ExpectEdge(EPOLLIN));
    EXPECT_EQ(Take(near_, 9), 9u);
    Settle();
    (void)Edge();
    EXPECT_EQ(Edge(), 0u);
  }
  EXPECT_EQ(Take(near_, 100), 50u);
  Settle();
  (void)Edge();
  Write(far_, 1);
  ExpectEdge(EPOLLIN);
}

TEST_P(StreamDescriptorTest, WhoAsksForNoEdgesHasThemWhereTheAnswerChangesAlone) {
  WatchEdges();
  near_.SetEdges(false);
  Write(far_, 10);
  ASSERT_NO_FATAL_FAILURE(ExpectEdge(EPOLLIN));
  Write(far_, 10);
  Settle();
  EXPECT_EQ(Edge(), 0u);
  ExpectShows(POLLIN | POLLOUT);
  EXPECT_EQ(Take(near_, 100), 20u);
  ExpectShows(POLLOUT);
  (void)Edge();
  Write(far_, 10);
  ASSERT_NO_FATAL_FAILURE(ExpectEdge(EPOLLIN));

  near_.SetEdges(true);
  Write(far_, 10);
  ExpectEdge(EPOLLIN);
}

TEST_P(StreamDescriptorTest, RoomAndTheEndAreEdges) {
  Fill(near_);
  ExpectShows(0);
  WatchEdges();
  EXPECT_EQ(Edge(), 0u);
  uint32_t seen = 0;
  EXPECT_TRUE(Pump([&] {
    (void)Take(far_, 65536);
    return ((seen |= Edge()) & EPOLLOUT) != 0;
  }));
  EXPECT_TRUE(Pump([&] { return Take(far_, 65536) == 0; }));
  ASSERT_TRUE(far_.ShutdownWrite().ok());
  ExpectEdge(EPOLLRDHUP);
  far_.Abort();
  ExpectEdge(EPOLLHUP);
}

// One edge may tell of both. Who stops at a read that was not filled waits for the next.
TEST_P(StreamDescriptorTest, TheEndIsAnEdgeOnceMoreWhenTheBytesBeforeItAreRead) {
  WatchEdges();
  Write(far_, 10);
  ASSERT_TRUE(far_.ShutdownWrite().ok());
  ExpectShows(POLLIN | POLLOUT | POLLRDHUP);
  Settle();
  (void)Edge();
  EXPECT_EQ(Edge(), 0u);
  EXPECT_EQ(Take(near_, 5), 5u);
  EXPECT_EQ(Take(near_, 100), 5u);
  ExpectEdge(EPOLLRDHUP);
}

class DescriptorThreadTest : public StreamDescriptorTest {};

TEST_P(DescriptorThreadTest, WhoWritesAtEdgesAloneGetsThrough) {
  constexpr size_t kSize = 8 << 20;
  WatchEdges();
  std::vector<std::byte> to(kSize);
  std::thread reader(
      [&] { EXPECT_EQ(far_.Read(absl::MakeSpan(to), {.min = kSize}).value_or(0), kSize); });
  std::vector<std::byte> from(kSize);
  FillByChance(1, from);
  size_t written = 0;
  bool edge = true;
  while (written < kSize && edge) {
    const size_t wanted = std::min<size_t>(kSize - written, 100'000);
    const auto some =
        near_.Write(absl::MakeConstSpan(from).subspan(written, wanted), {.wait = false});
    written += some.value_or(0);
    if (some.value_or(0) < wanted) edge = AwaitEdge(EPOLLOUT);
  }
  EXPECT_TRUE(edge) << "none behind " << written << " bytes";
  if (!edge) near_.Abort();
  reader.join();
  EXPECT_TRUE(SameBytes(from, to));
}

TEST_P(DescriptorThreadTest, WhoReadsAtEdgesAloneGetsThrough) {
  constexpr size_t kSize = 8 << 20;
  WatchEdges();
  std::vector<std::byte> from(kSize);
  FillByChance(2, from);
  std::thread writer([&] {
    for (size_t at = 0; at < kSize;) {
      const size_t length = std::min<size_t>(kSize - at, 1 + at % 200'000);
      if (!far_.Write(absl::MakeConstSpan(from).subspan(at, length)).ok()) return;
      at += length;
    }
  });
  std::vector<std::byte> to(kSize);
  size_t taken = 0;
  bool edge = true;
  while (taken < kSize && edge) {
    const auto some = near_.Read(absl::MakeSpan(to).subspan(taken), {.wait = false});
    taken += some.value_or(0);
    if (!some.ok()) edge = AwaitEdge(EPOLLIN);
  }
  EXPECT_TRUE(edge) << "none behind " << taken << " bytes";
  if (!edge) near_.Abort();
  writer.join();
  EXPECT_TRUE(SameBytes(from, to));
}

TEST_P(DescriptorThreadTest, WhatTheOtherShowsIsReadableAndGoesToZero) {
  constexpr size_t kSize = 1 << 20;
  std::vector<std::byte> from(kSize);
  FillByChance(1, from);
  std::thread writer([&] {
    EXPECT_TRUE(far_.SetOptions({.patience = absl::Seconds(30)}).ok());
    EXPECT_EQ(far_.Write(from, {.path = Path::kZeroCopy}).value_or(0), kSize);
  });
  std::vector<std::byte> to(kSize);
  size_t taken = 0;
  while (taken < kSize) {
    pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&entry, 1, 20'000), 1);
    const auto read = near_.Read(absl::MakeSpan(to).subspan(taken), {.wait = false});
    if (read.ok()) taken += *read;
  }
  writer.join();
  EXPECT_TRUE(SameBytes(from, to));
  ExpectShows(POLLOUT);
}

ESDP_ON_EVERY_WORLD(StreamDescriptorTest);
INSTANTIATE_TEST_SUITE_P(On, DescriptorThreadTest, ::testing::ValuesIn(WorldsWithThread()),
                         ParamName);

}  // namespace
}  // namespace esdp::contract
