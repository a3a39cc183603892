#include "impl/base/shared_memory.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "gtest/gtest.h"

namespace esdp {
namespace {

constexpr size_t kLength = 64 * 1024;
constexpr int kFutureWrite = 0x0010;

class SharedMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = MakeWritableMemory(kLength, 4096);
    ASSERT_TRUE(made.ok()) << made.status();
    memory_ = *std::move(made);
  }

  bool IsRefused(const Descriptor& file, size_t length = kLength) {
    return absl::IsPermissionDenied(MapReadOnly(file, length, 0).status());
  }

  WritableMemory memory_;
};

TEST_F(SharedMemoryTest, WhatOneSideWritesTheOtherSees) {
  const auto reader = MapReadOnly(memory_.file, kLength, kLength);
  ASSERT_TRUE(reader.ok()) << reader.status();
  memory_.mapping.base()[4711] = std::byte{42};
  EXPECT_EQ(reader->base()[4711], std::byte{42});
  EXPECT_EQ(reader->base()[0], std::byte{0});
}

TEST_F(SharedMemoryTest, WhoHasTheFileCanNeitherCutItNorTakePagesOutOfIt) {
  const int file = memory_.file.number();
  EXPECT_EQ(ftruncate(file, 4096), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(file, 2 * kLength), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST_F(SharedMemoryTest, WhoHasTheFileCannotWriteToIt) {
  const std::string path = "/proc/self/fd/" + std::to_string(memory_.file.number());
  const Descriptor again(open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(again.is_open());
  for (const int file : {memory_.file.number(), again.number()}) {
    EXPECT_EQ(pwrite(file, "x", 1, 0), -1);
    EXPECT_EQ(errno, EPERM);
    EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), MAP_FAILED);
    EXPECT_EQ(errno, EPERM);
  }
}

TEST_F(SharedMemoryTest, AReadersMappingCannotBeMadeWritable) {
  const auto reader = MapReadOnly(memory_.file, kLength, 0);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(mprotect(reader->base(), kLength, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(errno, EACCES);
}

TEST_F(SharedMemoryTest, AnotherSizeThanAgreedOnIsRefused) {
  EXPECT_TRUE(IsRefused(memory_.file, kLength + 4096));
  EXPECT_TRUE(IsRefused(memory_.file, kLength - 4096));
}

TEST_F(SharedMemoryTest, AMemoryFileThatLacksASealIsRefused) {
  for (const int seals :
       {0, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, F_SEAL_GROW | kFutureWrite | F_SEAL_SEAL,
        F_SEAL_SHRINK | F_SEAL_GROW | kFutureWrite}) {
    const Descriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(file.number(), kLength), 0);
    ASSERT_EQ(fcntl(file.number(), F_ADD_SEALS, seals), 0);
    EXPECT_TRUE(IsRefused(file)) << seals;
  }
}

TEST_F(SharedMemoryTest, WhatIsNoMemoryFileIsRefused) {
  const Descriptor event(eventfd(0, EFD_CLOEXEC));
  const Descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  const Descriptor zeros(open("/dev/zero", O_RDWR | O_CLOEXEC));
  std::FILE* const file = std::tmpfile();
  ASSERT_EQ(ftruncate(fileno(file), kLength), 0);
  const Descriptor on_disk(dup(fileno(file)));
  std::fclose(file);
  for (const Descriptor* other : {&event, &nothing, &zeros, &on_disk}) {
    EXPECT_TRUE(IsRefused(*other)) << other->number();
  }
}

TEST_F(SharedMemoryTest, AChildOfForkHasNoneOfIt) {
  const auto reader = MapReadOnly(memory_.file, kLength, kLength);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const pid_t child = fork();
  if (child == 0) {
    unsigned char resident = 0;
    const bool has_own = mincore(memory_.mapping.base(), 4096, &resident) == 0;
    const bool has_other = mincore(reader->base(), 4096, &resident) == 0;
    _exit(has_own || has_other ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(SharedMemoryTest, AMappingOutlivesTheOneWhoMadeIt) {
  auto reader = MapReadOnly(memory_.file, kLength, 0);
  ASSERT_TRUE(reader.ok()) << reader.status();
  memory_.mapping.base()[1] = std::byte{9};
  memory_ = {};
  EXPECT_EQ(reader->base()[1], std::byte{9});
}

}  // namespace
}  // namespace esdp
