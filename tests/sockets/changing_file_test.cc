#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "esdp/context.h"
#include "esdp/file.h"
#include "gtest/gtest.h"
#include "tests/base/descriptor_passing.h"
#include "tests/sockets/harness.h"
#include "tests/sockets/scripted_files.h"

// SendFile of a file that others change meanwhile, at each boundary of its slots; RecvFile into a file
// system that is full by then.

namespace esdp::contract {
namespace {

constexpr int kSlots = 6;

class ChangingFileTest : public FileFaultTest {
 protected:
  void SetUp() override {
    FileFaultTest::SetUp();
    Fill(kSlots * kSlot);
  }
  // As the slot at this offset is about to be read, once.
  void Before(uint64_t offset, std::function<void()> change) {
    changed_ = false;
    sending_.read = [this, offset, change = std::move(change)](int, std::span<std::byte>,
                                                               uint64_t at) {
      if (at == offset && !changed_.exchange(true)) change();
      return 0;
    };
  }
  absl::Span<const std::byte> Slots(const std::vector<std::byte>& bytes, uint64_t from,
                                    uint64_t to) const {
    return absl::MakeConstSpan(bytes).subspan(from * kSlot, (to - from) * kSlot);
  }
  std::atomic<bool> changed_{false};
};
INSTANTIATE_TEST_SUITE_P(On, ChangingFileTest, ::testing::ValuesIn(Worlds()), ParamName);

TEST_P(ChangingFileTest, OneThatIsCutOffEndsWhereItEnds) {
  for (const FileStrategy strategy : {FileStrategy::kPipelined, FileStrategy::kPlain}) {
    for (uint64_t slot = 0; slot < kSlots; ++slot) {
      Fill(kSlots * kSlot);
      Before(slot * kSlot, [&] { ASSERT_EQ(0, ftruncate(fd_, static_cast<off_t>(slot * kSlot))); });
      Memory& to = Make(server_, slot * kSlot + 1);
      const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
      const Event event = End(client_, PostAll(OnShortFile::kStop, strategy));
      EXPECT_EQ(event.kind, ErrorKind::kFile);
      EXPECT_EQ(event.bytes, slot * kSlot);
      EndWell(client_, client_.Send(Make(client_, 1).All()), 1);
      EndWell(server_, receive, to.size());
      EXPECT_TRUE(SameBytes(Slots(to.bytes, 0, slot), Slots(content_, 0, slot)));
    }
  }
}

TEST_P(ChangingFileTest, OneThatGrowsAsItIsReadIsSentAsFarAsThePlanSays) {
  for (uint64_t slot = 1; slot < kSlots; ++slot) {
    Fill(kSlots * kSlot);
    const auto rest = absl::MakeConstSpan(content_).subspan(slot * kSlot);
    ASSERT_EQ(0, ftruncate(fd_, static_cast<off_t>(slot * kSlot)));
    Before(slot * kSlot, [&] {
      ASSERT_EQ(static_cast<ssize_t>(rest.size()),
                pwrite(fd_, rest.data(), rest.size(), static_cast<off_t>(slot * kSlot)));
    });
    Memory& to = Make(server_, content_.size());
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    // By one slot: no later one is read before.
    EndWell(client_, PostAll(OnShortFile::kAbort, FileStrategy::kPlain), content_.size());
    EndWell(server_, receive, content_.size());
    EXPECT_TRUE(SameBytes(to.bytes, content_));
  }
}

TEST_P(ChangingFileTest, OneThatIsRewrittenIsSentAsEachSlotWasRead) {
  for (uint64_t slot = 0; slot < kSlots; ++slot) {
    Fill(kSlots * kSlot);
    const std::vector<std::byte> before = content_;
    Before(slot * kSlot, [&] { Fill(kSlots * kSlot); });
    Memory& to = Make(server_, content_.size());
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    EndWell(client_, PostAll(OnShortFile::kAbort, FileStrategy::kPlain), to.size());
    EndWell(server_, receive, to.size());
    EXPECT_TRUE(SameBytes(Slots(to.bytes, 0, slot), Slots(before, 0, slot)));
    EXPECT_TRUE(SameBytes(Slots(to.bytes, slot, kSlots), Slots(content_, slot, kSlots)));
  }
}

TEST_P(ChangingFileTest, OneThatIsRemovedIsSentWhole) {
  const std::string path = testing::TempDir() + "/removed." + NameOf(world());
  for (uint64_t slot = 0; slot < kSlots; ++slot) {
    close(fd_);
    fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ASSERT_GE(fd_, 0) << path;
    Fill(kSlots * kSlot);
    Before(slot * kSlot, [&] { EXPECT_EQ(0, unlink(path.c_str())); });
    Memory& to = Make(server_, content_.size());
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
    EndWell(server_, receive, content_.size());
    EXPECT_TRUE(SameBytes(to.bytes, content_));
    EXPECT_TRUE(changed_);
  }
}

// What is long and cold is read by a description of its own, which the system reads ahead for.
TEST_P(ChangingFileTest, ALongRangeThatIsNotInMemoryHasADescriptionOfItsOwn) {
  for (const bool refused : {false, true}) {
    sending_.opened_sequential = 0;
    sending_.refuses_sequential = refused;
    std::atomic<int> by_own{0};
    sending_.read = [&](int descriptor, std::span<std::byte>, uint64_t) {
      if (descriptor == sending_.sequential) ++by_own;
      return 0;
    };
    Memory& to = Make(server_, content_.size());
    const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
    EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
    EndWell(server_, receive, content_.size());
    EXPECT_TRUE(SameBytes(to.bytes, content_));
    EXPECT_EQ(sending_.opened_sequential, 1);
    if (refused) continue;
    EXPECT_GE(by_own, kSlots - 2) << "two are read at a time";
    EXPECT_TRUE(Pump([&] { return fcntl(sending_.sequential, F_GETFD) < 0; })) << "it stays open";
  }
}

TEST_P(ChangingFileTest, WhatWasReadIsForgottenWhereAskedFor) {
  Fill(40 * kSlot + 1);
  std::mutex mutex;
  std::vector<std::pair<uint64_t, uint64_t>> dropped;
  sending_.drop = [&](uint64_t offset, uint64_t length) {
    const std::lock_guard lock(mutex);
    dropped.emplace_back(offset, length);
  };
  sending_.cached = [](int, std::span<std::byte>, uint64_t) -> int64_t {
    ADD_FAILURE() << "what is in memory is to be forgotten too";
    return -EAGAIN;
  };
  const std::array<FileRange, 1> range = {FileRange{fd_, 1, content_.size() - 1}};
  Memory& to = Make(server_, content_.size() - 1);
  const OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  EndWell(client_,
          client_.Accepted(
              client_.socket.SendFile({.ranges = range, .drop_behind = true}, client_.Args())),
          to.size());
  EndWell(server_, receive, to.size());
  EXPECT_TRUE(SameBytes(to.bytes, absl::MakeConstSpan(content_).subspan(1)));
  // Each 8 MiB, and at the end: all before.
  std::ranges::sort(dropped);
  ASSERT_EQ(dropped.size(), 2u);
  for (const auto& [offset, length] : dropped) EXPECT_EQ(offset, 1u);
  EXPECT_EQ(dropped.back().second, to.size());
}

TEST_P(ChangingFileTest, AShortRangeAndWhatIsInMemoryHaveNone) {
  Fill(4 * kSlot);
  Memory& to = Make(server_, content_.size());
  OpId receive = server_.Recv(to.All(), RecvFlags::kWaitAll);
  EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
  EndWell(server_, receive, content_.size());
  Fill(kSlots * kSlot);
  sending_.cached = [](int descriptor, std::span<std::byte> into, uint64_t offset) -> int64_t {
    return pread(descriptor, into.data(), into.size(), static_cast<off_t>(offset));
  };
  Memory& all = Make(server_, content_.size());
  receive = server_.Recv(all.All(), RecvFlags::kWaitAll);
  EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
  EndWell(server_, receive, content_.size());
  EXPECT_EQ(sending_.opened_sequential, 0);
}

// --- a file system that is full --------------------------------------------------------------------

void WriteTo(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text.data(), text.size()) < 0) _exit(errno);
  close(fd);
}

// A new file on a tmpfs of its own, of so many bytes, which nobody else sees; or -errno, where this
// user may mount none.
int FileOnTmpfs(const std::string& bytes) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return -errno;
  const std::string user = "0 " + std::to_string(getuid()) + " 1";
  const std::string group = "0 " + std::to_string(getgid()) + " 1";
  const std::string size = "size=" + bytes;
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) _exit(errno);
    WriteTo("/proc/self/uid_map", user);
    WriteTo("/proc/self/setgroups", "deny");
    WriteTo("/proc/self/gid_map", group);
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(errno);
    if (mount("none", "/proc", "tmpfs", 0, size.c_str()) != 0) _exit(errno);
    const int fd = open("/proc/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) _exit(errno);
    const std::byte byte{};
    _exit(PassDescriptors(ends[1], {&byte, 1}, {&fd, 1}) ? 0 : errno);
  }
  int state = 0;
  EXPECT_EQ(child, waitpid(child, &state, 0));
  int fd = -(WIFEXITED(state) ? WEXITSTATUS(state) : EINTR);
  if (fd == 0) {
    std::byte byte{};
    fd = TakeDescriptor(ends[0], {&byte, 1});
  }
  for (const int end : ends) close(end);
  return fd;
}

class FullFileSystemTest : public ChangingFileTest {
 protected:
  static constexpr uint64_t kRoom = uint64_t{8} << 20;
  void SetUp() override {
    ChangingFileTest::SetUp();
    Script(server_, files::FileCalls::System());
    target_ = FileOnTmpfs(std::to_string(kRoom));
    if (target_ < 0) GTEST_SKIP() << "no tmpfs may be mounted here: " << strerror(-target_);
    Fill(2 * kRoom);
  }
  OpId Into(FileSink sink) {
    sink.fd = target_;
    return server_.Accepted(server_.socket.RecvFile(sink, server_.Args()));
  }
};
INSTANTIATE_TEST_SUITE_P(On, FullFileSystemTest, ::testing::ValuesIn(WorldsWithThread()),
                         ParamName);

TEST_P(FullFileSystemTest, WhatCannotFitIsRefusedAndTakesNoRoomFromWhatCan) {
  const FileSink sink = {.fd = target_, .length = content_.size()};
  EXPECT_EQ(KindOf(server_.socket.RecvFile(sink, server_.Args()).status()), ErrorKind::kNoSpace);
  Fill(kRoom / 2);
  const OpId op = Into({.length = content_.size()});
  EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
  EndWell(server_, op, content_.size());
  EXPECT_TRUE(SameBytes(Written(), content_));
}

TEST_P(FullFileSystemTest, WithoutReservationItEndsWithThePrefixThatIsWritten) {
  const OpId op =
      Into({.length = content_.size(), .reserve = false, .on_short = OnShortFile::kStop});
  const OpId sent = PostAll(OnShortFile::kStop);
  const Event event = End(server_, op);
  EXPECT_EQ(event.kind, ErrorKind::kNoSpace);
  EXPECT_EQ(event.sys_errno, ENOSPC);
  EXPECT_GT(event.file_offset, kRoom / 2);
  ASSERT_LE(event.file_offset, kRoom);
  EXPECT_GE(event.bytes, event.file_offset);
  const std::vector<std::byte> written = Written();
  ASSERT_GE(written.size(), event.file_offset);
  EXPECT_TRUE(SameBytes(absl::MakeConstSpan(written).first(event.file_offset),
                        absl::MakeConstSpan(content_).first(event.file_offset)));
  server_.socket = {};
  (void)End(client_, sent);
}

TEST_P(FullFileSystemTest, HolesTakeNoRoom) {
  std::fill(content_.begin() + kSlot, content_.end() - kSlot, std::byte{0});
  ASSERT_EQ(static_cast<ssize_t>(content_.size()),
            pwrite(fd_, content_.data(), content_.size(), 0));
  const OpId op = Into({.length = content_.size(), .sparse = true});
  EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
  EndWell(server_, op, content_.size());
  EXPECT_TRUE(SameBytes(Written(), content_));
}

}  // namespace
}  // namespace esdp::contract
