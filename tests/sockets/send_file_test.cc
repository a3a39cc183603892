#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "esdp/file.h"
#include "gtest/gtest.h"
#include "tests/base/content.h"
#include "tests/sockets/harness.h"

// SendFile and RecvFile, as their contracts have it.

namespace esdp::contract {
namespace {

constexpr uint64_t kSlot = 256 * 1024;

// A file in memory, with bytes of its own.
class TestFile {
 public:
  explicit TestFile(uint64_t size, uint64_t seed = 0) : fd_(memfd_create("file", MFD_CLOEXEC)) {
    EXPECT_GE(fd_, 0);
    if (seed == 0) return;
    content_.resize(size);
    FillByChance(seed, content_);
    EXPECT_EQ(static_cast<ssize_t>(size), pwrite(fd_, content_.data(), size, 0));
  }
  ~TestFile() { close(fd_); }
  TestFile(const TestFile&) = delete;
  TestFile& operator=(const TestFile&) = delete;
  int fd() const { return fd_; }
  const std::vector<std::byte>& content() const { return content_; }
  std::vector<std::byte> Read() const {
    std::vector<std::byte> bytes(static_cast<size_t>(lseek(fd_, 0, SEEK_END)));
    EXPECT_EQ(static_cast<ssize_t>(bytes.size()), pread(fd_, bytes.data(), bytes.size(), 0));
    return bytes;
  }
  FileRange Range(uint64_t offset, uint64_t length) const { return {fd_, offset, length}; }

 private:
  int fd_;
  std::vector<std::byte> content_;
};

class SendFileTest : public PairTest {
 protected:
  void SetUp() override {
    PairTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
  }
  OpId Post(const FilePlan& plan, const OpArgs& args) {
    return client_.Accepted(client_.socket.SendFile(plan, args));
  }
  OpId Post(const FilePlan& plan) { return Post(plan, client_.Args(7)); }
};
ESDP_ON_EVERY_WORLD(SendFileTest);

TEST_P(SendFileTest, HeaderRangesAndTrailerArriveAsOneAndTheEventCountsAll) {
  const TestFile one(3 * kSlot + 100, 1);
  const TestFile other(5000, 2);
  Memory& from = Make(client_, 300);
  from.Fill(NewSeed());
  const std::array<Slice, 2> header = {from.At(0, 100), from.At(100, 50)};
  const std::array<Slice, 1> trailer = {from.At(150, 150)};
  const std::array<FileRange, 4> ranges = {one.Range(10, 3 * kSlot + 90), one.Range(0, 0),
                                           other.Range(4999, 1), other.Range(0, 5000)};
  std::vector<std::byte> sent(from.bytes.begin(), from.bytes.begin() + 150);
  sent.insert(sent.end(), one.content().begin() + 10, one.content().end());
  sent.push_back(other.content().back());
  sent.insert(sent.end(), other.content().begin(), other.content().end());
  sent.insert(sent.end(), from.bytes.begin() + 150, from.bytes.end());
  for (const FileStrategy strategy :
       {FileStrategy::kPipelined, FileStrategy::kPlain, FileStrategy::kDirect}) {
    Memory& to = Make(server_, sent.size());
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    const OpId op =
        Post({.header = header, .ranges = ranges, .trailer = trailer, .strategy = strategy});
    const Event event = End(client_, op);
    EXPECT_EQ(event.type, EventType::kSendFile);
    EXPECT_TRUE(event.ok()) << event.status();
    EXPECT_EQ(event.bytes, sent.size());
    EXPECT_EQ(event.cookie, 7u);
    EXPECT_EQ(event.file_range, 3u);
    EXPECT_EQ(event.file_offset, 5000u);
    EndWell(server_, receive, sent.size());
    EXPECT_TRUE(SameBytes(to.bytes, sent));
  }
}

TEST_P(SendFileTest, EveryLengthAroundASlotArrivesWhole) {
  const TestFile file(2 * kSlot + 10, 3);
  for (const uint64_t length : {uint64_t{1}, kSlot - 1, kSlot, kSlot + 1, 2 * kSlot + 1}) {
    Memory& to = Make(server_, length);
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    const std::array<FileRange, 1> range = {file.Range(7, length)};
    EndWell(client_, Post({.ranges = range}), length);
    EndWell(server_, receive, length);
    EXPECT_TRUE(SameBytes(to.bytes, absl::MakeConstSpan(file.content()).subspan(7, length)));
  }
}

TEST_P(SendFileTest, WhatIsPostedBehindAFileComesBehindItAndCloseDrainsAll) {
  const TestFile file(6 * kSlot, 4);
  Memory& from = Make(client_, 100'000);
  from.Fill(NewSeed());
  Memory& to = Make(server_, 12 * kSlot + 100'010);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  const std::array<FileRange, 1> range = {file.Range(0, 6 * kSlot)};
  const OpId first = Post({.ranges = range});
  const OpId small = client_.Send(from.At(0, 10));
  const OpId second = Post({.ranges = range});
  const OpId large = client_.Send(from.All());
  const OpId shutdown = client_.Accepted(client_.socket.Shutdown(client_.Args()));
  std::vector<OpId> order;
  ASSERT_TRUE(Pump([&] { return client_.Find(shutdown) != nullptr; }));
  for (const Event& event : client_.events) {
    if (event.op != shutdown) order.push_back(event.op);
  }
  EXPECT_EQ(order, (std::vector<OpId>{first, small, second, large}));
  EndWell(server_, receive, to.size());
  const auto all = absl::MakeConstSpan(to.bytes);
  EXPECT_TRUE(SameBytes(all.first(6 * kSlot), file.content()));
  EXPECT_TRUE(SameBytes(all.subspan(6 * kSlot, 10), absl::MakeConstSpan(from.bytes).first(10)));
  EXPECT_TRUE(SameBytes(all.subspan(6 * kSlot + 10, 6 * kSlot), file.content()));
  EXPECT_TRUE(SameBytes(all.subspan(12 * kSlot + 10), from.bytes));
  for (const OpId op : {first, small, second, large, shutdown}) {
    EXPECT_TRUE(End(client_, op).ok());
  }
}

TEST_P(SendFileTest, AFileThatEndsEarlyStopsWithTheExactCountAndTheStreamIsWhole) {
  Memory& from = Make(client_, 10);
  from.Fill(NewSeed());
  for (const uint64_t size : {uint64_t{0}, uint64_t{1}, kSlot, kSlot + 1, 3 * kSlot - 1}) {
    const TestFile file(size, 5);
    Memory& to = Make(server_, size + 10);
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    const std::array<FileRange, 1> range = {file.Range(0, size + 2 * kSlot)};
    const std::array<Slice, 1> trailer = {from.At(0, 5)};
    const OpId op = Post({.ranges = range, .trailer = trailer, .on_short = OnShortFile::kStop});
    const Event event = End(client_, op);
    EXPECT_EQ(event.kind, ErrorKind::kFile);
    EXPECT_EQ(event.bytes, size);
    EXPECT_EQ(event.file_offset, size);
    EndWell(client_, client_.Send(from.All()), 10);
    EndWell(server_, receive, size + 10);
    EXPECT_TRUE(SameBytes(absl::MakeConstSpan(to.bytes).first(size), file.content()));
    EXPECT_TRUE(SameBytes(absl::MakeConstSpan(to.bytes).subspan(size), from.bytes));
  }
}

TEST_P(SendFileTest, WhatWaitsBehindAFileThatStopsIsCancelledWithoutAByte) {
  const TestFile file(kSlot + 1, 6);
  Memory& from = Make(client_, 10);
  Memory& to = Make(server_, kSlot + 1);
  const std::array<FileRange, 1> range = {file.Range(0, 3 * kSlot)};
  const OpId op = Post({.ranges = range, .on_short = OnShortFile::kStop});
  const OpId behind = client_.Send(from.All());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  EXPECT_EQ(End(client_, op).kind, ErrorKind::kFile);
  const Event cancelled = End(client_, behind);
  EXPECT_EQ(cancelled.kind, ErrorKind::kCancelled);
  EXPECT_EQ(cancelled.bytes, 0u);
  EndWell(server_, receive, kSlot + 1);
}

TEST_P(SendFileTest, AFileThatEndsEarlyAbortsTheConnectionUnlessToldOtherwise) {
  const TestFile file(kSlot + 1, 7);
  Memory& to = Make(server_, 3 * kSlot);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  const std::array<FileRange, 1> range = {file.Range(0, 3 * kSlot)};
  EXPECT_EQ(End(client_, Post({.ranges = range})).kind, ErrorKind::kFile);
  EXPECT_EQ(End(server_, receive).kind, ErrorKind::kPeerReset);
}

TEST_P(SendFileTest, CancelOfOneThatWaitsEndsItAndThoseBehindGoOn) {
  const TestFile file(8 * kSlot, 8);
  Memory& from = Make(client_, 10);
  from.Fill(NewSeed());
  Memory& to = Make(server_, 8 * kSlot + 10);
  const std::array<FileRange, 1> range = {file.Range(0, 8 * kSlot)};
  const OpId first = Post({.ranges = range}, {.queue = client_.queue, .path = Path::kZeroCopy});
  const OpId second = Post({.ranges = range});
  const OpId third = client_.Send(from.All());
  EXPECT_TRUE(client_.socket.Cancel(second).ok());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  const Event cancelled = End(client_, second);
  EXPECT_EQ(cancelled.kind, ErrorKind::kCancelled);
  EXPECT_EQ(cancelled.bytes, 0u);
  EndWell(client_, first, 8 * kSlot);
  EndWell(client_, third, 10);
  EndWell(server_, receive, 8 * kSlot + 10);
}

TEST_P(SendFileTest, ADeadlineEndsWhatWaitsAndStopsAFileThatMayStop) {
  const TestFile file(64 * kSlot, 9);
  Memory& from = Make(client_, 10);
  const std::array<FileRange, 1> range = {file.Range(0, 64 * kSlot)};
  const absl::Time soon = client_.context.After(absl::Milliseconds(50));
  const OpId op = Post({.ranges = range, .on_short = OnShortFile::kStop},
                       {.queue = client_.queue, .deadline = soon, .path = Path::kCopy});
  const OpId behind = client_.Send(from.All(), {.queue = client_.queue, .deadline = soon});
  const Event waited = End(client_, behind);
  EXPECT_TRUE(waited.kind == ErrorKind::kDeadlineExceeded || waited.kind == ErrorKind::kCancelled);
  EXPECT_EQ(waited.bytes, 0u);
  // What has been handed over goes on its way.
  Memory& to = Make(server_, 4 * kSlot);
  uint64_t arrived = 0;
  OpId receive = server_.Recv(to.All());
  ASSERT_TRUE(Pump([&] {
    if (server_.Find(receive) != nullptr) {
      arrived += End(server_, receive).bytes;
      receive = server_.Recv(to.All());
    }
    return client_.Find(op) != nullptr;
  }));
  const Event event = End(client_, op);
  EXPECT_EQ(event.kind, ErrorKind::kDeadlineExceeded);
  EXPECT_LT(event.bytes, 64 * kSlot);
  ASSERT_TRUE(Pump([&] {
    if (server_.Find(receive) == nullptr) return arrived == event.bytes;
    arrived += End(server_, receive).bytes;
    if (arrived < event.bytes) receive = server_.Recv(to.All());
    return arrived == event.bytes;
  }));
}

TEST_P(SendFileTest, AbortAtAnyMomentEndsEverything) {
  const TestFile file(16 * kSlot, 10);
  const std::array<FileRange, 1> range = {file.Range(0, 16 * kSlot)};
  for (int moment = 0; moment < 20; ++moment) {
    if (moment > 0) {
      ASSERT_NO_FATAL_FAILURE(Connect());
    }
    const OpId first = Post({.ranges = range});
    const OpId second = Post({.ranges = range});
    Memory& to = Make(server_, 8 * kSlot);
    const OpId receive = server_.Recv(to.All());
    for (int i = 0; i < moment; ++i) Pump([] { return true; });
    client_.socket = {};
    EXPECT_FALSE(End(client_, first).ok());
    EXPECT_FALSE(End(client_, second).ok());
    (void)End(server_, receive);
  }
}

TEST_P(SendFileTest, WhereTheConnectionFailsWhatWaitsBehindAFileEndsByTheSameCause) {
  const TestFile file(16 * kSlot, 10);
  const std::array<FileRange, 1> range = {file.Range(0, 16 * kSlot)};
  const OpId op = Post({.ranges = range, .on_short = OnShortFile::kStop});
  Memory& from = Make(client_, 10);
  const OpId behind = client_.Send(from.All());
  const OpId shutdown = client_.Accepted(client_.socket.Shutdown(client_.Args()));
  Memory& to = Make(server_, kSlot);
  EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), kSlot);
  server_.socket = {};
  for (const OpId each : {op, behind, shutdown}) {
    EXPECT_EQ(End(client_, each).kind, ErrorKind::kPeerReset);
  }
}

TEST_P(SendFileTest, WhatIsOnItsWayIsNotCancelled) {
  const TestFile file(2 * kSlot, 10);
  const std::array<FileRange, 1> range = {file.Range(0, 2 * kSlot)};
  const OpId op = Post({.ranges = range, .on_short = OnShortFile::kStop},
                       {.queue = client_.queue, .path = Path::kZeroCopy});
  Settle();
  EXPECT_TRUE(client_.socket.Cancel(op).ok());
  Memory& to = Make(server_, 2 * kSlot);
  EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), 2 * kSlot);
  EndWell(client_, op, 2 * kSlot);
}

TEST_P(SendFileTest, WhatIsNoFileIsRefusedWithoutAnEvent) {
  std::array<int, 2> pipes{};
  ASSERT_EQ(pipe2(pipes.data(), O_CLOEXEC), 0);
  const TestFile file(10, 1);
  const int write_only = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const std::vector<FileRange> wrong = {{-1, 0, 1},
                                        {pipes[0], 0, 1},
                                        {write_only, 0, 1},
                                        {file.fd(), uint64_t{1} << 63, 1},
                                        {file.fd(), 1, uint64_t{INT64_MAX}},
                                        {file.fd(), 0, 0}};
  for (const FileRange& range : wrong) {
    const std::array<FileRange, 1> ranges = {range};
    EXPECT_EQ(KindOf(client_.socket.SendFile({.ranges = ranges}, client_.Args()).status()),
              ErrorKind::kInvalidArgument)
        << range.fd;
  }
  EXPECT_EQ(KindOf(client_.socket.SendFile({}, client_.Args()).status()),
            ErrorKind::kInvalidArgument);
  for (const int fd : {pipes[0], pipes[1], write_only}) close(fd);
}

TEST_P(SendFileTest, AStrategyThatNoFabricHasIsRefusedByNameAndTakesNothing) {
  const TestFile file(kSlot, 1);
  const std::array<FileRange, 1> range = {file.Range(0, kSlot)};
  for (const FileStrategy strategy : {FileStrategy::kMapped, FileStrategy::kSpliced}) {
    const auto refused =
        client_.socket.SendFile({.ranges = range, .strategy = strategy}, client_.Args()).status();
    EXPECT_EQ(KindOf(refused), ErrorKind::kUnsupported) << refused;
    EXPECT_NE(refused.message().find("no fabric has"), std::string::npos) << refused;
  }
  const auto none = static_cast<FileStrategy>(5);
  EXPECT_EQ(
      KindOf(client_.socket.SendFile({.ranges = range, .strategy = none}, client_.Args()).status()),
      ErrorKind::kInvalidArgument);
  Memory& to = Make(server_, kSlot);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  EndWell(client_, Post({.ranges = range}), kSlot);
  EndWell(server_, receive, kSlot);
}

// --- RecvFile ------------------------------------------------------------------------------------

class RecvFileTest : public SendFileTest {
 protected:
  OpId Take(const FileSink& sink) {
    return server_.Accepted(server_.socket.RecvFile(sink, server_.Args(8)));
  }
};
ESDP_ON_EVERY_WORLD(RecvFileTest);

TEST_P(RecvFileTest, AFileGoesIntoAFileAndWhatFollowsToTheNextReceive) {
  for (const uint64_t length : {uint64_t{1}, kSlot, kSlot + 1, 9 * kSlot + 5}) {
    const TestFile source(length, 11);
    const TestFile target(0);
    Memory& from = Make(client_, 10);
    from.Fill(NewSeed());
    Memory& to = Make(server_, 10);
    const OpId op = Take({.fd = target.fd(),
                          .offset = 3,
                          .length = length,
                          .sync = SyncPolicy::kEvery,
                          .sync_every = kSlot});
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    const std::array<FileRange, 1> range = {source.Range(0, length)};
    const OpId sent = Post({.ranges = range});
    EndWell(client_, client_.Send(from.All()), 10);
    EndWell(client_, sent, length);
    const Event event = End(server_, op);
    EXPECT_EQ(event.type, EventType::kRecvFile);
    EXPECT_TRUE(event.ok()) << event.status();
    EXPECT_EQ(event.bytes, length);
    EXPECT_EQ(event.file_offset, 3 + length);
    EndWell(server_, receive, 10);
    EXPECT_TRUE(SameBytes(to.bytes, from.bytes));
    const std::vector<std::byte> written = target.Read();
    ASSERT_EQ(written.size(), 3 + length);
    EXPECT_TRUE(SameBytes(absl::MakeConstSpan(written).subspan(3), source.content()));
  }
  EXPECT_EQ(server_.context.Stats().file_bytes_written, 1 + kSlot + kSlot + 1 + 9 * kSlot + 5);
}

// Zeros at the beginning, between bytes that are none, across slots, and at the end; from an offset
// inside a block. What was there before is gone, and only whole blocks are holes.
TEST_P(RecvFileTest, BlocksOfZerosBecomeHolesWhereAskedFor) {
  constexpr size_t kBlock = 4096;
  for (const uint64_t offset : {uint64_t{0}, uint64_t{100}}) {
    TestFile source(6 * kSlot + 10, 15);
    std::vector<std::byte> content = source.content();
    const auto erase = [&](size_t from, size_t to) {
      std::fill(content.begin() + static_cast<ptrdiff_t>(from),
                content.begin() + static_cast<ptrdiff_t>(to), std::byte{0});
    };
    erase(0, 3 * kBlock);
    erase(5 * kBlock + 1, 6 * kBlock);
    erase(kSlot - 10, 3 * kSlot + 10);
    erase(5 * kSlot, content.size());
    ASSERT_EQ(static_cast<ssize_t>(content.size()),
              pwrite(source.fd(), content.data(), content.size(), 0));
    const TestFile target(2 * kSlot, 16);
    const OpId op =
        Take({.fd = target.fd(), .offset = offset, .length = content.size(), .sparse = true});
    const std::array<FileRange, 1> range = {source.Range(0, content.size())};
    EndWell(client_, Post({.ranges = range}), content.size());
    EndWell(server_, op, content.size());
    const std::vector<std::byte> written = target.Read();
    ASSERT_EQ(written.size(), offset + content.size());
    EXPECT_TRUE(SameBytes(absl::MakeConstSpan(written).subspan(offset), content));
    struct stat status {};
    ASSERT_EQ(0, fstat(target.fd(), &status));
    // Of the six slots three are holes.
    EXPECT_LT(status.st_blocks * 512, static_cast<int64_t>(4 * kSlot));
  }
}

TEST_P(RecvFileTest, AStreamThatEndsBeforeTellsHowMuchCame) {
  const TestFile source(kSlot + 7, 12);
  const TestFile target(0);
  const OpId op = Take({.fd = target.fd(), .length = 5 * kSlot});
  const std::array<FileRange, 1> range = {source.Range(0, kSlot + 7)};
  EndWell(client_, Post({.ranges = range}), kSlot + 7);
  (void)client_.Accepted(client_.socket.Shutdown(client_.Args()));
  const Event event = End(server_, op);
  EXPECT_EQ(event.kind, ErrorKind::kFile);
  EXPECT_TRUE(event.eof());
  EXPECT_EQ(event.bytes, kSlot + 7);
  EXPECT_EQ(event.file_offset, kSlot + 7);
  EXPECT_TRUE(SameBytes(target.Read(), source.content()));
}

TEST_P(RecvFileTest, ACancelEndsItWhereItIs) {
  const TestFile target(0);
  Memory& from = Make(client_, 100);
  from.Fill(NewSeed());
  const OpId op = Take({.fd = target.fd(), .length = 5 * kSlot});
  EndWell(client_, client_.Send(from.All()), 100);
  Settle();
  EXPECT_TRUE(server_.socket.Cancel(op).ok());
  const Event event = End(server_, op);
  EXPECT_EQ(event.kind, ErrorKind::kCancelled);
  EXPECT_EQ(event.bytes, 100u);
  EXPECT_TRUE(SameBytes(target.Read(), from.bytes));
}

TEST_P(RecvFileTest, AFileThatMayNotBeWrittenAnywhereIsRefused) {
  const TestFile file(10, 1);
  const std::string path = "/proc/self/fd/" + std::to_string(file.fd());
  const int read_only = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int appends = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  const std::vector<FileSink> wrong = {
      {.fd = -1, .length = 1},
      {.fd = read_only, .length = 1},
      {.fd = appends, .length = 1},
      {.fd = file.fd(), .length = 0},
      {.fd = file.fd(), .offset = 1, .length = uint64_t{INT64_MAX}},
      {.fd = file.fd(), .length = 1, .sync = SyncPolicy::kEvery, .sync_every = 0}};
  for (const FileSink& sink : wrong) {
    EXPECT_EQ(KindOf(server_.socket.RecvFile(sink, server_.Args()).status()),
              ErrorKind::kInvalidArgument);
  }
  close(read_only);
  close(appends);
}

}  // namespace
}  // namespace esdp::contract
