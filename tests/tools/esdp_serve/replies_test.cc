#include "tools/esdp_serve/replies.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/tools/esdp_files/folder.h"
#include "tools/esdp_files/frame.h"
#include "tools/esdp_serve/listing.h"

namespace esdp_serve {
namespace {

namespace wire = esdp_files::wire;
using esdp_files::kChunkBytes;
using esdp_files::kTailBytes;
using esdp_files::Tail;

class RepliesTest : public testing::Test {
 protected:
  RepliesTest() : root_(*esdp_files::Root::Open(folder_.Path(""))), block_(136 * 1024) {}

  // What goes out: the answer, and what is behind it.
  Reply Ask(const wire::Request& request) {
    Reply reply = ReplyTo(request, root_, block_);
    esdp_files::FrameReader reader;
    reader.Add(std::span(block_).first(reply.bytes));
    const auto frame = reader.Next();
    EXPECT_TRUE(frame.has_value());
    answer_.Clear();
    if (frame) answer_.ParseFromArray(frame->data(), static_cast<int>(frame->size()));
    behind_ = reader.TakeRaw(reader.left());
    return reply;
  }
  Reply Get(const std::string& name, uint64_t offset = 0, uint64_t length = 0,
            bool sparse = false) {
    wire::Request request;
    request.set_id(5);
    request.mutable_get()->set_name(name);
    request.mutable_get()->set_offset(offset);
    request.mutable_get()->set_length(length);
    request.mutable_get()->set_sparse(sparse);
    request.mutable_get()->set_chunk_crc(true);
    return Ask(request);
  }
  static Tail TailOf(const std::string& bytes) {
    const auto all = std::as_bytes(std::span(bytes));
    return esdp_files::LoadTail(all.last<kTailBytes>());
  }
  esdp_files::TestFolder folder_;
  esdp_files::Root root_;
  std::vector<std::byte> block_;
  wire::Answer answer_;
  std::string behind_;
};

TEST_F(RepliesTest, ASmallFileGoesWithItsAnswer) {
  folder_.Write("file", "content");
  const Reply reply = Get("file");
  EXPECT_EQ(answer_.id(), 5u);
  EXPECT_EQ(answer_.status(), wire::OK);
  EXPECT_EQ(answer_.size(), 7u);
  EXPECT_EQ(answer_.length(), 7u);
  EXPECT_EQ(reply.file_bytes, 7u);
  EXPECT_EQ(reply.opened, nullptr);
  ASSERT_EQ(behind_.size(), 7 + kTailBytes);
  EXPECT_EQ(behind_.substr(0, 7), "content");
  const std::string content = "content";
  EXPECT_EQ(TailOf(behind_),
            (Tail{.crc = esdp_files::Crc32c(std::as_bytes(std::span(content))), .offset = 0}));
}

TEST_F(RepliesTest, APartIsWhatWasAskedForAsFarAsThereIsSuch) {
  folder_.Write("file", "0123456789");
  Get("file", 3, 4);
  EXPECT_EQ(behind_.substr(0, 4), "3456");
  EXPECT_EQ(TailOf(behind_).offset, 3u);
  Get("file", 8, 100);
  EXPECT_EQ(answer_.length(), 2u);
  Get("file", 10, 1);
  EXPECT_EQ(answer_.status(), wire::OK);
  EXPECT_EQ(answer_.length(), 0u);
  EXPECT_EQ(behind_, "");
  Get("file", 11, 1);
  EXPECT_EQ(answer_.status(), wire::INVALID);
  Get("file", ~uint64_t{0}, ~uint64_t{0});
  EXPECT_EQ(answer_.status(), wire::INVALID);
  Get("file", 9, ~uint64_t{0});
  EXPECT_EQ(behind_.substr(0, 1), "9");
}

TEST_F(RepliesTest, ALargeFileFollowsInChunks) {
  folder_.Write("file", std::string(2 * kChunkBytes + 1, 'x'));
  const Reply reply = Get("file");
  EXPECT_EQ(behind_, "");
  ASSERT_NE(reply.opened, nullptr);
  EXPECT_EQ(reply.opened->chunks.Peek(), (esdp_files::FileExtent{0, kChunkBytes}));
}

TEST_F(RepliesTest, OfASparseFileOnlyTheDataGoesAndTheAnswerTellsWhereItLies) {
  folder_.Write("file", "");
  const int fd = open(folder_.Path("file").c_str(), O_WRONLY);
  ASSERT_EQ(ftruncate(fd, int64_t{20} << 30), 0);
  ASSERT_EQ(pwrite(fd, "data", 4, int64_t{10} << 30), 4);
  close(fd);
  Get("file", 0, 0, true);
  EXPECT_EQ(answer_.size(), uint64_t{20} << 30);
  EXPECT_TRUE(answer_.sparse());
  ASSERT_EQ(answer_.extents_size(), 1);
  EXPECT_LE(answer_.extents(0).offset(), uint64_t{10} << 30);
  EXPECT_EQ(answer_.extents(0).length(), answer_.length());
  EXPECT_LT(answer_.length(), 1u << 20);
  EXPECT_NE(behind_.find("data"), std::string::npos);
  Get("file", uint64_t{11} << 30, 0, true);
  EXPECT_EQ(answer_.length(), 0u);
  EXPECT_EQ(answer_.extents_size(), 0);
}

TEST_F(RepliesTest, AFileThatIsAnotherOneByNowIsNotSent) {
  folder_.Write("file", "content");
  wire::Request request;
  request.mutable_get()->set_name("file");
  request.mutable_get()->set_if_match(1);
  Ask(request);
  EXPECT_EQ(answer_.status(), wire::CHANGED);
  request.mutable_get()->set_if_match(answer_.etag());
  Ask(request);
  EXPECT_EQ(answer_.status(), wire::OK);
}

TEST_F(RepliesTest, AFileThatIsOpenIsAnsweredForAtOnceWhileItIsTheSame) {
  folder_.Write("file", "content");
  const Reply first = Get("file");
  const std::vector<std::byte> sent = block_;
  wire::Request request;
  request.set_id(5);
  request.mutable_get()->set_name("file");
  request.mutable_get()->set_chunk_crc(true);
  const auto at_once = [&] {
    return ReplyAtOnce(request, first.small.get(), first.small_about, block_);
  };
  std::ranges::fill(std::span(block_).first(first.bytes), std::byte{0});
  const auto same = at_once();
  if (!same) GTEST_SKIP() << "nothing is read here without waiting";
  EXPECT_EQ(same->bytes, first.bytes);
  EXPECT_EQ(block_, sent);
  folder_.Write("file", "CONTENT");
  EXPECT_FALSE(at_once());
  std::filesystem::resize_file(folder_.Path("file"), 3);
  EXPECT_FALSE(at_once());
}

TEST_F(RepliesTest, AChunkOfAFileThatHasBecomeShorterEndsInZerosAndSaysSo) {
  folder_.Write("file", std::string(kChunkBytes + 100, 'x'));
  const Reply reply = Get("file");
  std::filesystem::resize_file(folder_.Path("file"), 10);
  std::vector<std::byte> room(100 + kTailBytes, std::byte{'y'});
  EXPECT_EQ(ReadChunk(*reply.opened, {0, 100}, false, room), wire::FAILED);
  EXPECT_EQ(room[9], std::byte{'x'});
  EXPECT_EQ(room[10], std::byte{0});
  EXPECT_EQ(room[99], std::byte{0});
  EXPECT_EQ(esdp_files::LoadTail(std::span<const std::byte>(room).last<kTailBytes>()).status,
            static_cast<uint32_t>(wire::FAILED));
}

TEST_F(RepliesTest, TheLastChunkSaysWhetherTheFileHasChanged) {
  folder_.Write("file", std::string(2 * kChunkBytes, 'x'));
  const Reply reply = Get("file");
  folder_.Write("file", std::string(2 * kChunkBytes, 'y'));
  std::vector<std::byte> room(kChunkBytes + kTailBytes);
  EXPECT_EQ(ReadChunk(*reply.opened, {0, kChunkBytes}, false, room), wire::OK);
  EXPECT_EQ(ReadChunk(*reply.opened, {kChunkBytes, kChunkBytes}, true, room), wire::CHANGED);
  EXPECT_EQ(CheckUnchanged(*reply.opened), wire::CHANGED);
}

TEST_F(RepliesTest, AFolderIsListedPageByPageWithEveryNameOnceAndNoneOfOurs) {
  folder_.MakeFolder("many");
  std::set<std::string> names;
  for (size_t i = 0; i < 1000; ++i) names.insert(std::string(i % 240, 'n') + std::to_string(i));
  for (const std::string& name : names) folder_.Write("many/" + name, "x");
  folder_.Write("many/.esdp-0123456789abcdef.part", "x");
  wire::Request request;
  request.set_id(1);
  request.mutable_list()->set_name("many");
  std::multiset<std::string> listed;
  int pages = 0;
  do {
    Ask(request);
    ASSERT_EQ(answer_.status(), wire::OK);
    EXPECT_LE(answer_.entries_size(), kPageEntries);
    for (const wire::Entry& entry : answer_.entries()) listed.insert(entry.name());
    request.mutable_list()->set_cursor(answer_.cursor());
    ++pages;
  } while (answer_.cursor() != 0);
  EXPECT_GE(pages, 4);
  EXPECT_EQ(listed, std::multiset<std::string>(names.begin(), names.end()));
}

TEST_F(RepliesTest, EveryAnswerIsAFrameWhateverWasAsked) {
  std::vector<wire::Request> requests(6);
  requests[1].mutable_stat()->set_name(std::string(70'000, 'x'));
  requests[2].mutable_list()->set_name("..");
  requests[3].mutable_get()->set_name(std::string("\0", 1));
  requests[4].mutable_hello();
  requests[5].mutable_list()->set_cursor(~uint64_t{0});
  for (const wire::Request& request : requests) {
    EXPECT_GT(Ask(request).bytes, esdp_files::kFrameLengthBytes);
  }
  Ask(requests[0]);
  EXPECT_EQ(answer_.status(), wire::UNIMPLEMENTED);
}

}  // namespace
}  // namespace esdp_serve
