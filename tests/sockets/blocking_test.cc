#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "esdp/stream.h"
#include "gtest/gtest.h"
#include "tests/base/content.h"
#include "tests/sockets/harness.h"

// Streams: blocking calls on memory that nobody registered.

namespace esdp::contract {
namespace {

using Bytes = std::vector<std::byte>;

constexpr size_t kMiB = 1 << 20;
constexpr auto kSoon = absl::Seconds(20);

Bytes Drawn(size_t size, uint64_t seed) {
  Bytes bytes(size);
  FillByChance(seed, bytes);
  return bytes;
}

class BlockingTest : public PairTest {
 protected:
  void SetUp() override {
    PairTest::SetUp();
    Join({}, {});
  }
  void Join(const StreamOptions& near, const StreamOptions& far) {
    Connect();
    near_ = Stream::Of(client_.context, std::move(client_.socket), near).value();
    far_ = Stream::Of(server_.context, std::move(server_.socket), far).value();
  }
  void TearDown() override {
    near_ = Stream();
    far_ = Stream();
    PairTest::TearDown();
  }
  // However slow this machine is, nothing is copied because the peer is late.
  void BePatient() { ASSERT_TRUE(near_.SetOptions({.patience = absl::Seconds(30)}).ok()); }
  absl::Time After(absl::Duration wait) const { return client_.context.Now() + wait; }
  // All of it, whatever pieces it comes in.
  Bytes ReadAll(Stream& stream, size_t size) {
    Bytes bytes(size);
    const auto read = stream.Read(absl::MakeSpan(bytes), {.min = size, .deadline = After(kSoon)});
    EXPECT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read.value_or(0), size);
    return bytes;
  }
  static void ExpectWritten(Stream& stream, absl::Span<const std::byte> bytes,
                            const WriteArgs& args = {}) {
    const auto written = stream.Write(bytes, args);
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_EQ(*written, bytes.size());
  }
  bool on_device() const { return TransportOf(world()) == Transport::kVerbs; }
  static void ExpectNothingRegistered(const Stream& stream) {
    EXPECT_EQ(stream.Stats().registered_now, 0u);
  }

  Stream near_, far_;
};

class BlockingThreadTest : public BlockingTest {};

// --- bytes ---

TEST_P(BlockingThreadTest, BytesOfEachSizeArriveWhole) {
  for (const size_t size : {size_t{1}, size_t{64}, size_t{2048}, size_t{2049}, size_t{65'535},
                            size_t{65'536}, size_t{300'001}, 3 * kMiB + 7}) {
    SCOPED_TRACE(size);
    const Bytes bytes = Drawn(size, size);
    std::thread writer([&] { ExpectWritten(near_, bytes); });
    EXPECT_TRUE(SameBytes(ReadAll(far_, size), bytes));
    writer.join();
  }
  ExpectNothingRegistered(near_);
  ExpectNothingRegistered(far_);
}

TEST_P(BlockingThreadTest, BothDirectionsGoAtOnceAndInPiecesOfAnySize) {
  constexpr size_t kTotal = 8 * kMiB;
  const Bytes there = Drawn(kTotal, 1);
  const Bytes back = Drawn(kTotal, 2);
  const auto write = [](Stream& stream, const Bytes& bytes, uint64_t seed) {
    for (size_t at = 0; at < bytes.size();) {
      seed = seed * 6364136223846793005u + 1;
      const size_t size = std::min<size_t>(bytes.size() - at, 1 + (seed >> 33) % 400'000);
      ExpectWritten(stream, absl::MakeConstSpan(bytes).subspan(at, size));
      at += size;
    }
  };
  const auto read = [](Stream& stream, Bytes& bytes, uint64_t seed) {
    for (size_t at = 0; at < bytes.size();) {
      seed = seed * 6364136223846793005u + 1;
      const size_t size = std::min<size_t>(bytes.size() - at, 1 + (seed >> 33) % 400'000);
      const auto got = stream.Read(absl::MakeSpan(bytes).subspan(at, size));
      ASSERT_TRUE(got.ok()) << got.status();
      ASSERT_GT(*got, 0u);
      at += *got;
    }
  };
  Bytes got_there(kTotal), got_back(kTotal);
  std::vector<std::thread> threads;
  threads.emplace_back([&] { write(near_, there, 3); });
  threads.emplace_back([&] { write(far_, back, 4); });
  threads.emplace_back([&] { read(far_, got_there, 5); });
  threads.emplace_back([&] { read(near_, got_back, 6); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(SameBytes(got_there, there));
  EXPECT_TRUE(SameBytes(got_back, back));
  ExpectNothingRegistered(near_);
  ExpectNothingRegistered(far_);
}

TEST_P(BlockingThreadTest, ALargeWriteMeetsALargeReadWithoutACopy) {
  BePatient();
  const Bytes bytes = Drawn(4 * kMiB, 1);
  std::thread writer([&] { ExpectWritten(near_, bytes); });
  EXPECT_TRUE(SameBytes(ReadAll(far_, bytes.size()), bytes));
  writer.join();
  const StreamStats stats = near_.Stats();
  EXPECT_GE(stats.socket.bytes_sent_zero_copy, bytes.size() - 64);
  EXPECT_EQ(stats.registrations, 4 * kMiB / (on_device() ? 512 * 1024 : 256 * 1024));
  EXPECT_GE(stats.registered_bytes, bytes.size());
  EXPECT_GE(far_.Stats().socket.bytes_received_zero_copy, bytes.size() - 64);
  EXPECT_EQ(far_.Stats().socket.sink_adverts_sent, 0u) << "no receive is ever shown";
  ExpectNothingRegistered(near_);
}

TEST_P(BlockingThreadTest, AWriteThatNobodyReadsHasAMebibyteRegisteredOrWhatItsOptionsSay) {
  const auto expect = [&](const StreamOptions& options, uint64_t chunks, uint64_t bytes) {
    ASSERT_TRUE(near_.SetOptions(options).ok());
    const uint64_t before = near_.Stats().registrations;
    const Bytes written = Drawn(4 * kMiB, 1);
    std::thread writer([&] { ExpectWritten(near_, written); });
    EXPECT_TRUE(Pump([&] { return near_.Stats().registered_now >= bytes; }));
    absl::SleepFor(absl::Milliseconds(5));  // for more than that
    EXPECT_EQ(near_.Stats().registered_now, bytes);
    EXPECT_EQ(near_.Stats().registrations - before, chunks);
    EXPECT_TRUE(SameBytes(ReadAll(far_, written.size()), written));
    writer.join();
    ExpectNothingRegistered(near_);
  };
  constexpr auto kLong = absl::Seconds(30);
  expect({.zcopy_min = 65'536, .patience = kLong}, on_device() ? 2 : 4, kMiB);
  expect({.zcopy_min = 65'536, .chunk_bytes = 65'536, .chunks_max = 3, .patience = kLong}, 3,
         3 * 65'536);
}

TEST_P(BlockingThreadTest, SmallReadsOfALargeWriteComeFromMemoryReadAhead) {
  BePatient();
  const Bytes bytes = Drawn(kMiB, 1);
  std::thread writer([&] { ExpectWritten(near_, bytes); });
  Bytes got;
  std::array<std::byte, 1000> part;
  while (got.size() < bytes.size()) {
    const auto read = far_.Read(absl::MakeSpan(part));
    ASSERT_TRUE(read.ok()) << read.status();
    got.insert(got.end(), part.begin(), part.begin() + static_cast<ptrdiff_t>(*read));
  }
  writer.join();
  EXPECT_TRUE(SameBytes(got, bytes));
  EXPECT_GT(far_.Stats().read_ahead_bytes, kMiB / 2);
  EXPECT_GT(near_.Stats().socket.bytes_sent_zero_copy, kMiB / 2);
  EXPECT_EQ(far_.Stats().registrations, 0u);
}

TEST_P(BlockingThreadTest, PiecesAreGatheredAndScatteredInOrder) {
  const Bytes bytes = Drawn(300'000, 1);
  const absl::Span<const std::byte> all(bytes);
  const std::array<absl::Span<const std::byte>, 5> pieces = {
      all.first(10), all.subspan(10, 0), all.subspan(10, 100'000), all.subspan(100'010, 5),
      all.subspan(100'015)};
  std::thread writer([&] { EXPECT_EQ(near_.WriteV(pieces).value(), bytes.size()); });
  Bytes got(bytes.size());
  const auto into = absl::MakeSpan(got);
  const std::array<absl::Span<std::byte>, 4> places = {
      into.first(7), into.subspan(7, 199'993), into.subspan(200'000, 0), into.subspan(200'000)};
  EXPECT_EQ(far_.ReadV(places, {.min = bytes.size()}).value(), bytes.size());
  writer.join();
  EXPECT_TRUE(SameBytes(got, bytes));
}

TEST_P(BlockingThreadTest, SmallPiecesOfOneWriteShareAMessage) {
  const Bytes bytes = Drawn(100, 1);
  const absl::Span<const std::byte> all(bytes);
  const std::array<absl::Span<const std::byte>, 3> pieces = {all.first(10), all.subspan(10, 60),
                                                             all.subspan(70)};
  ASSERT_EQ(near_.WriteV(pieces).value(), 100u);
  EXPECT_TRUE(SameBytes(ReadAll(far_, 100), bytes));
  EXPECT_EQ(near_.Stats().socket.sends_copied, 1u);
}

TEST_P(BlockingThreadTest, RegisteredMemoryIsWrittenWithoutARegistration) {
  Memory& from = Make(client_, kMiB);
  from.Fill(1);
  std::thread writer([&] { EXPECT_EQ(near_.Write(from.All()).value(), kMiB); });
  EXPECT_TRUE(SameBytes(ReadAll(far_, kMiB), from.bytes));
  writer.join();
  EXPECT_EQ(near_.Stats().registrations, 0u);
  EXPECT_GT(near_.Stats().socket.bytes_sent_zero_copy, kMiB / 2);
}

TEST_P(BlockingThreadTest, ManyWritersAndReadersTakeTurns) {
  constexpr size_t kEach = 200;
  constexpr size_t kThreads = 4;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const std::array<std::byte, 8> same = [&] {
        std::array<std::byte, 8> bytes;
        bytes.fill(static_cast<std::byte>(i));
        return bytes;
      }();
      for (size_t n = 0; n < kEach; ++n) ExpectWritten(near_, same);
    });
  }
  std::array<std::atomic<size_t>, kThreads> seen{};
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (size_t n = 0; n < kEach; ++n) {
        std::array<std::byte, 8> got;
        ASSERT_EQ(far_.Read(absl::MakeSpan(got), {.min = 8}).value(), 8u);
        for (const std::byte byte : got) ASSERT_EQ(byte, got[0]);
        ++seen[static_cast<size_t>(got[0])];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& count : seen) EXPECT_EQ(count, kEach);
}

// --- the promise of a socket buffer ---

TEST_P(BlockingThreadTest, TwoThatBothWriteBeforeTheyReadBothReturn) {
  const Bytes there = Drawn(kMiB, 1);
  const Bytes back = Drawn(kMiB, 2);
  std::thread other([&] {
    ExpectWritten(far_, back);
    EXPECT_TRUE(SameBytes(ReadAll(far_, kMiB), there));
  });
  ExpectWritten(near_, there);
  EXPECT_TRUE(SameBytes(ReadAll(near_, kMiB), back));
  other.join();
  ExpectNothingRegistered(near_);
  ExpectNothingRegistered(far_);
}

TEST_P(BlockingThreadTest, TwoConnectionsWhoseEndsReadInTheOtherOrderBothReturn) {
  Stream first_near = std::move(near_), first_far = std::move(far_);
  Join({}, {});
  const Bytes bytes = Drawn(kMiB, 1);
  std::thread other([&] {
    EXPECT_TRUE(SameBytes(ReadAll(far_, kMiB), bytes));
    EXPECT_TRUE(SameBytes(ReadAll(first_far, kMiB), bytes));
  });
  ExpectWritten(first_near, bytes);
  ExpectWritten(near_, bytes);
  other.join();
  EXPECT_GE(first_near.Stats().patience_ran_out, 0u);
}

TEST_P(BlockingThreadTest, AWriteThatThePeerReadsButForItsTailReturnsSoon) {
  const Bytes bytes = Drawn(4 * kMiB, 1);
  constexpr size_t kTail = 200'000;
  std::thread reader([&] { (void)ReadAll(far_, bytes.size() - kTail); });
  ExpectWritten(near_, bytes, {.deadline = After(kSoon)});
  reader.join();
  ExpectNothingRegistered(near_);
  EXPECT_TRUE(SameBytes(ReadAll(far_, kTail), absl::MakeConstSpan(bytes).last(kTail)));
}

TEST_P(BlockingThreadTest, AfterAWriteThePeerCannotReachItsMemory) {
  Bytes bytes = Drawn(kMiB, 1);
  const Bytes before = bytes;
  ExpectWritten(near_, bytes);  // nobody reads: patience runs out, and its tail is copied
  EXPECT_EQ(near_.Stats().patience_ran_out, 1u);
  ExpectNothingRegistered(near_);
  FillByChance(2, bytes);
  EXPECT_TRUE(SameBytes(ReadAll(far_, kMiB), before));
}

TEST_P(BlockingThreadTest, AWriteBeyondTheSendBufferWaitsForThePeer) {
  const Bytes bytes = Drawn(16 * kMiB, 1);
  std::atomic<bool> returned{false};
  std::thread writer([&] {
    ExpectWritten(near_, bytes);
    returned = true;
  });
  Settle();
  EXPECT_FALSE(returned);
  EXPECT_TRUE(SameBytes(ReadAll(far_, bytes.size()), bytes));
  writer.join();
}

TEST_P(BlockingThreadTest, WithoutPatienceAllIsCopied) {
  ASSERT_TRUE(near_.SetOptions({.patience = absl::ZeroDuration()}).ok());
  const Bytes bytes = Drawn(kMiB, 1);
  ExpectWritten(near_, bytes);
  EXPECT_TRUE(SameBytes(ReadAll(far_, kMiB), bytes));
  EXPECT_EQ(near_.Stats().registrations, 0u);
  EXPECT_EQ(near_.Stats().socket.bytes_sent_zero_copy, 0u);
}

// --- deadlines, and calls that do not wait ---

TEST_P(BlockingTest, AReadEndsAtItsDeadlineAndTheNextOneGetsWhatComes) {
  std::array<std::byte, 100> memory;
  const auto late = near_.Read(absl::MakeSpan(memory), {.deadline = After(absl::Milliseconds(5))});
  EXPECT_TRUE(Refuses(late, ErrorKind::kDeadlineExceeded, absl::StatusCode::kDeadlineExceeded));
  const Bytes bytes = Drawn(100, 1);
  ExpectWritten(far_, bytes);
  EXPECT_TRUE(SameBytes(ReadAll(near_, 100), bytes));
}

TEST_P(BlockingTest, AReadThatGotAPartByItsDeadlineReturnsIt) {
  const Bytes bytes = Drawn(60, 1);
  ExpectWritten(far_, bytes);
  Settle();
  Bytes got(100);
  const auto read =
      near_.Read(absl::MakeSpan(got), {.min = 100, .deadline = After(absl::Milliseconds(20))});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, 60u);
  got.resize(60);
  EXPECT_TRUE(SameBytes(got, bytes));
}

TEST_P(BlockingThreadTest, AWriteEndsAtItsDeadlineAndSaysHowMuchHasMoved) {
  const Bytes bytes = Drawn(16 * kMiB, 1);
  const auto written = near_.Write(bytes, {.deadline = After(absl::Milliseconds(200))});
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_GE(*written, kMiB) << "a socket's buffer at least";
  EXPECT_LT(*written, bytes.size());
  ExpectNothingRegistered(near_);
  // Exactly so much is in the stream.
  ASSERT_TRUE(near_.ShutdownWrite().ok());
  Bytes got(bytes.size());
  const auto read = far_.Read(absl::MakeSpan(got), {.min = got.size(), .deadline = After(kSoon)});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, *written);
  EXPECT_TRUE(
      SameBytes(absl::MakeConstSpan(got).first(*read), absl::MakeConstSpan(bytes).first(*read)));
}

TEST_P(BlockingTest, WhatDoesNotWaitTellsThatItWouldBlock) {
  std::array<std::byte, 100> memory{};
  EXPECT_TRUE(Refuses(near_.Read(absl::MakeSpan(memory), {.wait = false}), ErrorKind::kWouldBlock,
                      absl::StatusCode::kResourceExhausted));
  size_t written = 0;
  const Bytes bytes = Drawn(300'000, 1);
  for (;;) {
    const auto part = near_.Write(bytes, {.wait = false});
    if (!part.ok()) {
      EXPECT_TRUE(Refuses(part, ErrorKind::kWouldBlock, absl::StatusCode::kResourceExhausted));
      break;
    }
    ASSERT_GT(*part, 0u);
    written += *part;
    ASSERT_LT(written, 64 * kMiB);
  }
  EXPECT_GE(written, kMiB);
  EXPECT_TRUE(Pump([&] { return far_.readiness().bytes >= 100; }));
  const auto read = far_.Read(absl::MakeSpan(memory), {.wait = false});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, 100u);
}

TEST_P(BlockingThreadTest, WhatThePeerShowsIsReadWithoutAWaitForMore) {
  const Bytes bytes = Drawn(300'000, 1);
  std::thread writer([&] { ExpectWritten(near_, bytes); });
  Bytes got;
  std::array<std::byte, 100'000> part;
  while (got.size() < bytes.size()) {
    const auto read = far_.Read(absl::MakeSpan(part), {.wait = false});
    if (!read.ok()) {
      ASSERT_EQ(KindOf(read.status()), ErrorKind::kWouldBlock) << read.status();
      std::this_thread::yield();
      continue;
    }
    got.insert(got.end(), part.begin(), part.begin() + static_cast<ptrdiff_t>(*read));
  }
  writer.join();
  EXPECT_TRUE(SameBytes(got, bytes));
}

TEST_P(BlockingThreadTest, WhatDoesNotWaitDoesNotWaitForItsTurnEither) {
  std::array<std::byte, 10> memory{};
  const Bytes bytes = Drawn(16 * kMiB, 1);
  std::thread reader([&] { (void)near_.Read(absl::MakeSpan(memory)); });
  std::thread writer([&] { (void)near_.Write(bytes); });
  std::array<std::byte, 10> other{};
  EXPECT_TRUE(Pump([&] {  // once the writer waits
    return KindOf(near_.Write(other, {.wait = false}).status()) == ErrorKind::kWouldBlock;
  }));
  EXPECT_TRUE(Refuses(near_.Read(absl::MakeSpan(other), {.wait = false}), ErrorKind::kWouldBlock,
                      absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(Refuses(near_.Read(absl::MakeSpan(other), {.deadline = After(absl::Milliseconds(5))}),
                      ErrorKind::kDeadlineExceeded, absl::StatusCode::kDeadlineExceeded));
  EXPECT_TRUE(near_.ShutdownWrite().ok()) << "beside a Write that waits";
  near_.Abort();
  reader.join();
  writer.join();
}

// A peer that has asked for the rest of an advert in messages, and takes none of them.
TEST_P(BlockingThreadTest, APeerThatTakesNothingOfWhatItAskedForCostsTheConnectionNotTheCaller) {
  Connect({.cancel_grace = absl::Milliseconds(100)}, {.receive_buffers = 3});
  near_ = Stream::Of(client_.context, std::move(client_.socket), {}).value();
  const Bytes bytes = Drawn(2 * kMiB, 1);
  std::array<std::byte, 100> some;
  const OpId receive = server_.Accepted(
      server_.socket.RecvCopy(absl::MakeSpan(some), RecvFlags::kNone, server_.Args()));
  const auto written = near_.Write(bytes, {.deadline = After(absl::Milliseconds(200))});
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_LT(*written, bytes.size());
  ExpectNothingRegistered(near_);
  EXPECT_GT(End(server_, receive).bytes, 0u);
}

TEST_P(BlockingThreadTest, RegisteredMemoryThatIsUrgentComesBackByTheDeadline) {
  Connect({.cancel_grace = absl::Milliseconds(100)}, {});
  near_ = Stream::Of(client_.context, std::move(client_.socket), {}).value();
  Memory& from = Make(client_, kMiB);
  (void)near_.Write(from.All(), {.urgent = true, .deadline = After(absl::Milliseconds(50))});
  EXPECT_EQ(from.region.info().operations, 0u);
  EXPECT_TRUE(Refuses(near_.Write(from.All(), {.wait = false}), ErrorKind::kInvalidArgument,
                      absl::StatusCode::kInvalidArgument));
}

// --- peek and readiness ---

TEST_P(BlockingTest, PeekedBytesStayInTheStream) {
  const Bytes bytes = Drawn(100, 1);
  ExpectWritten(far_, bytes);
  Bytes got(100);
  ASSERT_EQ(near_.Read(absl::MakeSpan(got).first(10), {.peek = true}).value(), 10u);
  ASSERT_EQ(near_.Read(absl::MakeSpan(got), {.min = 100, .peek = true}).value(), 100u);
  EXPECT_TRUE(SameBytes(got, bytes));
  EXPECT_EQ(near_.readiness().bytes, 100u);
  EXPECT_TRUE(SameBytes(ReadAll(near_, 100), bytes));
  EXPECT_TRUE(Refuses(near_.Read(absl::MakeSpan(got), {.peek = true, .wait = false}),
                      ErrorKind::kWouldBlock, absl::StatusCode::kResourceExhausted));
}

TEST_P(BlockingThreadTest, PeekingAcrossMemoryThatIsShownGivesTheSameBytes) {
  const Bytes bytes = Drawn(kMiB, 1);
  std::thread writer([&] { ExpectWritten(near_, bytes); });
  Bytes peeked(1000);
  for (size_t at = 0; at < bytes.size();) {
    const size_t wanted = std::min<size_t>(1000, bytes.size() - at);
    ASSERT_EQ(
        far_.Read(absl::MakeSpan(peeked).first(wanted), {.min = wanted, .peek = true}).value(),
        wanted);
    const Bytes read = ReadAll(far_, wanted);
    ASSERT_TRUE(SameBytes(read, absl::MakeConstSpan(peeked).first(wanted)));
    ASSERT_TRUE(SameBytes(read, absl::MakeConstSpan(bytes).subspan(at, wanted)));
    at += wanted;
  }
  writer.join();
}

TEST_P(BlockingTest, ReadinessTellsWhatACallWouldDo) {
  EXPECT_FALSE(near_.readiness().readable);
  EXPECT_TRUE(Pump([&] { return near_.readiness().writable; }));
  EXPECT_EQ(near_.readiness().bytes, 0u);
  ExpectWritten(near_, Drawn(700'000, 1), {.path = Path::kCopy});  // more than leaves
  EXPECT_TRUE(near_.readiness().writable) << "the send buffer has room";
  EXPECT_GE(near_.Stats().socket.payload_copy_bytes, 700'000u);
  ExpectWritten(far_, Drawn(70, 1));
  EXPECT_TRUE(Pump([&] { return near_.readiness().bytes == 70; }));
  EXPECT_TRUE(near_.readiness().readable);
  std::array<std::byte, 50> part;
  ASSERT_EQ(near_.Read(absl::MakeSpan(part)).value(), 50u);
  EXPECT_EQ(near_.readiness().bytes, 20u);
  (void)ReadAll(near_, 20);
  EXPECT_FALSE(near_.readiness().readable);
  ASSERT_TRUE(far_.ShutdownWrite().ok());
  EXPECT_TRUE(Pump([&] { return near_.readiness().peer_ended; }));
  const StreamReadiness ended = near_.readiness();
  EXPECT_TRUE(ended.readable && ended.peer_ended && !ended.failed);
  EXPECT_FALSE(far_.readiness().writable) << "it has shut down";
  EXPECT_EQ(ended.bytes, 0u);
  far_.Abort();
  EXPECT_TRUE(Pump([&] { return near_.readiness().failed; }));
}

TEST_P(BlockingThreadTest, BytesThatAreShownCountAsReadable) {
  const Bytes bytes = Drawn(kMiB, 1);
  BePatient();
  std::thread writer([&] { ExpectWritten(near_, bytes); });
  EXPECT_TRUE(Pump([&] { return far_.readiness().readable; }));
  EXPECT_GE(far_.readiness().bytes, 1u);
  EXPECT_TRUE(SameBytes(ReadAll(far_, kMiB), bytes));
  writer.join();
}

// --- a threshold that is learned ---

// Where a registration costs something: on devices, and in the simulator, whose time passes in
// waits only. So the far end has its receives posted before each Write.
class BlockingThresholdTest : public BlockingTest {
 protected:
  static constexpr size_t kSize = 100'000;

  void WriteMany(const StreamOptions& options, int times) {
    Connect();
    near_ = Stream::Of(client_.context, std::move(client_.socket), options).value();
    Memory& to = Make(server_, kSize);
    for (int i = 0; i < times; ++i) {
      const Bytes bytes = Drawn(kSize, static_cast<uint64_t>(i));
      const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
      ExpectWritten(near_, bytes);
      ASSERT_NO_FATAL_FAILURE(EndWell(server_, receive, kSize));
      ASSERT_TRUE(SameBytes(to.bytes, bytes));
      ExpectNothingRegistered(near_);
    }
  }
};

TEST_P(BlockingThresholdTest, BothWaysAreTriedAndTheThresholdIsTold) {
  ASSERT_NO_FATAL_FAILURE(WriteMany({.patience = absl::Seconds(30)}, 100));
  const StreamStats stats = near_.Stats();
  EXPECT_GT(stats.registrations, 0u);
  EXPECT_LT(stats.registrations, 100u);
  EXPECT_GE(stats.socket.adaptive_threshold, 64u * 1024);
  EXPECT_LE(stats.socket.adaptive_threshold, 4u * kMiB);
}

TEST_P(BlockingThresholdTest, AThresholdThatIsGivenIsHeldTo) {
  ASSERT_NO_FATAL_FAILURE(WriteMany({.zcopy_min = 200'000, .patience = absl::Seconds(30)}, 100));
  EXPECT_EQ(near_.Stats().registrations, 0u);
  EXPECT_EQ(near_.Stats().socket.adaptive_threshold, 0u);
}

std::vector<World> WorldsThatLearn() {
  std::vector<World> worlds = Worlds();
  std::erase_if(worlds, [](World world) {
    return world != World::kSim && (!HasThread(world) || TransportOf(world) == Transport::kQpip);
  });
  return worlds;
}

// --- the end ---

TEST_P(BlockingTest, TheEndOfTheStreamIsReadAsOftenAsOneAsks) {
  ExpectWritten(far_, Drawn(10, 1));
  ASSERT_TRUE(far_.ShutdownWrite().ok());
  std::array<std::byte, 100> memory;
  EXPECT_EQ(near_.Read(absl::MakeSpan(memory), {.min = 100, .deadline = After(kSoon)}).value(),
            10u);
  EXPECT_EQ(near_.Read(absl::MakeSpan(memory)).value(), 0u);
  EXPECT_EQ(near_.Read(absl::MakeSpan(memory), {.wait = false}).value(), 0u);
  EXPECT_EQ(near_.Read(absl::MakeSpan(memory), {.peek = true}).value(), 0u);
  EXPECT_TRUE(
      Refuses(far_.Write(memory), ErrorKind::kShutDown, absl::StatusCode::kFailedPrecondition));
  ExpectWritten(near_, Drawn(10, 2));  // the other direction goes on
  EXPECT_TRUE(SameBytes(ReadAll(far_, 10), Drawn(10, 2)));
}

TEST_P(BlockingThreadTest, CloseWaitsUntilThePeerHasEverything) {
  const Bytes bytes = Drawn(kMiB, 1);
  ExpectWritten(near_, bytes);
  std::thread reader([&] {
    EXPECT_TRUE(SameBytes(ReadAll(far_, kMiB), bytes));
    std::array<std::byte, 1> more;
    EXPECT_EQ(far_.Read(absl::MakeSpan(more)).value(), 0u);
    EXPECT_TRUE(far_.Close().ok());
  });
  EXPECT_TRUE(near_.Close(After(kSoon)).ok());
  reader.join();
  EXPECT_TRUE(Refuses(near_.Close(), ErrorKind::kShutDown, absl::StatusCode::kFailedPrecondition));
}

TEST_P(BlockingThreadTest, CloseOfAPeerThatReadsNothingEndsAtItsDeadline) {
  ExpectWritten(near_, Drawn(kMiB, 1));
  const absl::Status closed = near_.Close(After(absl::Milliseconds(50)));
  EXPECT_TRUE(Refuses(closed, ErrorKind::kDeadlineExceeded, absl::StatusCode::kDeadlineExceeded));
}

TEST_P(BlockingThreadTest, CloseAndAbortSendHomeWhoWaits) {
  for (const bool abort : {false, true}) {
    std::array<std::byte, 10> memory;
    absl::StatusOr<size_t> read = 0;
    std::thread reader([&] { read = near_.Read(absl::MakeSpan(memory)); });
    absl::SleepFor(absl::Milliseconds(20));
    if (abort) {
      near_.Abort();
    } else {
      (void)near_.Close(After(absl::Milliseconds(100)));
    }
    reader.join();
    EXPECT_FALSE(read.ok());
    EXPECT_EQ(KindOf(read.status()), abort ? ErrorKind::kLocalAbort : ErrorKind::kShutDown);
    if (!abort) Join({}, {});
  }
}

TEST_P(BlockingThreadTest, CloseEndsAWriteThatWaitsForAPeerThatReadsNothing) {
  for (const Path path : {Path::kCopy, Path::kZeroCopy}) {
    const Bytes bytes = Drawn(16 * kMiB, 1);
    std::atomic<bool> returned{false};
    std::thread writer([&] {
      EXPECT_LT(near_.Write(bytes, {.path = path}).value_or(0), bytes.size());
      returned = true;
    });
    absl::SleepFor(absl::Milliseconds(50));
    std::thread closer([&] { (void)near_.Close(); });  // which waits for the peer
    EXPECT_TRUE(Pump([&] { return returned.load(); }));
    near_.Abort();
    closer.join();
    writer.join();
    ExpectNothingRegistered(near_);
    if (path == Path::kCopy) Join({}, {});
  }
}

TEST_P(BlockingThreadTest, AWriteIntoAConnectionThatEndsTellsWhy) {
  const Bytes bytes = Drawn(16 * kMiB, 1);
  absl::StatusOr<size_t> written = 0;
  std::thread writer([&] { written = near_.Write(bytes); });
  (void)ReadAll(far_, kMiB);
  far_.Abort();
  writer.join();
  if (written.ok()) {
    EXPECT_LT(*written, bytes.size());
    written = near_.Write(bytes);
  }
  EXPECT_TRUE(Refuses(written, ErrorKind::kPeerReset, absl::StatusCode::kAborted));
  ExpectNothingRegistered(near_);
}

TEST_P(BlockingThreadTest, AStreamThatIsDestroyedAborts) {
  far_ = Stream();
  std::array<std::byte, 10> memory;
  const auto read = near_.Read(absl::MakeSpan(memory), {.deadline = After(kSoon)});
  EXPECT_TRUE(Refuses(read, ErrorKind::kPeerReset, absl::StatusCode::kAborted));
}

TEST_P(BlockingThreadTest, AContextThatClosesUnderACallEndsIt) {
  std::array<std::byte, 10> memory;
  absl::StatusOr<size_t> read = 0;
  std::thread reader([&] { read = near_.Read(absl::MakeSpan(memory)); });
  absl::SleepFor(absl::Milliseconds(20));
  client_.socket = Socket();
  (void)client_.context.Close(After(absl::Milliseconds(10)));
  reader.join();
  EXPECT_FALSE(read.ok());
  EXPECT_TRUE(Refuses(near_.Write(memory), ErrorKind::kBadHandle, absl::StatusCode::kNotFound));
  near_ = Stream();
}

// --- signals ---

void Ignore(int) {}

class SignalTest : public BlockingThreadTest {
 protected:
  void SetUp() override {
    struct sigaction action = {};
    action.sa_handler = Ignore;
    sigaction(SIGUSR1, &action, nullptr);
    BlockingThreadTest::SetUp();
  }
};

TEST_P(SignalTest, ASignalEndsAReadThatHasNothing) {
  std::array<std::byte, 10> memory;
  absl::StatusOr<size_t> read = 0;
  std::atomic<bool> returned{false};
  std::thread reader([&] {
    read = near_.Read(absl::MakeSpan(memory));
    returned = true;
  });
  while (!returned) {
    pthread_kill(reader.native_handle(), SIGUSR1);
    absl::SleepFor(absl::Milliseconds(1));
  }
  reader.join();
  EXPECT_TRUE(Refuses(read, ErrorKind::kSignal, absl::StatusCode::kCancelled));
  const Bytes bytes = Drawn(10, 1);
  ExpectWritten(far_, bytes);
  EXPECT_TRUE(SameBytes(ReadAll(near_, 10), bytes)) << "nothing is lost";
}

TEST_P(SignalTest, WhoAsksForItIsNotInterrupted) {
  ASSERT_TRUE(near_.SetOptions({.restart_on_signal = true}).ok());
  std::array<std::byte, 10> memory;
  std::atomic<bool> returned{false};
  std::thread reader([&] {
    EXPECT_EQ(near_.Read(absl::MakeSpan(memory)).value_or(0), 10u);
    returned = true;
  });
  for (int i = 0; i < 50; ++i) {
    pthread_kill(reader.native_handle(), SIGUSR1);
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_FALSE(returned);
  ExpectWritten(far_, Drawn(10, 1));
  reader.join();
}

// As of recv.
class SignalRuleTest : public SignalTest {
 protected:
  static void Handle(int signal, int flags) {
    struct sigaction action = {};
    action.sa_handler = Ignore;
    action.sa_flags = flags;
    sigaction(signal, &action, nullptr);
  }
  void TearDown() override {
    ::signal(SIGUSR2, SIG_DFL);
    SignalTest::TearDown();
  }
  // Signals a Read until it ends, or 50 times; then a byte comes.
  absl::StatusOr<size_t> ReadWhileSignalled(const ReadArgs& args) {
    std::array<std::byte, 1> memory;
    absl::StatusOr<size_t> read = 0;
    std::atomic<bool> returned{false};
    std::thread reader([&] {
      read = near_.Read(absl::MakeSpan(memory), args);
      returned = true;
    });
    for (int i = 0; i < 50 && !returned; ++i) {
      pthread_kill(reader.native_handle(), SIGUSR1);
      absl::SleepFor(absl::Milliseconds(1));
    }
    ExpectWritten(far_, Drawn(1, 1));
    reader.join();
    return read;
  }
};

TEST_P(SignalRuleTest, AfterHandlersThatRestartAReadGoesOn) {
  Handle(SIGUSR1, SA_RESTART);
  EXPECT_EQ(ReadWhileSignalled({}).value_or(0), 1u);
}

TEST_P(SignalRuleTest, WithADeadlineItEndsAllTheSame) {
  Handle(SIGUSR1, SA_RESTART);
  EXPECT_TRUE(Refuses(ReadWhileSignalled({.deadline = After(kSoon)}), ErrorKind::kSignal,
                      absl::StatusCode::kCancelled));
}

TEST_P(SignalRuleTest, WhereOneHandlerOfTheProgramDoesNotRestartItEnds) {
  Handle(SIGUSR1, SA_RESTART);
  Handle(SIGUSR2, 0);
  EXPECT_TRUE(Refuses(ReadWhileSignalled({}), ErrorKind::kSignal, absl::StatusCode::kCancelled));
}

TEST_P(SignalTest, SignalsInATransferLoseNoByte) {
  const Bytes bytes = Drawn(32 * kMiB, 1);
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (size_t at = 0; at < bytes.size();) {
      const auto written = near_.Write(absl::MakeConstSpan(bytes).subspan(at));
      if (written.ok()) {
        at += *written;
      } else {
        ASSERT_EQ(KindOf(written.status()), ErrorKind::kSignal) << written.status();
      }
    }
  });
  Bytes got(bytes.size());
  std::thread reader([&] {
    for (size_t at = 0; at < got.size();) {
      const auto read = far_.Read(absl::MakeSpan(got).subspan(at));
      if (read.ok()) {
        at += *read;
      } else {
        ASSERT_EQ(KindOf(read.status()), ErrorKind::kSignal) << read.status();
      }
    }
    over = true;
  });
  while (!over) {
    pthread_kill(writer.native_handle(), SIGUSR1);
    pthread_kill(reader.native_handle(), SIGUSR1);
    absl::SleepFor(absl::Microseconds(200));
  }
  writer.join();
  reader.join();
  EXPECT_TRUE(SameBytes(got, bytes));
  ExpectNothingRegistered(near_);
  ExpectNothingRegistered(far_);
}

// --- urgent bytes ---

TEST_P(BlockingThreadTest, AnUrgentByteIsToldAndEndsTheReadThatGetsIt) {
  const Bytes bytes = Drawn(200'000, 1);
  std::thread writer([&] { ExpectWritten(near_, bytes, {.urgent = true}); });
  EXPECT_TRUE(Pump([&] { return far_.readiness().urgent; }));
  EXPECT_TRUE(SameBytes(ReadAll(far_, bytes.size()), bytes));
  writer.join();
  EXPECT_EQ(near_.Stats().socket.urgent_sent, 1u);
}

// --- bad input ---

TEST_P(BlockingTest, WhatIsWrongIsRefusedAndSaysWhatToDo) {
  std::array<std::byte, 10> memory{};
  const auto wrong = [](const auto& answer) {
    return Refuses(answer, ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument);
  };
  EXPECT_TRUE(wrong(near_.Read(absl::MakeSpan(memory), {.min = 11})));
  EXPECT_TRUE(wrong(near_.Write(absl::Span<const std::byte>(), {.urgent = true})));
  EXPECT_TRUE(wrong(near_.Write(Slice())));
  EXPECT_TRUE(wrong(near_.SetOptions({.chunk_bytes = 1})));
  EXPECT_TRUE(wrong(near_.SetOptions({.chunk_bytes = (size_t{1} << 30) + 1})));
  EXPECT_TRUE(wrong(near_.SetOptions({.chunks_max = 0})));
  EXPECT_TRUE(wrong(near_.SetOptions({.chunks_max = 17})));
  EXPECT_TRUE(wrong(near_.SetOptions({.send_buffer_bytes = 1})));
  EXPECT_TRUE(wrong(near_.SetOptions({.patience = -absl::Seconds(1)})));
  EXPECT_TRUE(wrong(Stream::Of(server_.context, std::move(near_.socket()))));
  EXPECT_TRUE(
      Refuses(near_.Write(memory), ErrorKind::kShutDown, absl::StatusCode::kFailedPrecondition))
      << "its socket is gone";
  EXPECT_EQ(near_.Write(absl::Span<const std::byte>()).value(), 0u);
  EXPECT_EQ(near_.Read({}).value(), 0u);
}

TEST_P(BlockingTest, AnEmptyHandleAndASocketThatIsNotConnectedAreRefused) {
  Stream none;
  std::array<std::byte, 10> memory{};
  const auto bad = [](const auto& answer) {
    return Refuses(answer, ErrorKind::kBadHandle, absl::StatusCode::kNotFound);
  };
  EXPECT_TRUE(bad(none.Read(absl::MakeSpan(memory))));
  EXPECT_TRUE(bad(none.Write(memory)));
  EXPECT_TRUE(bad(none.ShutdownWrite()));
  EXPECT_TRUE(bad(none.Close()));
  EXPECT_TRUE(bad(none.SetOptions({})));
  EXPECT_FALSE(none.valid() || none.readiness().readable || none.socket().valid());
  none.Abort();
  EXPECT_TRUE(bad(Stream::Of(client_.context, Socket())));
  Socket idle = client_.context.CreateSocket(Family::kIpv4).value();
  EXPECT_TRUE(Refuses(Stream::Of(client_.context, std::move(idle)), ErrorKind::kWrongState,
                      absl::StatusCode::kFailedPrecondition));
}

// --- connecting ---

TEST_P(BlockingThreadTest, StreamsConnectAndAreAccepted) {
  StreamListener listener = StreamListener::Listen(server_.context, HostOf(world(), 0)).value();
  const Address at = HostOf(world(), listener.local().port());
  Stream accepted;
  std::thread server([&] { accepted = listener.Accept().value(); });
  Stream connected = Stream::Connect(client_.context, at).value();
  server.join();
  ExpectWritten(connected, Drawn(10, 1));
  EXPECT_TRUE(SameBytes(ReadAll(accepted, 10), Drawn(10, 1)));
}

TEST_P(BlockingThreadTest, AcceptEndsAtItsDeadlineAndWithClose) {
  StreamListener listener = StreamListener::Listen(server_.context, HostOf(world(), 0)).value();
  EXPECT_TRUE(Refuses(listener.Accept({}, After(absl::Milliseconds(5))),
                      ErrorKind::kDeadlineExceeded, absl::StatusCode::kDeadlineExceeded));
  absl::Status ended;
  std::thread server([&] { ended = listener.Accept().status(); });
  absl::SleepFor(absl::Milliseconds(20));
  listener.Close();
  server.join();
  EXPECT_FALSE(ended.ok());
  EXPECT_TRUE(
      Refuses(listener.Accept(), ErrorKind::kShutDown, absl::StatusCode::kFailedPrecondition));
}

TEST_P(BlockingThreadTest, ConnectTellsThatNobodyListens) {
  StreamListener listener = StreamListener::Listen(server_.context, HostOf(world(), 0)).value();
  const Address at = HostOf(world(), listener.local().port());
  listener.Close();
  listener = StreamListener();
  const auto refused = Stream::Connect(client_.context, at, {}, After(absl::Seconds(5)));
  EXPECT_FALSE(refused.ok());
}

INSTANTIATE_TEST_SUITE_P(On, BlockingTest, ::testing::ValuesIn(Worlds()), ParamName);
INSTANTIATE_TEST_SUITE_P(On, BlockingThreadTest, ::testing::ValuesIn(WorldsWithThread()),
                         ParamName);
INSTANTIATE_TEST_SUITE_P(On, BlockingThresholdTest, ::testing::ValuesIn(WorldsThatLearn()),
                         ParamName);
INSTANTIATE_TEST_SUITE_P(On, SignalRuleTest, ::testing::ValuesIn(WorldsWithThread()), ParamName);
INSTANTIATE_TEST_SUITE_P(On, SignalTest, ::testing::ValuesIn(WorldsWithThread()), ParamName);

}  // namespace
}  // namespace esdp::contract
