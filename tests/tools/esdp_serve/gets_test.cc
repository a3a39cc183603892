#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tests/tools/esdp_serve/served.h"
#include "tools/esdp_files/chunks.h"
#include "tools/esdp_files/digest.h"
#include "tools/esdp_files/frame.h"
#include "tools/esdp_get/file_receiver.h"

// What a Get, or the server, may be asked for beside the bytes.

namespace esdp_serve {
namespace {

namespace wire = esdp_files::wire;
using esdp_files::kChunkBytes;

class GetsTest : public ServedTest {
 protected:
  static constexpr size_t kLength = 17 * kChunkBytes + 5;
  static constexpr size_t kPages = kLength / 4096 + 1;
  // How many of its pages are in memory. A read that does not wait would tell it, too, but there are
  // systems that begin to read ahead for it.
  size_t Cached(const std::string& name) const {
    const int fd = open(folder_.Path(name).c_str(), O_RDONLY | O_CLOEXEC);
    void* const mapped = mmap(nullptr, kLength, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    EXPECT_NE(mapped, MAP_FAILED);
    std::vector<unsigned char> pages(kPages);
    EXPECT_EQ(mincore(mapped, kLength, pages.data()), 0);
    munmap(mapped, kLength);
    return static_cast<size_t>(std::ranges::count_if(pages, [](int page) { return page & 1; }));
  }
  void BringToMedium(const std::string& name) const {
    const int fd = open(folder_.Path(name).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(fsync(fd), 0);
    close(fd);
  }
};

TEST_F(GetsTest, WhatWasSentIsForgottenByThePageCacheWhereAskedFor) {
  for (const bool drops : {false, true}) {
    for (const bool crc : {false, true}) {
      Serve({.drop_behind = drops});
      Make("file", kLength);
      BringToMedium("root/file");
      ASSERT_TRUE(Fetch(*Connect(), "file", {.crc = crc}).ok());
      EndServer();  // what nobody waits for has been done
      EXPECT_EQ(Cached("root/file"), drops ? 0 : kPages) << crc;
      EXPECT_TRUE(folder_.Read("fetched") == folder_.Read("root/file"));
    }
  }
}

wire::Request WholeRequest(const std::string& name, uint64_t offset = 0) {
  wire::Request request;
  request.mutable_get()->set_name(name);
  request.mutable_get()->set_offset(offset);
  request.mutable_get()->set_whole_sha256(true);
  return request;
}

std::string Sha256(const std::string& bytes) {
  esdp_files::Digest digest;
  digest.Add(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  const esdp_files::Sum sum = digest.Finish();
  return {reinterpret_cast<const char*>(sum.data()), sum.size()};
}

TEST_F(GetsTest, TheSumOfTheWholeComesBehindWhateverPartWasAskedFor) {
  Serve();
  const auto connection = Connect();
  for (const size_t length : {size_t{0}, size_t{1}, size_t{65536}, kChunkBytes, kLength}) {
    const std::string content = Make("file", length);
    for (const size_t offset : {size_t{0}, length / 2, length}) {
      ASSERT_TRUE(connection->Ask(WholeRequest("file", offset)).ok());
      const auto answer = connection->NextAnswer();
      ASSERT_TRUE(answer.ok()) << answer.status();
      EXPECT_EQ(answer->sha256(), "");
      std::vector<std::byte> chunk(kChunkBytes + esdp_files::kTailBytes);
      for (uint64_t left = answer->length(); left > 0; left -= std::min(left, kChunkBytes)) {
        const uint64_t bytes = std::min(left, kChunkBytes) + esdp_files::kTailBytes;
        ASSERT_TRUE(connection->ReadRaw(std::span(chunk).first(bytes)).ok());
      }
      const auto second = connection->SecondAnswer(answer->id());
      ASSERT_TRUE(second.ok()) << second.status();
      EXPECT_EQ(second->status(), wire::OK);
      EXPECT_EQ(second->sha256(), Sha256(content)) << length << " " << offset;
    }
  }
}

TEST_F(GetsTest, WhatCameIsComparedAsAWholeAlsoWithHolesAndWhereAPartWasThere) {
  Serve();
  const auto connection = Connect();
  Make("file", kLength);
  for (const size_t length : {size_t{0}, size_t{5}, kLength}) {
    const std::string name = std::to_string(length);
    Make(name, length);
    for (const bool crc : {false, true}) {
      ExpectFetched(*connection, name, {.crc = crc, .sha256 = true});
    }
  }
  folder_.Write("root/holes", "");
  std::filesystem::resize_file(folder_.Path("root/holes"), 5 * kChunkBytes);
  ExpectFetched(*connection, "holes", {.sha256 = true});
  // A part of which one byte is another one, which no length tells.
  wire::Request stat;
  stat.mutable_stat()->set_name("file");
  const auto about = connection->Get(std::move(stat));
  ASSERT_TRUE(about.ok());
  auto part = esdp_get::PartFile::Create(folder_.Path("fetched"), about->etag(), about->size());
  std::string left = folder_.Read("root/file").substr(0, 4 * kChunkBytes);
  left[17] ^= 1;
  ASSERT_EQ(pwrite(part->fd(), left.data(), left.size(), 0), static_cast<ssize_t>(left.size()));
  const absl::Status status = Fetch(*connection, "file", {.resume = true, .sha256 = true});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_TRUE(whole_);
  ExpectFetched(*connection, "file", {.resume = true, .sha256 = true});
}

TEST_F(GetsTest, AFileThatIsWrittenToWhileItIsSummedHasNoSum) {
  Serve();
  Make("file", kLength);
  const auto connection = Connect();
  ASSERT_TRUE(connection->Ask(WholeRequest("file")).ok());
  const auto answer = connection->NextAnswer();
  ASSERT_TRUE(answer.ok());
  Make("file", kLength);  // another one by its times
  esdp_get::FileReceiver receiver(*connection);
  auto part = esdp_get::PartFile::Create(folder_.Path("part"), 1, kLength);
  const absl::Status status = receiver.Receive(*answer, false, part->fd(), [](uint64_t) {});
  // Whether the last tail or the second answer tells of it: the connection goes on.
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_TRUE(receiver.connection_is_whole());
  ExpectFetched(*connection, "file", {.sha256 = true});
}

TEST_F(GetsTest, ASumThatNobodyWantsAnyMoreIsNotMade) {
  Serve();
  folder_.Write("root/long", "");
  std::filesystem::resize_file(folder_.Path("root/long"), uint64_t{15} << 40);  // hours of summing
  const auto connection = Connect();
  wire::Request request = WholeRequest("long");
  request.mutable_get()->set_sparse(true);  // nothing of it comes
  ASSERT_TRUE(connection->Ask(std::move(request)).ok());
  const auto answer = connection->NextAnswer();
  ASSERT_TRUE(answer.ok()) << answer.status();
  wire::Request cancel;
  cancel.mutable_cancel()->set_request(answer->id());
  RawClient::SendOver(*connection, esdp_files::ToFrame(cancel));
  const auto second = connection->SecondAnswer(answer->id());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->status(), wire::CANCELLED);
  Make("file", 5);
  ExpectFetched(*connection, "file");
  // Nor where the client goes away.
  {
    const auto other = Connect();
    wire::Request again = WholeRequest("long");
    again.mutable_get()->set_sparse(true);
    ASSERT_TRUE(other->Ask(std::move(again)).ok());
    ASSERT_TRUE(other->NextAnswer().ok());
  }
  AwaitCount(metrics_.clients, 1);
}

TEST_F(GetsTest, WithSumsItGoesOnBehindTheLastChunkThatIsAsItWasSummed) {
  Serve();
  const std::string content = Make("file", kLength);
  const auto connection = Connect();
  wire::Request stat;
  stat.mutable_stat()->set_name("file");
  const auto about = connection->Get(std::move(stat));
  ASSERT_TRUE(about.ok());
  for (const size_t damaged : {size_t{0}, size_t{3}, size_t{6}, size_t{7}}) {
    {
      auto part = esdp_get::PartFile::Create(folder_.Path("fetched"), about->etag(), kLength, true);
      ASSERT_TRUE(part.ok()) << part.status();
      for (uint64_t at = 0; at < 7 * kChunkBytes; at += kChunkBytes) {
        const auto chunk = std::as_bytes(std::span(content)).subspan(at, kChunkBytes);
        ASSERT_EQ(pwrite(part->fd(), chunk.data(), chunk.size(), static_cast<off_t>(at)),
                  static_cast<ssize_t>(kChunkBytes));
        ASSERT_TRUE(part->Settle({at, kChunkBytes}, esdp_files::Crc32c(chunk)).ok());
      }
      // As a machine that went down may leave it; behind the sums anything may lie.
      ASSERT_EQ(pwrite(part->fd(), "?", 1, static_cast<off_t>(damaged * kChunkBytes + 100)), 1);
    }
    const uint64_t before = metrics_.sent_bytes;
    ExpectFetched(*connection, "file", {.resume = true, .crc = true});
    EXPECT_EQ(metrics_.sent_bytes - before, kLength - damaged * kChunkBytes);
  }
  // One whose sums nobody has is fetched anew.
  auto part = esdp_get::PartFile::Create(folder_.Path("fetched"), about->etag(), kLength);
  ASSERT_EQ(pwrite(part->fd(), content.data(), 5 * kChunkBytes, 0), ssize_t{5 * kChunkBytes});
  const uint64_t before = metrics_.sent_bytes;
  ExpectFetched(*connection, "file", {.resume = true, .crc = true});
  EXPECT_EQ(metrics_.sent_bytes - before, kLength);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.Path(""))) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".esdp-")) << entry.path();
  }
}

}  // namespace
}  // namespace esdp_serve
