#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "esdp/stream.h"
#include "gtest/gtest.h"
#include "tests/base/content.h"
#include "tests/base/sanitized.h"
#include "tests/sockets/harness.h"

// Of a caller's memory nothing is registered, and nothing pinned by a device, once a call of a
// Stream has returned, however it has ended. What is pinned the kernel tells (VmPin), on devices.

namespace esdp::contract {
namespace {

using Bytes = std::vector<std::byte>;

constexpr size_t kMiB = 1 << 20;
constexpr size_t kLong = 8 * kMiB;
// More at a time than all that a connection has of its own.
constexpr StreamOptions kShows{
    .zcopy_min = 65'536, .chunk_bytes = kMiB, .chunks_max = 4, .patience = absl::Seconds(30)};
constexpr StreamOptions kCopies{.zcopy_min = kNever};

void Ignore(int) {}

// Of this process, in bytes.
uint64_t PinnedNow() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmPin:")) return std::stoull(line.substr(6)) * 1024;
  }
  ADD_FAILURE() << "the kernel does not tell VmPin";
  return 0;
}

class BlockingMemoryTest : public PairTest {
 protected:
  void SetUp() override {
    struct sigaction action = {};
    action.sa_handler = Ignore;
    sigaction(SIGUSR1, &action, nullptr);
    PairTest::SetUp();
    Join();
  }
  void TearDown() override {
    near_ = Stream();
    far_ = Stream();
    PairTest::TearDown();
  }
  // The near end shows what it writes and reads into the caller's memory. The far end, which runs
  // in this process too, registers nothing.
  void Join() {
    Connect({.cancel_grace = absl::Milliseconds(200)}, {});
    near_ = Stream::Of(client_.context, std::move(client_.socket), kShows).value();
    far_ = Stream::Of(server_.context, std::move(server_.socket), kCopies).value();
    UseAllThatIsTheirOwn();
    pinned_ = Pinned();
    near_regions_ = client_.context.Stats().regions;
    far_regions_ = server_.context.Stats().regions;
  }
  // Send buffers, and memory to read ahead.
  void UseAllThatIsTheirOwn() {
    for (const auto& [from, to] : {std::pair(&near_, &far_), std::pair(&far_, &near_)}) {
      ASSERT_TRUE(from->SetOptions(kShows).ok());
      Bytes bytes(kMiB), read(kMiB);
      std::thread writer([&, from = from] { EXPECT_TRUE(from->Write(bytes).ok()); });
      for (size_t at = 0; at < read.size(); at += 1024) {
        ASSERT_TRUE(to->Read(absl::MakeSpan(read).subspan(at, 1024), {.min = 1024}).ok());
      }
      writer.join();
      EXPECT_GT(to->Stats().read_ahead_bytes, 0u);
    }
    ASSERT_TRUE(far_.SetOptions(kCopies).ok());
  }
  void ExpectNothingHeld(const char* after) {
    EXPECT_EQ(near_.Stats().registered_now, 0u) << after;
    EXPECT_EQ(client_.context.Stats().regions, near_regions_) << after;
    EXPECT_EQ(server_.context.Stats().regions, far_regions_) << after;
    EXPECT_EQ(Pinned(), pinned_) << after;
  }
  // What the connection has of its own may go with it.
  void ExpectNothingHeldOfALostConnection(const char* after) {
    EXPECT_EQ(near_.Stats().registered_now, 0u) << after;
    EXPECT_LE(client_.context.Stats().regions, near_regions_) << after;
    EXPECT_LE(Pinned(), pinned_) << after;
  }
  uint64_t Pinned() const { return OnDevice() ? PinnedNow() : 0; }
  bool OnDevice() const { return TransportOf(world()) == Transport::kVerbs; }
  absl::Time After(absl::Duration wait) const { return client_.context.Now() + wait; }

  // Writes of the far end come out of memory that stays registered, which the near end reads
  // straight into its own; `read` is called meanwhile. What is left is taken afterwards.
  void WhileTheFarEndShows(size_t size, const std::function<size_t()>& read) {
    Memory& from = Make(server_, size);
    pinned_ = Pinned();
    far_regions_ = server_.context.Stats().regions;
    std::thread writer(
        [&] { EXPECT_TRUE(far_.Write(from.All(), {.path = Path::kZeroCopy}).ok()); });
    ASSERT_TRUE(Pump([&] { return near_.readiness().readable; }));
    const uint64_t before = near_.Stats().registrations;
    Bytes rest(size - read());
    EXPECT_GT(near_.Stats().registrations, before) << "nothing was registered: nothing is tested";
    EXPECT_EQ(near_.Stats().registered_now, 0u);
    EXPECT_EQ(client_.context.Stats().regions, near_regions_);
    if (!rest.empty()) {
      EXPECT_TRUE(near_.Read(absl::MakeSpan(rest), {.min = rest.size()}).ok());
    }
    writer.join();
  }
  // Signals the thread that runs `call` until it has returned.
  static void Interrupt(const std::function<void()>& call) {
    std::atomic<bool> returned{false};
    std::thread caller([&] {
      call();
      returned = true;
    });
    while (!returned) {
      pthread_kill(caller.native_handle(), SIGUSR1);
      absl::SleepFor(absl::Milliseconds(5));
    }
    caller.join();
  }
  // A Write that shows its memory to a far end that takes none of it, in a thread of its own; what
  // `end` does lets it return.
  void WhileAWriteShows(const std::function<void()>& end, const char* what) {
    const Bytes bytes(kLong);
    std::thread writer([&] {
      (void)near_.Write(bytes);
      ExpectNothingHeldOfALostConnection(what);
    });
    EXPECT_TRUE(Pump([&] { return near_.Stats().registered_now >= 4 * kMiB; }));
    end();
    writer.join();
  }

  Stream near_, far_;
  uint64_t pinned_ = 0;
  uint32_t near_regions_ = 0, far_regions_ = 0;
};

// Without this the others would say nothing.
TEST_P(BlockingMemoryTest, MemoryThatIsShownIsCountedAndOnADevicePinned) {
  const Bytes bytes(kLong);
  std::thread writer([&] {
    EXPECT_EQ(near_.Write(bytes).value_or(0), kLong);
    ExpectNothingHeld("a Write that its peer has let wait");
  });
  EXPECT_TRUE(Pump([&] { return near_.Stats().registered_now >= 4 * kMiB; }));
  EXPECT_EQ(client_.context.Stats().regions, near_regions_ + 4);
  EXPECT_GE(Pinned(), pinned_ + (OnDevice() ? 4 * kMiB : 0));
  Bytes read(kLong);
  EXPECT_EQ(far_.Read(absl::MakeSpan(read), {.min = kLong}).value_or(0), kLong);
  writer.join();
}

TEST_P(BlockingMemoryTest, NothingIsHeldAfterWritesThatArrive) {
  const Bytes bytes(kLong);
  const std::vector<absl::Span<const std::byte>> pieces(3, absl::MakeConstSpan(bytes));
  Bytes read(kLong);
  std::thread reader([&] {
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(far_.Read(absl::MakeSpan(read), {.min = kLong}).value_or(0), kLong);
    }
  });
  EXPECT_EQ(near_.Write(bytes).value_or(0), kLong);
  ExpectNothingHeld("Write");
  EXPECT_EQ(near_.WriteV(pieces).value_or(0), 3 * kLong);
  ExpectNothingHeld("WriteV");
  EXPECT_GE(near_.Stats().registrations, 4 * kLong / kMiB);
  reader.join();
}

TEST_P(BlockingMemoryTest, NothingIsHeldAfterReads) {
  Bytes read(kLong);
  WhileTheFarEndShows(kLong,
                      [&] { return near_.Read(absl::MakeSpan(read), {.min = kLong}).value_or(0); });
  ExpectNothingHeld("Read");
  const std::vector<absl::Span<std::byte>> pieces{absl::MakeSpan(read).first(kLong / 2),
                                                  absl::MakeSpan(read).subspan(kLong / 2)};
  WhileTheFarEndShows(kLong, [&] { return near_.ReadV(pieces, {.min = kLong}).value_or(0); });
  ExpectNothingHeld("ReadV");
}

TEST_P(BlockingMemoryTest, NothingIsHeldAfterCallsThatAreLate) {
  const Bytes bytes(kLong);
  const WriteArgs soon{.deadline = After(absl::Milliseconds(100))};
  EXPECT_LT(near_.Write(bytes, soon).value_or(0), kLong);
  ExpectNothingHeld("a late Write");
  EXPECT_GT(near_.Stats().registrations, 0u);
  Bytes read(2 * kLong);
  WhileTheFarEndShows(kLong, [&] {
    const ReadArgs late{.min = 2 * kLong, .deadline = After(absl::Milliseconds(500))};
    return near_.Read(absl::MakeSpan(read), late).value_or(0);
  });
  ExpectNothingHeld("a late Read");
}

TEST_P(BlockingMemoryTest, NothingIsHeldAfterCallsThatASignalEnds) {
  const Bytes bytes(kLong);
  Interrupt([&] {
    EXPECT_LT(near_.Write(bytes).value_or(0), kLong);
    ExpectNothingHeld("a Write that was interrupted");
  });
  EXPECT_GT(near_.Stats().registrations, 0u);
  Bytes read(2 * kLong);
  WhileTheFarEndShows(kLong, [&] {
    size_t moved = 0;
    Interrupt([&] { moved = near_.Read(absl::MakeSpan(read), {.min = 2 * kLong}).value_or(0); });
    return moved;
  });
  ExpectNothingHeld("a Read that was interrupted");
}

TEST_P(BlockingMemoryTest, NothingIsHeldAfterAWriteThatLostItsPatience) {
  ASSERT_TRUE(near_.SetOptions({.zcopy_min = 65'536, .patience = absl::Milliseconds(5)}).ok());
  const Bytes bytes(kMiB);
  EXPECT_EQ(near_.Write(bytes).value_or(0), kMiB);
  ExpectNothingHeld("a Write that went on by copying");
  EXPECT_EQ(near_.Stats().patience_ran_out, 1u);
}

TEST_P(BlockingMemoryTest, NothingIsHeldAfterAWriteWhoseStreamEnds) {
  WhileAWriteShows([&] { near_.Abort(); }, "Abort");
  Join();
  WhileAWriteShows([&] { far_.Abort(); }, "Abort by the peer");
  Join();
  WhileAWriteShows([&] { (void)near_.Close(After(absl::Milliseconds(50))); }, "Close");
}

INSTANTIATE_TEST_SUITE_P(On, BlockingMemoryTest, ::testing::ValuesIn(WorldsWithThread()),
                         ParamName);

class BuffersOfOneAfterTheOther : public PairTest {
 protected:
  // Pages of this process that were touched for the first time.
  static int64_t FirstTouches() {
    rusage usage{};
    EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
  }
  // A connection, with as much under way as its send buffer holds.
  void UseOne() {
    Connect();
    Stream near = Stream::Of(client_.context, std::move(client_.socket), kCopies).value();
    Stream far = Stream::Of(server_.context, std::move(server_.socket), kCopies).value();
    ASSERT_EQ(near.Write(sent_).value_or(0), kMiB);
    ASSERT_EQ(far.Read(absl::MakeSpan(read_), {.min = kMiB}).value_or(0), kMiB);
  }

 private:
  const Bytes sent_ = Bytes(kMiB);
  Bytes read_ = Bytes(kMiB);
};

// To map and touch its own would cost a short connection more than its data does.
TEST_P(BuffersOfOneAfterTheOther, AreTheSame) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer touches pages of its own";
  constexpr int kStreams = 8;
  constexpr int64_t kPages = kMiB / 4096;  // of one send buffer
  for (int i = 0; i < kStreams; ++i) UseOne();
  const int64_t before = FirstTouches();
  for (int i = 0; i < kStreams; ++i) UseOne();
  EXPECT_LT(FirstTouches() - before, kStreams * kPages / 2);
}

INSTANTIATE_TEST_SUITE_P(On, BuffersOfOneAfterTheOther, ::testing::Values(World::kQpipThread),
                         ParamName);

}  // namespace
}  // namespace esdp::contract
