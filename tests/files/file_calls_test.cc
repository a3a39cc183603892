#include "impl/files/file_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

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

}  // namespace
}  // namespace esdp::files
