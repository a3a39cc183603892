#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "esdp/context.h"
#include "esdp/file.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"
#include "tests/sockets/scripted_files.h"

// SendFile and RecvFile over media that fail, refuse and hang.

namespace esdp::contract {
namespace {

INSTANTIATE_TEST_SUITE_P(On, FileFaultTest, ::testing::ValuesIn(Worlds()), ParamName);

TEST_P(FileFaultTest, AReadThatFailsStopsWithTheExactCountAndTheErrno) {
  for (const uint64_t at : {uint64_t{0}, kSlot, 3 * kSlot}) {
    sending_.read = [at](int, std::span<std::byte>, uint64_t offset) {
      return offset >= at ? -EIO : 0;
    };
    Memory& to = Make(server_, at + 1);
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    const Event event = End(client_, PostAll(OnShortFile::kStop));
    EXPECT_EQ(event.kind, ErrorKind::kFile);
    EXPECT_EQ(event.sys_errno, EIO);
    EXPECT_EQ(event.bytes, at);
    Memory& from = Make(client_, 1);
    EndWell(client_, client_.Send(from.All()), 1);
    EndWell(server_, receive, at + 1);
    EXPECT_TRUE(SameBytes(absl::MakeConstSpan(to.bytes).first(at),
                          absl::MakeConstSpan(content_).first(at)));
  }
}

TEST_P(FileFaultTest, AReadThatFailsAbortsTheConnectionUnlessToldOtherwise) {
  sending_.read = [](int, std::span<std::byte>, uint64_t offset) {
    return offset >= kSlot ? -EIO : 0;
  };
  Memory& to = Make(server_, content_.size());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  const Event event = End(client_, PostAll(OnShortFile::kAbort));
  EXPECT_EQ(event.kind, ErrorKind::kFile);
  EXPECT_EQ(event.sys_errno, EIO);
  EXPECT_EQ(End(server_, receive).kind, ErrorKind::kPeerReset);
}

TEST_P(FileFaultTest, AMediumThatRefusesODirectIsReadThroughThePageCache) {
  std::atomic<int> asked{0};
  sending_.read = [&](int descriptor, std::span<std::byte>, uint64_t) {
    if (descriptor != sending_.direct) return 0;
    ++asked;
    return -EINVAL;
  };
  Memory& to = Make(server_, content_.size());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  EndWell(client_, PostAll(OnShortFile::kAbort, FileStrategy::kDirect), content_.size());
  EndWell(server_, receive, content_.size());
  EXPECT_TRUE(SameBytes(to.bytes, content_));
  EXPECT_EQ(asked, 4);
}

TEST_P(FileFaultTest, ReadsAndWritesThatComeShortGoOn) {
  sending_.read = [](int descriptor, std::span<std::byte> to, uint64_t offset) {
    return pread(descriptor, to.data(), std::min<size_t>(to.size(), 100'000),
                 static_cast<off_t>(offset));
  };
  receiving_.write = [](std::span<const std::byte> from, uint64_t) {
    return static_cast<int64_t>(std::min<size_t>(from.size(), 70'000));
  };
  const OpId op = TakeAll(OnShortFile::kAbort);
  EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
  EndWell(server_, op, content_.size());
  EXPECT_TRUE(SameBytes(Written(), content_));
}

TEST_P(FileFaultTest, WhatIsInMemoryIsReadWithoutAThreadForFiles) {
  std::mutex mutex;
  std::vector<uint64_t> waited_at;
  sending_.read = [&](int, std::span<std::byte>, uint64_t offset) {
    const std::lock_guard lock(mutex);
    waited_at.push_back(offset);
    return 0;
  };
  // The third chunk is in memory up to its middle, and the fourth not at all.
  sending_.cached = [](int descriptor, std::span<std::byte> to, uint64_t offset) -> int64_t {
    const uint64_t cached_up_to = 2 * kSlot + 1000;
    if (offset >= cached_up_to) return -EAGAIN;
    const size_t length = std::min<size_t>(to.size(), cached_up_to - offset);
    return pread(descriptor, to.data(), length, static_cast<off_t>(offset));
  };
  Memory& to = Make(server_, content_.size());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  // By one slot, each chunk but the first begins as the one before it ends: in a report of the shard.
  EndWell(client_, PostAll(OnShortFile::kAbort, FileStrategy::kPlain), content_.size());
  EndWell(server_, receive, content_.size());
  EXPECT_TRUE(SameBytes(to.bytes, content_));
  EXPECT_EQ(waited_at, (std::vector<uint64_t>{2 * kSlot + 1000, 3 * kSlot}));
  EXPECT_EQ(client_.context.Stats().file_bytes_cached, 2 * kSlot + 1000);
  EXPECT_EQ(client_.context.Stats().file_bytes_read, content_.size() - 2 * kSlot - 1000);
}

bool OnThreadForFiles() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return std::string_view(name.data()) == "esdp-files";
}

// Whoever moves the protocol has the other traffic of the Context to look after.
TEST_P(FileFaultTest, ALongRangeIsReadByThreadsForFilesAloneThoughItIsInMemory) {
  Fill(4 * kSlot + 1);
  std::atomic<int> in_passing{0};
  sending_.cached = [&](int descriptor, std::span<std::byte> to, uint64_t offset) -> int64_t {
    if (!OnThreadForFiles()) ++in_passing;
    return pread(descriptor, to.data(), to.size(), static_cast<off_t>(offset));
  };
  uint64_t sent = 0;
  for (const FileStrategy strategy : {FileStrategy::kPipelined, FileStrategy::kPlain}) {
    Memory& to = Make(server_, content_.size());
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    EndWell(client_, PostAll(OnShortFile::kAbort, strategy), content_.size());
    EndWell(server_, receive, content_.size());
    EXPECT_TRUE(SameBytes(to.bytes, content_));
    sent += content_.size();
  }
  // Without a thread of its own a Context has none for files, and whoever moves the protocol reads all.
  EXPECT_EQ(in_passing > 0, !HasThread(world()));
  EXPECT_EQ(client_.context.Stats().file_bytes_cached, sent);
  EXPECT_EQ(client_.context.Stats().file_bytes_read, 0u);
  EXPECT_EQ(sending_.opened_sequential, 0);
}

TEST_P(FileFaultTest, AFileOfWhichTheSystemCannotTellIsAskedOnce) {
  Memory& to = Make(server_, content_.size());
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  EndWell(client_, PostAll(OnShortFile::kAbort, FileStrategy::kPlain), content_.size());
  EndWell(server_, receive, content_.size());
  EXPECT_EQ(sending_.asked_cached, 1);
}

// What has left the stream and what is in the file are both told, so that the rest can be taken.
TEST_P(FileFaultTest, AFullMediumStopsWithThePrefixThatIsWritten) {
  receiving_.write = [](std::span<const std::byte>, uint64_t offset) {
    return offset >= kSlot ? -ENOSPC : 0;
  };
  const OpId op = TakeAll(OnShortFile::kStop);
  const OpId sent = PostAll(OnShortFile::kAbort);
  const Event event = End(server_, op);
  EXPECT_EQ(event.kind, ErrorKind::kNoSpace);
  EXPECT_EQ(event.sys_errno, ENOSPC);
  EXPECT_EQ(event.file_offset, kSlot);
  ASSERT_LE(event.bytes, content_.size());
  ASSERT_GE(event.bytes, 2 * kSlot);
  if (event.bytes < content_.size()) {
    Memory& to = Make(server_, content_.size() - event.bytes);
    EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), to.size());
    EXPECT_TRUE(SameBytes(to.bytes, absl::MakeConstSpan(content_).subspan(event.bytes)));
  }
  EndWell(client_, sent, content_.size());
}

TEST_P(FileFaultTest, AFullMediumAbortsTheConnectionUnlessToldOtherwise) {
  receiving_.write = [](std::span<const std::byte>, uint64_t) { return int64_t{-ENOSPC}; };
  const OpId op = TakeAll(OnShortFile::kAbort);
  const OpId sent = PostAll(OnShortFile::kAbort);
  EXPECT_EQ(End(server_, op).kind, ErrorKind::kNoSpace);
  (void)End(client_, sent);  // it may have been whole by then
}

TEST_P(FileFaultTest, ASyncThatFailsIsFinal) {
  receiving_.sync = [] { return EIO; };
  const OpId op = TakeAll(OnShortFile::kStop, SyncPolicy::kEnd);
  EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
  const Event event = End(server_, op);
  EXPECT_EQ(event.kind, ErrorKind::kFile);
  EXPECT_EQ(event.sys_errno, EIO);
  EXPECT_EQ(event.bytes, content_.size());
}

TEST_P(FileFaultTest, WhereNoHolesCanBeMadeZerosAreWritten) {
  receiving_.hole = EOPNOTSUPP;
  std::fill(content_.begin() + 5000, content_.begin() + 3 * kSlot, std::byte{0});
  ASSERT_EQ(static_cast<ssize_t>(content_.size()),
            pwrite(fd_, content_.data(), content_.size(), 0));
  const OpId op = Take({.length = content_.size(), .sparse = true});
  EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
  EndWell(server_, op, content_.size());
  EXPECT_TRUE(SameBytes(Written(), content_));
}

TEST_P(FileFaultTest, WhereThereIsNoRoomThePostIsRefused) {
  receiving_.reserve = ENOSPC;
  const int target = memfd_create("target", MFD_CLOEXEC);
  FileSink sink = {.fd = target, .length = content_.size()};
  EXPECT_EQ(KindOf(server_.socket.RecvFile(sink, server_.Args()).status()), ErrorKind::kNoSpace);
  sink.reserve = false;
  const OpId op = server_.Accepted(server_.socket.RecvFile(sink, server_.Args()));
  EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
  EndWell(server_, op, content_.size());
  close(target);
}

TEST_P(FileFaultTest, ASyncThatFindsNoRoomIsAFailureOfTheFile) {
  receiving_.sync = [] { return ENOSPC; };
  const OpId op = TakeAll(OnShortFile::kStop, SyncPolicy::kEnd);
  EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
  EXPECT_EQ(End(server_, op).kind, ErrorKind::kFile) << "what was written before may be lost";
}

TEST_P(FileFaultTest, WithoutADescriptorThePostIsRefusedAndTakesNothing) {
  for (int i = 0; i < 10; ++i) {
    sending_.full = receiving_.full = true;
    const std::array<FileRange, 1> range = {FileRange{fd_, 0, content_.size()}};
    EXPECT_EQ(KindOf(client_.socket.SendFile({.ranges = range}, client_.Args()).status()),
              ErrorKind::kMemory);
    EXPECT_EQ(KindOf(server_.socket.RecvFile({.fd = fd_, .length = 1}, server_.Args()).status()),
              ErrorKind::kMemory);
    sending_.full = receiving_.full = false;
    const OpId op = TakeAll(OnShortFile::kAbort);
    EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
    EndWell(server_, op, content_.size());
  }
}

TEST_P(FileFaultTest, AFileThatFailsBehindAnotherIsToldBehindIt) {
  sending_.read = [](int, std::span<std::byte> to, uint64_t) -> int64_t {
    return to.size() == 1 ? -EIO : 0;
  };
  const std::array<FileRange, 1> fails = {FileRange{fd_, 0, 1}};
  const OpId first = PostAll(OnShortFile::kStop);
  const OpId second = client_.Accepted(
      client_.socket.SendFile({.ranges = fails, .on_short = OnShortFile::kStop}, client_.Args()));
  Settle();
  EXPECT_EQ(client_.Find(second), nullptr);
  Memory& to = Make(server_, content_.size());
  EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), content_.size());
  ASSERT_TRUE(Pump([&] { return client_.Find(second) != nullptr; }));
  EXPECT_EQ(client_.events.front().op, first);
  EndWell(client_, first, content_.size());
  EXPECT_EQ(End(client_, second).kind, ErrorKind::kFile);
}

TEST_P(FileFaultTest, ARefusedReceiveTakesNoRoom) {
  Socket fresh = *server_.context.CreateSocket(Family::kIpv4);
  Script(server_, receiving_);
  receiving_.reserve = ENOSPC;  // would be the answer, were it asked
  EXPECT_EQ(KindOf(fresh.RecvFile({.fd = fd_, .length = 1}, server_.Args()).status()),
            ErrorKind::kWrongState);
}

// --- media that hang: where other threads wait for them ------------------------------------------

class HangingMediumTest : public FileFaultTest {
 protected:
  void SetUp() override {
    FileFaultTest::SetUp();
    sending_.read = [this](int, std::span<std::byte>, uint64_t) {
      std::unique_lock lock(mutex_);
      ++hanging_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return !hangs_; });
      return 0;
    };
  }
  void TearDown() override {
    Release();
    FileFaultTest::TearDown();
  }
  void AwaitHang() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return hanging_ > 0; });
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    hangs_ = false;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = true;
  int hanging_ = 0;
};
INSTANTIATE_TEST_SUITE_P(On, HangingMediumTest, ::testing::ValuesIn(WorldsWithThread()), ParamName);

TEST_P(HangingMediumTest, EverybodyElseGoesOnAndWhatWaitedArrives) {
  const OpId op = PostAll(OnShortFile::kAbort);
  AwaitHang();
  Memory& there = Make(server_, 100);
  Memory& back = Make(client_, 100);
  const OpId receive = client_.Recv(back.All(), RecvFlags::kWaitAll);
  EndWell(server_, server_.Send(there.All()), 100);
  EndWell(client_, receive, 100);
  EXPECT_EQ(client_.Find(op), nullptr);
  Release();
  Memory& to = Make(server_, content_.size());
  EndWell(server_, server_.Recv(to.All(), RecvFlags::kWaitAll), content_.size());
  EndWell(client_, op, content_.size());
  EXPECT_TRUE(SameBytes(to.bytes, content_));
}

TEST_P(HangingMediumTest, ACancelWaitsForTheMediumAndNobodyElseDoes) {
  const OpId op = PostAll(OnShortFile::kStop);
  AwaitHang();
  EXPECT_TRUE(client_.socket.Cancel(op).ok());
  Settle();
  EXPECT_EQ(client_.Find(op), nullptr) << "its descriptor and its slot are in use";
  Release();
  const Event event = End(client_, op);
  EXPECT_EQ(event.kind, ErrorKind::kCancelled);
  EXPECT_EQ(event.bytes, 0u);
}

TEST_P(HangingMediumTest, AContextEndsWithoutIt) {
  (void)client_.Accepted(client_.socket.SendFile(
      {.ranges = std::array<FileRange, 1>{FileRange{fd_, 0, content_.size()}}}, client_.Args()));
  AwaitHang();
  EXPECT_FALSE(client_.context.Close(client_.context.Now()).ok());
  client_.Collect();
  EXPECT_EQ(client_.Outstanding(), 0u);
}

}  // namespace
}  // namespace esdp::contract
