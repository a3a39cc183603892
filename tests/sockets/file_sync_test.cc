#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "esdp/context.h"
#include "esdp/file.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"
#include "tests/sockets/scripted_files.h"

// RecvFile: what counts as written, and what is on the medium when its event tells.

namespace esdp::contract {
namespace {

class FileSyncTest : public FileFaultTest {
 protected:
  void SetUp() override {
    FileFaultTest::SetUp();
    receiving_.sync = [this] {
      ++syncs_;
      return 0;
    };
  }
  std::atomic<int> syncs_{0};
};
INSTANTIATE_TEST_SUITE_P(On, FileSyncTest, ::testing::ValuesIn(Worlds()), ParamName);

// A size so that what is short of the step is synced too.
TEST_P(FileSyncTest, WhatIsWrittenBeginsToGoToTheMediumBeforeTheSync) {
  Fill(17'000'000);
  std::mutex mutex;
  std::vector<std::pair<uint64_t, uint64_t>> started;
  receiving_.start_sync = [&](uint64_t offset, uint64_t length) {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(syncs_, 0);
    started.emplace_back(offset, length);
  };
  const OpId op = TakeAll(OnShortFile::kAbort, SyncPolicy::kEnd);
  EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
  EndWell(server_, op, content_.size());
  EXPECT_EQ(syncs_, 1);
  ASSERT_FALSE(started.empty());
  uint64_t end = 0;
  for (const auto& [offset, length] : started) {
    EXPECT_EQ(offset, end);
    EXPECT_GE(length, uint64_t{8} << 20);
    end = offset + length;
  }
  EXPECT_TRUE(SameBytes(Written(), content_));
}

TEST_P(FileSyncTest, WithoutAPolicyNothingIsSynced) {
  Fill(9'000'000);
  receiving_.start_sync = [&](uint64_t, uint64_t) { ++syncs_; };
  const OpId op = TakeAll(OnShortFile::kAbort);
  EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
  EndWell(server_, op, content_.size());
  EXPECT_EQ(syncs_, 0);
}

TEST_P(FileSyncTest, OneThatEndsEarlyIsOnTheMediumAsFarAsItsEventTells) {
  for (const SyncPolicy policy : {SyncPolicy::kNone, SyncPolicy::kEnd, SyncPolicy::kEvery}) {
    syncs_ = 0;
    const OpId op = Take({.length = 2 * kSlot, .sync = policy});
    Memory& from = Make(client_, 100);
    EndWell(client_, client_.Send(from.All()), 100);
    Settle();
    EXPECT_EQ(syncs_, 0);
    EXPECT_TRUE(server_.socket.Cancel(op).ok());
    const Event event = End(server_, op);
    EXPECT_EQ(event.kind, ErrorKind::kCancelled);
    EXPECT_EQ(event.file_offset, 100u);
    EXPECT_EQ(syncs_, policy == SyncPolicy::kNone ? 0 : 1);
  }
  syncs_ = 0;
  const OpId ends = Take({.length = 2 * kSlot, .sync = SyncPolicy::kEnd});
  EndWell(client_, client_.Send(Make(client_, 100).All()), 100);
  (void)client_.Accepted(client_.socket.Shutdown(client_.Args()));
  EXPECT_EQ(End(server_, ends).kind, ErrorKind::kFile);
  EXPECT_EQ(syncs_, 1);
}

TEST_P(FileSyncTest, OneThatHasWrittenNothingSyncsNothing) {
  const OpId op = Take({.length = kSlot, .sync = SyncPolicy::kEnd});
  Settle();
  EXPECT_TRUE(server_.socket.Cancel(op).ok());
  EXPECT_EQ(End(server_, op).kind, ErrorKind::kCancelled);
  EXPECT_EQ(syncs_, 0);
}

TEST_P(FileSyncTest, WhatAFullMediumHasTakenIsSynced) {
  for (const int full : {ENOSPC, EDQUOT}) {
    syncs_ = 0;
    receiving_.write = [full](std::span<const std::byte>, uint64_t offset) {
      return offset >= 2 * kSlot ? -full : 0;
    };
    const OpId op = TakeAll(OnShortFile::kStop, SyncPolicy::kEnd);
    const OpId sent = PostAll(OnShortFile::kAbort);
    const Event event = End(server_, op);
    EXPECT_EQ(event.kind, ErrorKind::kNoSpace);
    EXPECT_EQ(event.sys_errno, full);
    EXPECT_EQ(event.file_offset, 2 * kSlot);
    EXPECT_EQ(syncs_, 1);
    // What is behind it may not leave the sender before somebody receives it.
    if (event.bytes < content_.size()) {
      Memory& rest = Make(server_, content_.size() - event.bytes);
      EndWell(server_, server_.Recv(rest.All(), RecvFlags::kWaitAll), rest.size());
    }
    EndWell(client_, sent, content_.size());
  }
}

TEST_P(FileSyncTest, WhatIsSyncedIsForgottenWhereAskedFor) {
  FileSink sink = {.fd = fd_, .length = content_.size(), .drop_behind = true};
  EXPECT_EQ(KindOf(server_.socket.RecvFile(sink, server_.Args()).status()),
            ErrorKind::kInvalidArgument);
  std::mutex mutex;
  uint64_t dropped = 0;
  receiving_.drop = [&](uint64_t offset, uint64_t length) {
    const std::lock_guard lock(mutex);
    EXPECT_GT(syncs_, 0);
    EXPECT_EQ(offset, 0u) << "a unit of the page cache may have begun before what was synced last";
    EXPECT_GT(length, dropped);
    dropped = length;
  };
  for (const SyncPolicy policy : {SyncPolicy::kEnd, SyncPolicy::kEvery}) {
    dropped = 0;
    sink = {.length = content_.size(), .sync = policy, .sync_every = kSlot, .drop_behind = true};
    const OpId op = Take(sink);
    EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
    EndWell(server_, op, content_.size());
    EXPECT_EQ(dropped, content_.size());
  }
}

// What a sync was asked for and has not told to be there may be lost.
TEST_P(FileSyncTest, WhereASyncFailsTheEventTellsHowFarTheOneBeforeWentWell) {
  receiving_.sync = [this] { return ++syncs_ == 2 ? EIO : 0; };
  const OpId op = Take({.length = content_.size(),
                        .sync = SyncPolicy::kEvery,
                        .sync_every = kSlot,
                        .on_short = OnShortFile::kStop});
  Memory& from = Make(client_, kSlot);
  EndWell(client_, client_.Send(from.All()), kSlot);
  ASSERT_TRUE(Pump([&] { return syncs_ == 1; }));
  EndWell(client_, client_.Send(from.All()), kSlot);
  const Event event = End(server_, op);
  EXPECT_EQ(event.kind, ErrorKind::kFile);
  EXPECT_EQ(event.sys_errno, EIO);
  EXPECT_EQ(event.file_offset, kSlot);
  EXPECT_EQ(syncs_, 2) << "the next one would say that all is well";
}

// --- where threads wait for the medium -------------------------------------------------------------

class WaitingWriteTest : public FileSyncTest {
 protected:
  void Await(const std::function<bool()>& what) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), what));
  }
  void Set(bool& what) {
    const std::lock_guard lock(mutex_);
    what = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
};
INSTANTIATE_TEST_SUITE_P(On, WaitingWriteTest, ::testing::ValuesIn(WorldsWithThread()), ParamName);

TEST_P(WaitingWriteTest, WritesGoOnBesideASync) {
  bool is_written = false;
  receiving_.sync = [&] {
    if (++syncs_ == 1) Await([&] { return is_written; });
    return 0;
  };
  receiving_.write = [&](std::span<const std::byte>, uint64_t offset) {
    if (offset >= kSlot) Set(is_written);
    return 0;
  };
  const OpId op =
      Take({.length = content_.size(), .sync = SyncPolicy::kEvery, .sync_every = kSlot});
  EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
  EndWell(server_, op, content_.size());
  EXPECT_GE(syncs_, 2);
  EXPECT_TRUE(SameBytes(Written(), content_));
}

// The medium fails once the operation is cancelled already: what comes behind is not put in the
// place of what has failed.
TEST_P(WaitingWriteTest, AFailureBehindACancelEndsThePrefixToo) {
  bool cancelled = false;
  std::atomic<int> writes{0};
  receiving_.write = [&](std::span<const std::byte>, uint64_t) -> int64_t {
    if (++writes > 1) return 0;
    Await([&] { return cancelled; });
    return -EIO;
  };
  const OpId op = TakeAll(OnShortFile::kStop, SyncPolicy::kEnd);
  const OpId sent = PostAll(OnShortFile::kStop);
  ASSERT_TRUE(Pump([&] { return writes == 1; }));
  Settle();  // more slots have come
  EXPECT_TRUE(server_.socket.Cancel(op).ok());
  Set(cancelled);
  const Event event = End(server_, op);
  EXPECT_EQ(event.kind, ErrorKind::kCancelled);
  EXPECT_EQ(event.sys_errno, EIO);
  EXPECT_GT(event.bytes, kSlot);
  EXPECT_EQ(event.file_offset, 0u);
  EXPECT_EQ(writes, 1);
  EXPECT_EQ(syncs_, 0);
  server_.socket = {};
  (void)End(client_, sent);  // it may have been whole by then
}

}  // namespace
}  // namespace esdp::contract
