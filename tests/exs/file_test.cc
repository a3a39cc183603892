#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "impl/exs/library.h"
#include "tests/exs/pair.h"

namespace esdp::exs {
namespace {

class FileTest : public ExsTest {
 protected:
  void SetUp() override {
    ExsTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
    other_ = exs_qcreate(8);
  }
  void TearDown() override {
    ExsTest::TearDown();
    EXPECT_EQ(0, exs_qdelete(other_));
  }
  int FileOf(const std::vector<uint8_t>& bytes) {
    const int fd = memfd_create("file", MFD_CLOEXEC);
    EXPECT_EQ(static_cast<ssize_t>(bytes.size()), write(fd, bytes.data(), bytes.size()));
    return fd;
  }
  static exsx_xferpart_t Range(int fd, uint64_t offset, uint64_t len) {
    exsx_xferpart_t part{};
    part.exsx_xfp_kind = EXS_FDVEC;
    part.exsx_xfp.exsx_xfp_fdv = {fd, 0, offset, len, {}};
    return part;
  }
  static exsx_xferpart_t Bytes(const void* base, uint64_t len,
                               exs_mhandle_t memory = EXS_MHANDLE_UNREGISTERED) {
    exsx_xferpart_t part{};
    part.exsx_xfp_kind = EXS_IOVEC;
    part.exsx_xfp.exsx_xfp_iov = {const_cast<void*>(base), len, memory, 0, {}};
    return part;
  }
  int Post(std::vector<exsx_xferpart_t>& parts, exs_xferfile_t* file, uintptr_t handle = 1) {
    *file = {parts.data(), parts.size(), {}};
    return exs_sendfile(client_, file, 0, queue_, Handle(handle));
  }
  void ReceiveAt(std::vector<uint8_t>& to) {
    ASSERT_EQ(0, exs_recv(server_, to.data(), to.size(), MSG_WAITALL, other_, nullptr,
                          EXS_MHANDLE_UNREGISTERED));
  }

  exs_qhandle_t other_ = EXS_QHANDLE_INVALID;
};

TEST_F(FileTest, HeaderFileRangesAndTrailerArriveInOrder) {
  const std::vector<uint8_t> content = Pattern(1000 * 1000, 3);
  const std::vector<uint8_t> head = Pattern(100, 1);
  std::vector<uint8_t> tail = Pattern(300000, 2);
  const exs_mhandle_t memory = exs_mregister(tail.data(), tail.size(), 0);
  const int fd = FileOf(content);
  std::vector<exsx_xferpart_t> parts = {Bytes(head.data(), head.size()), Range(fd, 5, 999990),
                                        Range(fd, 0, 0), Range(fd, 7, 3),
                                        Bytes(tail.data(), tail.size(), memory)};
  exs_xferfile_t file;
  std::vector<uint8_t> to(100 + 999990 + 3 + 300000);
  ReceiveAt(to);
  ASSERT_EQ(0, Post(parts, &file));
  close(fd);      // it was duplicated
  parts.clear();  // they were copied
  const exs_event_t sent = Next();
  EXPECT_EQ(EXS_EVT_SENDFILE, sent.exs_evt_type);
  EXPECT_EQ(0, sent.exs_evt_errno);
  EXPECT_EQ(client_, sent.exs_evt_socket);
  EXPECT_EQ(Handle(1), sent.exs_evt_ahandle);
  EXPECT_EQ(&file, sent.exs_evt_union.exs_evt_xferfile.exs_evt_file);
  EXPECT_EQ(to.size(), sent.exs_evt_union.exs_evt_xferfile.exs_evt_length);
  EXPECT_EQ(to.size(), Next(other_).exs_evt_union.exs_evt_xfer.exs_evt_length);
  auto at = to.begin();
  EXPECT_TRUE(std::equal(head.begin(), head.end(), at));
  EXPECT_TRUE(std::equal(content.begin() + 5, content.begin() + 999995, at + 100));
  EXPECT_TRUE(std::equal(content.begin() + 7, content.begin() + 10, at + 100 + 999990));
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), at + 100 + 999990 + 3));
  while (exs_mderegister(memory) != 0 && errno == EBUSY) usleep(1000);
}

TEST_F(FileTest, WhatIsPostedAfterAFileLeavesAfterItAndEventsKeepTheOrder) {
  const int fd = FileOf(Pattern(2000 * 1000, 3));
  std::vector<exsx_xferpart_t> parts = {Range(fd, 0, 2000 * 1000)};
  exs_xferfile_t file;
  const std::vector<uint8_t> more = Pattern(1000, 9);
  ASSERT_EQ(0, exs_send(client_, more.data(), 500, 0, queue_, Handle(0), EXS_MHANDLE_UNREGISTERED));
  ASSERT_EQ(0, Post(parts, &file, 1));
  ASSERT_EQ(0,
            exs_send(client_, more.data(), 1000, 0, queue_, Handle(2), EXS_MHANDLE_UNREGISTERED));
  exs_xferfile_t second;
  ASSERT_EQ(0, Post(parts, &second, 3));
  ASSERT_EQ(0, exs_send(client_, more.data(), 1, 0, queue_, Handle(4), EXS_MHANDLE_UNREGISTERED));
  ASSERT_EQ(0, exs_shutdown(client_, EXS_SHUT_WR, 0, queue_, Handle(5)));
  ASSERT_EQ(0, exs_close(client_, 0, queue_, Handle(6)));
  std::vector<uint8_t> to(500 + 2000 * 1000 + 1000 + 2000 * 1000 + 1);
  ReceiveAt(to);
  EXPECT_EQ(0, Next(other_).exs_evt_errno);
  ASSERT_EQ(0, exs_close(server_, 0, EXS_QHANDLE_INVALID, nullptr));
  for (uintptr_t i = 0; i <= 6; ++i) {
    const exs_event_t event = Next();
    EXPECT_EQ(Handle(i), event.exs_evt_ahandle);
    EXPECT_EQ(0, event.exs_evt_errno) << i;
  }
  const std::vector<uint8_t> content = Pattern(2000 * 1000, 3);
  EXPECT_TRUE(std::equal(content.begin(), content.end(), to.begin() + 500));
  EXPECT_TRUE(std::equal(more.begin(), more.end(), to.begin() + 2000500));
  EXPECT_TRUE(std::equal(content.begin(), content.end(), to.begin() + 2001500));
  EXPECT_EQ(more[0], to.back());
  client_ = server_ = -1;
  close(fd);
}

TEST_F(FileTest, AFileThatIsShorterEndsWithEioAndTheCount) {
  const int fd = FileOf(Pattern(300000));
  std::vector<exsx_xferpart_t> parts = {Range(fd, 0, 400000), Bytes("never", 5)};
  exs_xferfile_t file;
  std::vector<uint8_t> to(300000);
  ReceiveAt(to);
  ASSERT_EQ(0, Post(parts, &file));
  const exs_event_t event = Next();
  EXPECT_EQ(EIO, event.exs_evt_errno);
  EXPECT_EQ(300000u, event.exs_evt_union.exs_evt_xferfile.exs_evt_length);
  EXPECT_EQ(0, Next(other_).exs_evt_errno);
  EXPECT_EQ(Pattern(300000), to);
  close(fd);
}

// Not what is on its way already: four slots.
TEST_F(FileTest, ACancelStopsItBetweenPiecesAndWhatFollowsGoesOn) {
  const int fd = FileOf(Pattern(8 * 1000 * 1000));
  std::vector<exsx_xferpart_t> parts = {Range(fd, 0, 8 * 1000 * 1000)};
  exs_xferfile_t file;
  ASSERT_EQ(0, Post(parts, &file, 1));
  uint8_t mark = 0xee;
  ASSERT_EQ(0, exs_send(client_, &mark, 1, 0, queue_, Handle(2), EXS_MHANDLE_UNREGISTERED));
  ASSERT_EQ(0, exs_send(client_, &mark, 1, 0, queue_, Handle(3), EXS_MHANDLE_UNREGISTERED));
  EXPECT_EQ(1, exs_cancel(client_, Handle(2), EXS_CAF_AHANDLE));
  const exs_event_t held = Next();
  EXPECT_EQ(Handle(2), held.exs_evt_ahandle);
  EXPECT_EQ(ECANCELED, held.exs_evt_errno);
  EXPECT_EQ(1, exs_cancel(client_, Handle(1), EXS_CAF_AHANDLE));
  std::vector<uint8_t> to(8 * 1000 * 1000);
  ASSERT_EQ(0, exs_recv(server_, to.data(), to.size(), MSG_WAITALL, other_, nullptr,
                        EXS_MHANDLE_UNREGISTERED));
  const exs_event_t stopped = Next();
  EXPECT_EQ(Handle(1), stopped.exs_evt_ahandle);
  EXPECT_EQ(ECANCELED, stopped.exs_evt_errno);
  const uint64_t sent = stopped.exs_evt_union.exs_evt_xferfile.exs_evt_length;
  EXPECT_LE(sent, 4u * 256 * 1024);
  EXPECT_EQ(Handle(3), Next().exs_evt_ahandle);
  ASSERT_EQ(0, exs_shutdown(client_, EXS_SHUT_WR, 0, queue_, nullptr));
  EXPECT_EQ(0, Next().exs_evt_errno);
  const exs_event_t got = Next(other_);
  EXPECT_EQ(sent + 1, got.exs_evt_union.exs_evt_xfer.exs_evt_length);
  EXPECT_EQ(mark, to[sent]);
  close(fd);
}

// Of a file by its own name, whatever else the process opens meanwhile.
long DescriptorsOf(int file) {
  struct stat sought {};
  EXPECT_EQ(0, fstat(file, &sought));
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::count_if(begin(all), end(all), [&](const std::filesystem::directory_entry& entry) {
    struct stat found {};
    return stat(entry.path().c_str(), &found) == 0 && found.st_dev == sought.st_dev &&
           found.st_ino == sought.st_ino;
  });
}

TEST_F(FileTest, OneThatIsCancelledBeforeItBeginsHoldsNoDescriptor) {
  const int fd = FileOf(Pattern(8 * 1000 * 1000));
  std::vector<exsx_xferpart_t> parts = {Range(fd, 0, 8 * 1000 * 1000)};
  exs_xferfile_t file;
  ASSERT_EQ(0, Post(parts, &file, 1));
  std::vector<uint8_t> begin(1000);
  ReceiveAt(begin);
  EXPECT_EQ(0, Next(other_).exs_evt_errno);  // the first has opened all that it needs
  const long before = DescriptorsOf(fd);
  exs_xferfile_t behind;
  ASSERT_EQ(0, Post(parts, &behind, 2));
  EXPECT_EQ(before + 1, DescriptorsOf(fd));
  EXPECT_EQ(1, exs_cancel(client_, Handle(2), EXS_CAF_AHANDLE));
  EXPECT_EQ(ECANCELED, Next().exs_evt_errno);
  EXPECT_EQ(before, DescriptorsOf(fd));
  close(fd);
}

TEST_F(FileTest, FilesAndMemoryOfEveryKindAlternate) {
  const std::vector<uint8_t> content = Pattern(700'000, 3);
  std::vector<uint8_t> registered = Pattern(100'000, 2);
  const std::vector<uint8_t> other = Pattern(70'000, 1);
  const exs_mhandle_t memory = exs_mregister(registered.data(), registered.size(), 0);
  const int fd = FileOf(content);
  std::vector<exsx_xferpart_t> parts;
  std::vector<uint8_t> expected;
  for (int round = 0; round < 3; ++round) {
    parts.push_back(Bytes(registered.data(), registered.size(), memory));
    parts.push_back(Range(fd, 0, content.size()));
    parts.push_back(Range(fd, 1, 10));
    parts.push_back(Bytes(registered.data(), 5, memory));
    parts.push_back(Bytes(other.data(), other.size()));
    expected.insert(expected.end(), registered.begin(), registered.end());
    expected.insert(expected.end(), content.begin(), content.end());
    expected.insert(expected.end(), content.begin() + 1, content.begin() + 11);
    expected.insert(expected.end(), registered.begin(), registered.begin() + 5);
    expected.insert(expected.end(), other.begin(), other.end());
  }
  exs_xferfile_t file;
  std::vector<uint8_t> to(expected.size());
  ReceiveAt(to);
  ASSERT_EQ(0, Post(parts, &file));
  const exs_event_t sent = Next();
  EXPECT_EQ(0, sent.exs_evt_errno);
  EXPECT_EQ(expected.size(), sent.exs_evt_union.exs_evt_xferfile.exs_evt_length);
  EXPECT_EQ(0, Next(other_).exs_evt_errno);
  EXPECT_TRUE(to == expected);
  while (exs_mderegister(memory) != 0 && errno == EBUSY) usleep(1000);
  close(fd);
}

TEST_F(FileTest, WhatIsReadLikeAFileAndIsNoneIsCopied) {
  const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  std::vector<exsx_xferpart_t> parts = {Bytes("a", 1), Range(fd, 0, 100'000), Bytes("z", 1)};
  exs_xferfile_t file;
  std::vector<uint8_t> expected(100'002, 0);
  expected.front() = 'a';
  expected.back() = 'z';
  std::vector<uint8_t> to(expected.size(), 1);
  ReceiveAt(to);
  ASSERT_EQ(0, Post(parts, &file));
  EXPECT_EQ(0, Next().exs_evt_errno);
  EXPECT_EQ(0, Next(other_).exs_evt_errno);
  EXPECT_TRUE(to == expected);
  close(fd);
}

TEST_F(FileTest, WhereNothingCanBeRegisteredFilesAndMemoryAreCopied) {
  Pins& pins = Library::Current()->pins();
  pins.SetLimit(0);
  const std::vector<uint8_t> content = Pattern(1000 * 1000, 3);
  const std::vector<uint8_t> head = Pattern(300'000, 1);
  const int fd = FileOf(content);
  std::vector<exsx_xferpart_t> parts = {Bytes(head.data(), head.size()),
                                        Range(fd, 0, content.size()), Bytes(head.data(), 10)};
  exs_xferfile_t file;
  std::vector<uint8_t> to(head.size() + content.size() + 10);
  ReceiveAt(to);
  ASSERT_EQ(0, Post(parts, &file));
  EXPECT_EQ(0, Next().exs_evt_errno);
  EXPECT_EQ(0, Next(other_).exs_evt_errno);
  pins.SetLimit(UINT64_MAX);
  const auto middle = to.begin() + static_cast<ptrdiff_t>(head.size());
  EXPECT_TRUE(std::equal(head.begin(), head.end(), to.begin()));
  EXPECT_TRUE(std::equal(content.begin(), content.end(), middle));
  EXPECT_TRUE(std::equal(head.begin(), head.begin() + 10, to.end() - 10));
  close(fd);
}

// The one that tells it may still be in the queue.
TEST_F(FileTest, AQueueMayGoAsSoonAsItsLastEventIsTaken) {
  const std::vector<uint8_t> content = Pattern(1000, 3);
  const int fd = FileOf(content);
  std::vector<uint8_t> to(content.size());
  for (int round = 0; round < 300; ++round) {
    const exs_qhandle_t queue = exs_qcreate(4);
    std::vector<exsx_xferpart_t> parts = {Range(fd, 0, content.size())};
    exs_xferfile_t file = {parts.data(), parts.size(), {}};
    ReceiveAt(to);
    ASSERT_EQ(0, exs_sendfile(client_, &file, 0, queue, nullptr));
    exs_event_t event;
    timeval now{0, 0};
    int taken = 0;
    while ((taken = exs_qdequeue(queue, &event, 1, &now)) == 0) continue;
    ASSERT_EQ(1, taken);
    while (exs_qdelete(queue) != 0) ASSERT_EQ(EBUSY, errno);
    EXPECT_EQ(0, Next(other_).exs_evt_errno);
  }
  close(fd);
}

TEST_F(FileTest, LongMemoryIsRegisteredAMebibyteAtATime) {
  Pins& pins = Library::Current()->pins();
  pins.TakeMost();
  const std::vector<uint8_t> head = Pattern(8'000'000, 1);
  std::vector<exsx_xferpart_t> parts = {Bytes(head.data(), head.size())};
  exs_xferfile_t file;
  std::vector<uint8_t> to(1'000'000);
  ASSERT_EQ(0, Post(parts, &file));
  for (int i = 0; i < 8; ++i) {
    ReceiveAt(to);
    EXPECT_EQ(0, Next(other_).exs_evt_errno);
  }
  EXPECT_EQ(0, Next().exs_evt_errno);
  EXPECT_LE(pins.TakeMost(), 2u * 1024 * 1024);
}

TEST_F(FileTest, AnAbortAtAnyMomentEndsEverythingAndCloseComesLast) {
  const int fd = FileOf(Pattern(8 * 1000 * 1000));
  for (int moment = 0; moment < 100; ++moment) {
    std::vector<exsx_xferpart_t> parts = {Range(fd, 0, 8 * 1000 * 1000)};
    exs_xferfile_t file;
    const uint8_t byte = 1;
    ASSERT_EQ(0, Post(parts, &file, 1));
    ASSERT_EQ(0, exs_send(client_, &byte, 1, 0, queue_, Handle(2), EXS_MHANDLE_UNREGISTERED));
    const absl::Time until = absl::Now() + moment * absl::Microseconds(5);
    while (absl::Now() < until) continue;
    ASSERT_EQ(0, exs_close(client_, EXSX_CLOSE_ABORT, queue_, Handle(3)));
    std::array<exs_event_t, 3> events;
    timeval bound{20, 0};
    ASSERT_EQ(3, exs_qdequeue(queue_, events.data(), -3, &bound)) << moment;
    EXPECT_EQ(ECANCELED, events[0].exs_evt_errno) << moment;
    EXPECT_EQ(Handle(3), events[2].exs_evt_ahandle) << moment;
    client_ = -1;
    ASSERT_EQ(0, exs_close(server_, 0, EXS_QHANDLE_INVALID, nullptr));
    server_ = -1;
    ASSERT_NO_FATAL_FAILURE(Connect());
  }
  close(fd);
}

TEST_F(FileTest, AFileBehindAnUnheardCloseIsSentBeforeTheEnd) {
  const int fd = FileOf(Pattern(3 * 1000 * 1000));
  std::vector<exsx_xferpart_t> parts = {Range(fd, 0, 3 * 1000 * 1000)};
  exs_xferfile_t file;
  ASSERT_EQ(0, Post(parts, &file));
  ASSERT_EQ(0, exs_close(client_, 0, EXS_QHANDLE_INVALID, nullptr));
  client_ = -1;
  std::vector<uint8_t> to(3 * 1000 * 1000 + 1);
  ReceiveAt(to);
  EXPECT_EQ(0, Next().exs_evt_errno);
  const exs_event_t got = Next(other_);
  EXPECT_EQ(0, got.exs_evt_errno);
  EXPECT_EQ(3u * 1000 * 1000, got.exs_evt_union.exs_evt_xfer.exs_evt_length);
  close(fd);
}

TEST_F(FileTest, WrongFilesAreRefused) {
  const int fd = FileOf(Pattern(100));
  std::vector<exsx_xferpart_t> parts = {Range(fd, 0, 100)};
  exs_xferfile_t file = {parts.data(), 1, {}};
  EXPECT_ERRNO(EFAULT, exs_sendfile(client_, nullptr, 0, queue_, nullptr));
  EXPECT_ERRNO(EINVAL, exs_sendfile(client_, &file, 1, queue_, nullptr));
  EXPECT_ERRNO(ENOTSOCK, exs_sendfile(fd, &file, 0, queue_, nullptr));
  const int fresh = exs_socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_ERRNO(ENOTCONN, exs_sendfile(fresh, &file, 0, queue_, nullptr));
  EXPECT_EQ(0, exs_close(fresh, 0, EXS_QHANDLE_INVALID, nullptr));
  file.exs_xf_count = 0;
  EXPECT_ERRNO(EINVAL, exs_sendfile(client_, &file, 0, queue_, nullptr));
  file.exs_xf_count = 1025;
  EXPECT_ERRNO(EINVAL, exs_sendfile(client_, &file, 0, queue_, nullptr));
  file = {nullptr, 1, {}};
  EXPECT_ERRNO(EFAULT, exs_sendfile(client_, &file, 0, queue_, nullptr));
  int pipes[2];
  ASSERT_EQ(0, pipe(pipes));
  const int write_only = open("/dev/null", O_WRONLY);
  for (const auto& [part, error] :
       std::vector<std::pair<exsx_xferpart_t, int>>{{Range(-1, 0, 1), EBADF},
                                                    {Range(pipes[0], 0, 1), ESPIPE},
                                                    {Range(write_only, 0, 1), EBADF},
                                                    {Range(fd, UINT64_MAX, 1), EINVAL},
                                                    {Range(fd, 1, INT64_MAX), EINVAL},
                                                    {Bytes(nullptr, 1), EFAULT},
                                                    {Bytes("a", 1, 12345), EBADF},
                                                    {exsx_xferpart_t{}, EINVAL}}) {
    parts[0] = part;
    EXPECT_ERRNO(error, Post(parts, &file));
  }
  for (const int each : {fd, pipes[0], pipes[1], write_only}) close(each);
  EXPECT_TRUE(Drain().empty());
}

}  // namespace
}  // namespace esdp::exs
