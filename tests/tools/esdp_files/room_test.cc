#include "tools/esdp_files/room.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "gtest/gtest.h"

namespace esdp_files {
namespace {

int64_t BlocksOf(int fd) {
  struct stat about {};
  EXPECT_EQ(0, fstat(fd, &about));
  return about.st_blocks;
}

TEST(RoomTest, WhatCannotFitIsRefusedAndTakesNothing) {
  const std::string path = testing::TempDir() + "/room";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  unlink(path.c_str());
  for (const uint64_t length : {uint64_t{1} << 50, uint64_t{1} << 62}) {
    const int error = ReserveRoom(fd, 0, length);
    EXPECT_TRUE(error == ENOSPC || error == EFBIG) << error;
    EXPECT_EQ(0, BlocksOf(fd));
  }
  EXPECT_EQ(0, ReserveRoom(fd, 0, 100'000));
  struct stat about {};
  EXPECT_EQ(0, fstat(fd, &about));
  EXPECT_EQ(0, about.st_size);
  close(fd);
}

TEST(RoomTest, AFileSystemWithoutALimitHasRoom) {
  const int fd = memfd_create("room", MFD_CLOEXEC);
  EXPECT_EQ(0, ReserveRoom(fd, 0, 100'000));
  EXPECT_EQ(0, ReserveRoom(fd, 100'000, 0));
  close(fd);
}

}  // namespace
}  // namespace esdp_files
