#ifndef ESDP_TESTS_SOCKETS_SCRIPTED_FILES_H_
#define ESDP_TESTS_SOCKETS_SCRIPTED_FILES_H_

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "esdp/context.h"
#include "esdp/file.h"
#include "gtest/gtest.h"
#include "impl/files/file_calls.h"
#include "impl/sockets/context/context_access.h"
#include "impl/sockets/context/context_state.h"
#include "tests/base/content.h"
#include "tests/sockets/harness.h"

// Media of which a test says what they do, and a pair of sockets whose files are on them.

namespace esdp::contract {

inline constexpr uint64_t kSlot = 256 * 1024;

// The system's, but for what a test has said.
class ScriptedCalls final : public files::FileCalls {
 public:
  int Describe(int descriptor, files::FileDetails& details) override {
    return system_.Describe(descriptor, details);
  }
  int64_t Read(int descriptor, std::span<std::byte> to, uint64_t offset) override {
    const int64_t answer = read ? read(descriptor, to, offset) : 0;
    return answer != 0 ? answer : system_.Read(descriptor, to, offset);
  }
  int64_t ReadCached(int descriptor, std::span<std::byte> to, uint64_t offset) override {
    ++asked_cached;
    return cached ? cached(descriptor, to, offset) : -EOPNOTSUPP;
  }
  int64_t Write(int descriptor, std::span<const std::byte> from, uint64_t offset) override {
    const int64_t answer = write ? write(from, offset) : 0;
    if (answer < 0) return answer;
    return system_.Write(descriptor, answer > 0 ? from.first(static_cast<size_t>(answer)) : from,
                         offset);
  }
  int Sync(int) override { return sync ? sync() : 0; }
  void StartSync(int, uint64_t offset, uint64_t length) override {
    if (start_sync) start_sync(offset, length);
  }
  int Reserve(int, uint64_t, uint64_t) override { return reserve; }
  int MakeHole(int descriptor, uint64_t offset, uint64_t length) override {
    return hole != 0 ? hole : system_.MakeHole(descriptor, offset, length);
  }
  int Duplicate(int descriptor) override { return full ? -EMFILE : system_.Duplicate(descriptor); }
  int OpenDirect(int descriptor) override { return direct = dup(descriptor); }
  int OpenSequential(int descriptor) override {
    ++opened_sequential;
    return sequential = refuses_sequential ? -ENOENT : dup(descriptor);
  }
  void DropCached(int, uint64_t offset, uint64_t length) override {
    if (drop) drop(offset, length);
  }
  void Close(int descriptor) override { system_.Close(descriptor); }

  // 0: as the system. Of a write: so many bytes of it, or an error.
  std::function<int64_t(int, std::span<std::byte>, uint64_t)> read;
  std::function<int64_t(int, std::span<std::byte>, uint64_t)> cached;  // none: EOPNOTSUPP
  std::function<int64_t(std::span<const std::byte>, uint64_t)> write;
  std::function<int()> sync;
  std::function<void(uint64_t, uint64_t)> start_sync;
  std::function<void(uint64_t, uint64_t)> drop;
  std::atomic<int> asked_cached{0};
  int reserve = 0;
  int hole = 0;
  bool full = false;  // the table of descriptors
  int direct = -1;
  std::atomic<int> opened_sequential{0};
  std::atomic<int> sequential{-1};
  bool refuses_sequential = false;

 private:
  files::FileCalls& system_ = files::FileCalls::System();
};

class FileFaultTest : public PairTest {
 protected:
  void SetUp() override {
    PairTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
    Script(client_, sending_);
    Script(server_, receiving_);
    fd_ = memfd_create("file", MFD_CLOEXEC);
    Fill(4 * kSlot);
  }
  void TearDown() override {
    PairTest::TearDown();
    close(fd_);
    close(target_);
  }
  // The file has so many bytes, all of them new.
  void Fill(uint64_t size) {
    content_.resize(size);
    FillByChance(NewSeed(), content_);
    ASSERT_EQ(static_cast<ssize_t>(size), pwrite(fd_, content_.data(), size, 0));
  }
  static void Script(const Side& side, files::FileCalls& calls) {
    sockets::ContextAccess::StateOf(side.context)->files().calls = &calls;
  }
  OpId PostAll(OnShortFile on_short, FileStrategy strategy = FileStrategy::kPipelined) {
    const std::array<FileRange, 1> range = {FileRange{fd_, 0, content_.size()}};
    return client_.Accepted(client_.socket.SendFile(
        {.ranges = range, .strategy = strategy, .on_short = on_short}, client_.Args()));
  }
  OpId TakeAll(OnShortFile on_short, SyncPolicy sync = SyncPolicy::kNone) {
    return Take({.length = content_.size(), .sync = sync, .on_short = on_short});
  }
  // Into a new file.
  OpId Take(FileSink sink) {
    close(target_);
    sink.fd = target_ = memfd_create("target", MFD_CLOEXEC);
    return server_.Accepted(server_.socket.RecvFile(sink, server_.Args()));
  }
  std::vector<std::byte> Written() const {
    std::vector<std::byte> written(static_cast<size_t>(lseek(target_, 0, SEEK_END)));
    EXPECT_EQ(static_cast<ssize_t>(written.size()),
              pread(target_, written.data(), written.size(), 0));
    return written;
  }

  ScriptedCalls sending_;
  ScriptedCalls receiving_;
  int fd_ = -1;
  int target_ = -1;
  std::vector<std::byte> content_;
};

}  // namespace esdp::contract

#endif  // ESDP_TESTS_SOCKETS_SCRIPTED_FILES_H_
