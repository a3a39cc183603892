#include "impl/files/file_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace esdp::files {
namespace {

class FileCallsTest : public ::testing::Test {
 protected:
  FileCallsTest() {
    const std::string path = testing::TempDir() + "/file";
    fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT_GE(fd_, 0);
    unlink(path.c_str());
  }
  ~FileCallsTest() override { close(fd_); }
  struct stat About() const {
    struct stat about {};
    EXPECT_EQ(0, fstat(fd_, &about));
    return about;
  }

  FileCalls& calls_ = FileCalls::System();
  int fd_ = -1;
};

TEST_F(FileCallsTest, WhatCannotFitIsRefusedAndTakesNothing) {
  for (const uint64_t length : {uint64_t{1} << 50, uint64_t{1} << 62}) {
    const int error = calls_.Reserve(fd_, 0, length);
    EXPECT_TRUE(error == ENOSPC || error == EFBIG) << error;
    EXPECT_EQ(0, About().st_blocks);
  }
}

TEST_F(FileCallsTest, RoomIsTakenAndTheSizeStays) {
  EXPECT_EQ(0, calls_.Reserve(fd_, 0, 100'000));
  EXPECT_EQ(0, About().st_size);
}

TEST_F(FileCallsTest, AHoleAtTheEndMakesTheFileLongerAndOneInsideDoesNot) {
  const int refused = calls_.MakeHole(fd_, 8192, 4096);
  if (refused == EOPNOTSUPP) return;  // this file system has none
  ASSERT_EQ(0, refused);
  EXPECT_EQ(12'288, About().st_size);
  EXPECT_EQ(0, calls_.MakeHole(fd_, 0, 4096));
  EXPECT_EQ(12'288, About().st_size);
}

// Two receives may fill parts of one file side by side.
TEST_F(FileCallsTest, AHoleAtTheEndCutsNothingOffThatOthersWriteMeanwhile) {
  if (calls_.MakeHole(fd_, 0, 4096) == EOPNOTSUPP) return;
  constexpr int kRounds = 2000;
  int lost = 0;
  std::atomic<int> round{0};
  std::thread other([&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (round < i) continue;
      for (int later = 0; later < i % kRounds; ++later)
        (void)round.load();  // at every moment of it
      EXPECT_EQ(1, pwrite(fd_, "x", 1, i * 8192 + 4096));
      round = -i;
      while (round == -i) std::this_thread::yield();
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    round = i;
    EXPECT_EQ(0, calls_.MakeHole(fd_, static_cast<uint64_t>(i) * 8192, 4096));
    while (round != -i) std::this_thread::yield();
    char byte = 0;
    if (pread(fd_, &byte, 1, i * 8192 + 4096) != 1 || byte != 'x') ++lost;
    round = 0;
  }
  other.join();
  EXPECT_EQ(0, lost);
}

TEST_F(FileCallsTest, ADescriptionOfItsOwnReadsTheSameBytes) {
  ASSERT_EQ(3, pwrite(fd_, "abc", 3, 0));
  const int again = calls_.OpenSequential(fd_);
  ASSERT_GE(again, 0);
  std::array<std::byte, 3> read{};
  EXPECT_EQ(3, calls_.Read(again, read, 0));
  EXPECT_EQ(std::byte{'c'}, read[2]);
  EXPECT_EQ(-EBADF, calls_.Write(again, read, 0)) << "it is for reading";
  calls_.StartSync(fd_, 0, 3);
  calls_.DropCached(again, 0, 3);
  EXPECT_EQ(3, calls_.Read(fd_, read, 0));
  calls_.Close(again);
}

TEST_F(FileCallsTest, WhatIsNoDescriptorHasNoDescription) {
  EXPECT_LT(calls_.OpenSequential(-1), 0);
  EXPECT_LT(calls_.OpenDirect(1 << 20), 0);
}

}  // namespace
}  // namespace esdp::files
