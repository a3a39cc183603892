#include "tools/esdp_files/root.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/tools/esdp_files/folder.h"

namespace esdp_files {
namespace {

using absl::StatusCode;

// With the kernel's own confinement, and part by part.
class RootTest : public testing::TestWithParam<bool> {
 protected:
  RootTest() {
    folder_.Write("outside", "not to be had");
    folder_.MakeFolder("root");
    folder_.MakeFolder("root/a");
    folder_.Write("root/a/file", "content");
  }
  Root Open(RootOptions options = {}) const {
    options.walk_by_parts = GetParam();
    auto root = Root::Open(folder_.Path("root"), options);
    EXPECT_TRUE(root.ok()) << root.status();
    return *std::move(root);
  }
  static std::string Content(const Root& root, const std::string& name) {
    const auto file = root.OpenFile(name);
    if (!file.ok()) return std::string(file.status().message());
    std::array<char, 100> bytes{};
    const ssize_t count = pread(file->get(), bytes.data(), bytes.size(), 0);
    return {bytes.data(), static_cast<size_t>(count)};
  }
  TestFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(, RootTest, testing::Values(false, true), [](const auto& one) {
  return std::string(one.param ? "ByParts" : "AtOnce");
});

TEST_P(RootTest, FilesBelowAreOpened) {
  const Root root = Open();
  for (const char* const name : {"a/file", "a//file", "./a/./file"}) {
    EXPECT_EQ(Content(root, name), "content") << name;
  }
  EXPECT_TRUE(root.OpenFolder("").ok());
  EXPECT_TRUE(root.OpenFolder("a").ok());
  EXPECT_EQ(root.Stat("a/file")->st_size, 7);
}

TEST_P(RootTest, NothingOutsideIsOpenedWhateverTheName) {
  std::filesystem::create_symlink("../outside", folder_.Path("root/out"));
  std::filesystem::create_symlink(folder_.Path("outside"), folder_.Path("root/absolute"));
  std::filesystem::create_symlink("..", folder_.Path("root/up"));
  std::filesystem::create_symlink("/proc/self/root", folder_.Path("root/proc"));
  std::filesystem::create_symlink("/proc/self/fd/0", folder_.Path("root/magic"));
  const Root root = Open();
  for (const std::string name : {"../outside", "a/../../outside", "/etc/passwd", "out", "absolute",
                                 "up/outside", "proc/etc/passwd", "magic", "a/../a/file"}) {
    EXPECT_FALSE(root.OpenFile(name).ok()) << name;
    EXPECT_FALSE(root.Stat(name).ok()) << name;
  }
  EXPECT_FALSE(root.OpenFolder("up").ok());
  EXPECT_FALSE(root.OpenFolder("..").ok());
}

TEST_P(RootTest, ALinkThatStaysBelowIsFollowedWhereLinksAre) {
  std::filesystem::create_symlink("a/file", folder_.Path("root/link"));
  std::filesystem::create_symlink("link", folder_.Path("root/again"));
  EXPECT_EQ(Content(Open(), "again").starts_with("content"), !GetParam());
  EXPECT_EQ(Open({.follow_links = false}).OpenFile("link").status().code(),
            StatusCode::kPermissionDenied);
}

TEST_P(RootTest, WhatIsNoRegularFileIsNotOpened) {
  ASSERT_EQ(mkfifo(folder_.Path("root/fifo").c_str(), 0600), 0);
  const Root root = Open();
  EXPECT_EQ(root.OpenFile("fifo").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(root.OpenFile("a").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(root.OpenFolder("a/file").status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(S_ISFIFO(root.Stat("fifo")->st_mode));
  // Only root can make a device.
  if (mknod(folder_.Path("root/null").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) {
    EXPECT_EQ(root.OpenFile("null").status().code(), StatusCode::kInvalidArgument);
  }
}

TEST_P(RootTest, WhatIsNotThereIsNotFound) {
  const Root root = Open();
  for (const std::string name : {"nothing", "a/nothing", "nothing/file", "a/file/below"}) {
    EXPECT_EQ(root.OpenFile(name).status().code(), StatusCode::kNotFound) << name;
  }
  EXPECT_EQ(root.OpenFile(std::string(4096, 'x')).status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(Root::Open(folder_.Path("nothing")).ok());
  EXPECT_FALSE(Root::Open(folder_.Path("outside")).ok());
}

TEST_P(RootTest, AFolderThatIsRenamedMeanwhileLeadsNowhereElse) {
  folder_.MakeFolder("root/b");
  folder_.MakeFolder("elsewhere");
  folder_.Write("elsewhere/file", "not to be had");
  const Root root = Open();
  std::atomic<bool> ends = false;
  // What the name passes through is inside, then outside, then a link to the outside.
  std::thread renamer([&] {
    while (!ends) {
      std::filesystem::rename(folder_.Path("root/a"), folder_.Path("moved"));
      std::filesystem::create_symlink(folder_.Path("elsewhere"), folder_.Path("root/a"));
      std::filesystem::remove(folder_.Path("root/a"));
      std::filesystem::rename(folder_.Path("moved"), folder_.Path("root/a"));
    }
  });
  for (int i = 0; i < 2000; ++i) EXPECT_NE(Content(root, "a/file"), "not to be had");
  ends = true;
  renamer.join();
}

TEST_P(RootTest, AnEtagIsAnotherOneOnceTheFileIs) {
  const Root root = Open();
  const uint64_t first = EtagOf(*root.Stat("a/file"));
  EXPECT_EQ(EtagOf(*root.Stat("a/file")), first);
  folder_.Write("root/a/file", "other content");
  EXPECT_NE(EtagOf(*root.Stat("a/file")), first);
}

}  // namespace
}  // namespace esdp_files
