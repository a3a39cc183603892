#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tests/tools/esdp_serve/served.h"
#include "tools/esdp_files/big_endian.h"
#include "tools/esdp_files/chunks.h"
#include "tools/esdp_files/frame.h"
#include "tools/esdp_files/names.h"
#include "tools/esdp_get/upload.h"

namespace esdp_serve {
namespace {

namespace wire = esdp_files::wire;
using absl::StatusCode;
using esdp_files::kChunkBytes;
using esdp_files::kTailBytes;

class PutTest : public ServedTest {
 protected:
  absl::Status Bring(esdp_get::Connection& connection, const std::string& name,
                     const esdp_get::UploadOptions& options = {}) {
    esdp_get::Uploader uploader(connection, options, [](const auto&, uint64_t, uint64_t) {});
    const absl::Status status = uploader.Bring(folder_.Path("mine"), name);
    whole_ = uploader.whole();
    return status;
  }
  void MakeMine(size_t length) {
    folder_.Write("mine", Make("made", length));
    std::filesystem::remove(folder_.Path("root/made"));
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.Path("root"))) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  // A Put of which the test sends the bytes itself.
  wire::Answer BeginPut(esdp_get::Connection& connection, uint64_t size, bool crc) {
    wire::Request request;
    request.mutable_put()->set_name("file");
    request.mutable_put()->set_size(size);
    request.mutable_put()->set_chunk_crc(crc);
    EXPECT_TRUE(connection.Ask(std::move(request)).ok());
    const auto answer = connection.NextAnswer(/*another_follows=*/true);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(wire::Answer());
  }
  // Of the sums beside a part.
  static std::string Entry(uint64_t state, uint32_t crc, uint64_t offset) {
    std::array<std::byte, 24> entry{};
    const std::span all(entry);
    esdp_files::StoreBigEndian(state, all.first<4>());
    esdp_files::StoreBigEndian(crc, all.subspan<4, 4>());
    esdp_files::StoreBigEndian(offset, all.subspan<8, 8>());
    esdp_files::StoreBigEndian(kChunkBytes, all.subspan<16, 8>());
    return {reinterpret_cast<const char*>(entry.data()), entry.size()};
  }
  static std::string Chunk(const std::string& content, const esdp_files::Tail& tail) {
    std::string bytes = content + std::string(kTailBytes, '\0');
    const auto all = std::as_writable_bytes(std::span(bytes));
    esdp_files::StoreTail(tail, all.last<kTailBytes>());
    return bytes;
  }
};

TEST_F(PutTest, FilesOfEverySizeArriveWholeAndNothingElseIsLeft) {
  Serve();
  const auto connection = Connect();
  for (const size_t length : {size_t{0}, size_t{1}, kChunkBytes - 1, kChunkBytes, kChunkBytes + 1,
                              9 * kChunkBytes + 12345}) {
    for (const bool crc : {false, true}) {
      MakeMine(length);
      const absl::Status status = Bring(*connection, "file", {.crc = crc, .replace = true});
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_TRUE(folder_.Read("mine") == folder_.Read("root/file")) << length;
      EXPECT_EQ(Names(), std::vector<std::string>{"file"});
    }
  }
  ExpectFetched(*connection, "file");
}

TEST_F(PutTest, AFileThatIsThereGivesWayOnlyWhereThatIsAskedFor) {
  Serve();
  folder_.Write("root/file", "old");
  MakeMine(10);
  const auto connection = Connect();
  EXPECT_EQ(Bring(*connection, "file").code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(whole_);
  EXPECT_EQ(folder_.Read("root/file"), "old");
  EXPECT_TRUE(Bring(*connection, "file", {.replace = true}).ok());
  EXPECT_EQ(folder_.Read("root/file"), folder_.Read("mine"));
}

TEST_F(PutTest, WhatWasBroughtIsWhatComesFromThenOn) {
  Serve();
  const auto connection = Connect();
  for (const size_t length : {size_t{10}, size_t{20}, size_t{20}}) {
    MakeMine(length);
    ASSERT_TRUE(Bring(*connection, "file", {.replace = true}).ok());
    ExpectFetched(*connection, "file");
    EXPECT_EQ(folder_.Read("fetched"), folder_.Read("mine"));
  }
}

TEST_F(PutTest, NothingIsWrittenOutsideWhateverTheName) {
  Serve();
  folder_.MakeFolder("elsewhere");
  folder_.Write("elsewhere/file", "old");
  std::filesystem::create_symlink("../elsewhere", folder_.Path("root/out"));
  std::filesystem::create_symlink("../elsewhere/file", folder_.Path("root/link"));
  MakeMine(10);
  const auto connection = Connect();
  for (const std::string name : {"../elsewhere/file", "out/file", "/tmp/x", "", "a/", "..",
                                 "nothing/file", ".esdp-0123456789abcdef.part"}) {
    EXPECT_FALSE(Bring(*connection, name, {.replace = true}).ok()) << name;
    ASSERT_TRUE(whole_) << name;
  }
  // The link itself gives way, not what it leads to.
  EXPECT_TRUE(Bring(*connection, "link", {.replace = true}).ok());
  EXPECT_EQ(folder_.Read("elsewhere/file"), "old");
  EXPECT_FALSE(std::filesystem::is_symlink(folder_.Path("root/link")));
}

TEST_F(PutTest, ALinkInPlaceOfThePartIsNotFollowed) {
  Serve();
  MakeMine(10);
  folder_.Write("outside", "old");
  struct stat about {};
  ASSERT_EQ(stat(folder_.Path("mine").c_str(), &about), 0);
  const std::string part = esdp_files::PartName("file", esdp_files::EtagOf(about), 10);
  std::filesystem::create_symlink("../outside", folder_.Path("root/" + part));
  const auto connection = Connect();
  EXPECT_FALSE(Bring(*connection, "file").ok());
  std::filesystem::remove(folder_.Path("root/" + part));
  std::filesystem::create_hard_link(folder_.Path("outside"), folder_.Path("root/" + part));
  EXPECT_FALSE(Bring(*connection, "file").ok());
  EXPECT_EQ(folder_.Read("outside"), "old");
}

TEST_F(PutTest, AServerThatOnlyLetsReadTakesNothing) {
  Serve({.read_only = true});
  MakeMine(10);
  const auto connection = Connect();
  EXPECT_EQ(Bring(*connection, "file").code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(Names().empty());
}

TEST_F(PutTest, ItGoesOnBehindWhatAnEarlierOneHasLeft) {
  Serve();
  MakeMine(9 * kChunkBytes + 5);
  struct stat about {};
  ASSERT_EQ(stat(folder_.Path("mine").c_str(), &about), 0);
  const std::string part =
      esdp_files::PartName("file", esdp_files::EtagOf(about), 9 * kChunkBytes + 5);
  const std::string mine = folder_.Read("mine");
  const auto connection = Connect();
  // Neither what is longer than the sums tell, nor what is shorter, is taken for more than it is.
  struct Left {
    size_t bytes;
    size_t sums;
    size_t chunks;
  };
  std::vector<Left> all_left = {{5, 0, 0},
                                {3 * kChunkBytes + 7, 4, 3},
                                {5 * kChunkBytes, 2, 2},
                                {9 * kChunkBytes + 5, 10, 9}};
  for (size_t chunk = 0; chunk <= 9; ++chunk) {
    all_left.push_back({chunk * kChunkBytes, chunk, chunk});
  }
  for (const Left& left : all_left) {
    folder_.Write("root/" + part, mine.substr(0, left.bytes));
    std::string sums;
    for (size_t i = 0; i < left.sums; ++i) sums += Entry(1, 0, i * kChunkBytes);
    folder_.Write("root/" + esdp_files::SumsName(part), sums + "\1");
    const uint64_t before = metrics_.received_bytes;
    const absl::Status status = Bring(*connection, "file", {.resume = true, .replace = true});
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(mine == folder_.Read("root/file")) << left.bytes;
    EXPECT_EQ(metrics_.received_bytes - before, mine.size() - left.chunks * kChunkBytes);
    EXPECT_EQ(Names(), std::vector<std::string>{"file"});
  }
}

TEST_F(PutTest, WhatIsNotAsItWasSummedIsBroughtAgain) {
  Serve();
  MakeMine(9 * kChunkBytes);
  struct stat about {};
  ASSERT_EQ(stat(folder_.Path("mine").c_str(), &about), 0);
  const std::string part = esdp_files::PartName("file", esdp_files::EtagOf(about), 9 * kChunkBytes);
  std::string left = folder_.Read("mine").substr(0, 6 * kChunkBytes);
  std::string sums;
  for (size_t i = 0; i < 6; ++i) {
    const auto chunk = std::as_bytes(std::span(left)).subspan(i * kChunkBytes, kChunkBytes);
    sums += Entry(2, esdp_files::Crc32c(chunk), i * kChunkBytes);
  }
  left[4 * kChunkBytes + 17] ^= 1;  // as a machine that went down may leave it
  folder_.Write("root/" + part, left);
  folder_.Write("root/" + esdp_files::SumsName(part), sums);
  const auto connection = Connect();
  const absl::Status status = Bring(*connection, "file", {.resume = true, .crc = true});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(folder_.Read("mine") == folder_.Read("root/file"));
  EXPECT_EQ(metrics_.received_bytes, 5 * kChunkBytes);
}

TEST_F(PutTest, PartsThatAreNotInOrderAreRefused) {
  Serve();
  const auto connection = Connect();
  using Parts = std::vector<esdp_files::FileExtent>;
  for (const Parts& parts : {Parts{{5, 6}}, Parts{{0, 0}}, Parts{{5, 1}, {4, 1}},
                             Parts{{0, 2}, {1, 1}}, Parts{{~uint64_t{0}, 2}}}) {
    wire::Request request;
    wire::Put& put = *request.mutable_put();
    put.set_name("file");
    put.set_size(10);
    put.set_sparse(true);
    for (const esdp_files::FileExtent& part : parts) {
      auto* const told = put.add_extents();
      told->set_offset(part.offset);
      told->set_length(part.length);
    }
    const auto answer = connection->Get(std::move(request));
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->status(), wire::INVALID);
  }
  EXPECT_TRUE(Names().empty());
}

TEST_F(PutTest, HolesAloneMakeAFile) {
  Serve();
  folder_.Write("mine", "");
  std::filesystem::resize_file(folder_.Path("mine"), 5 * kChunkBytes);
  const auto connection = Connect();
  for (const bool resume : {false, true}) {
    const absl::Status status = Bring(*connection, "file", {.resume = resume, .replace = true});
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(std::filesystem::file_size(folder_.Path("root/file")), 5 * kChunkBytes);
  }
  EXPECT_EQ(metrics_.received_bytes, 0u);
}

TEST_F(PutTest, FoldersAreMadeBelowTheRootAlone) {
  Serve();
  folder_.Write("root/file", "old");
  const auto connection = Connect();
  const auto make = [&](const std::string& name) {
    wire::Request request;
    request.mutable_make_folder()->set_name(name);
    const auto answer = connection->Get(std::move(request));
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->status() : wire::FAILED;
  };
  EXPECT_EQ(make("a"), wire::OK);
  EXPECT_EQ(make("a"), wire::OK);
  EXPECT_EQ(make("a/b"), wire::OK);
  EXPECT_TRUE(std::filesystem::is_directory(folder_.Path("root/a/b")));
  EXPECT_EQ(make("file"), wire::EXISTS);
  EXPECT_EQ(make("nothing/b"), wire::NOT_FOUND);
  EXPECT_EQ(make("../b"), wire::PERMISSION_DENIED);
  EXPECT_EQ(make(""), wire::INVALID);
  EXPECT_EQ(make(".esdp-0123456789abcdef.sums"), wire::INVALID);
}

TEST_F(PutTest, ALinkInPlaceOfTheSumsIsNotFollowed) {
  Serve();
  MakeMine(2 * kChunkBytes);
  struct stat about {};
  ASSERT_EQ(stat(folder_.Path("mine").c_str(), &about), 0);
  const std::string part = esdp_files::PartName("file", esdp_files::EtagOf(about), 2 * kChunkBytes);
  folder_.Write("outside", "old");
  std::filesystem::create_symlink("../outside", folder_.Path("root/" + esdp_files::SumsName(part)));
  const auto connection = Connect();
  EXPECT_FALSE(Bring(*connection, "file").ok());
  EXPECT_EQ(folder_.Read("outside"), "old");
}

TEST_F(PutTest, AClientThatGoesAwayLeavesWhatHasComeForTheNext) {
  Serve();
  {
    const auto connection = Connect();
    const wire::Answer answer = BeginPut(*connection, 5 * kChunkBytes, false);
    EXPECT_EQ(answer.offset(), 0u);
    const auto other = Connect();
    // The same file by another client meanwhile.
    EXPECT_EQ(BeginPut(*other, 5 * kChunkBytes, false).status(), wire::UNAVAILABLE);
    RawClient::SendOver(*connection, Chunk(std::string(1000, 'x'), {}));
    AwaitCount(metrics_.clients, 2);
  }
  AwaitCount(metrics_.clients, 0);
  // What has come, and what is known of it.
  EXPECT_EQ(Names().size(), 2u);
  for (const std::string& name : Names()) EXPECT_TRUE(esdp_files::IsPartName(name)) << name;
}

TEST_F(PutTest, AChunkWhoseSumDoesNotFitLeavesNothing) {
  Serve();
  const auto connection = Connect();
  BeginPut(*connection, 1000, true);
  RawClient::SendOver(*connection, Chunk(std::string(1000, 'x'), {.crc = 1}));
  const auto answer = connection->NextAnswer();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status(), wire::FAILED);
  EXPECT_TRUE(Names().empty());
}

TEST_F(PutTest, AClientThatCannotReadOnSaysSoAndNothingIsRenamed) {
  Serve();
  for (const esdp_files::Tail tail :
       {esdp_files::Tail{.status = wire::IO_LOCAL}, esdp_files::Tail{.offset = 77}}) {
    const auto connection = Connect();
    BeginPut(*connection, 1000, false);
    RawClient::SendOver(*connection, Chunk(std::string(1000, 'x'), tail));
    const auto answer = connection->NextAnswer();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_NE(answer->status(), wire::OK);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("root/file")));
  EXPECT_EQ(metrics_.failed_files, 2u);
}

}  // namespace
}  // namespace esdp_serve
