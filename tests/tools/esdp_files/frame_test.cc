#include "tools/esdp_files/frame.h"

#include <esdp_files.pb.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace esdp_files {
namespace {

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string StatFrame(uint64_t id, const std::string& name) {
  wire::Request request;
  request.set_id(id);
  request.mutable_stat()->set_name(name);
  return ToFrame(request);
}

// Ids of the frames that have come whole.
std::vector<uint64_t> Ids(FrameReader& reader) {
  std::vector<uint64_t> ids;
  while (const auto frame = reader.Next()) {
    wire::Request request;
    EXPECT_TRUE(request.ParseFromArray(frame->data(), static_cast<int>(frame->size())));
    ids.push_back(request.id());
  }
  return ids;
}

TEST(FrameTest, FramesComeOutWholeWhereverTheStreamIsCut) {
  const std::string stream =
      StatFrame(1, "a") + StatFrame(2, std::string(300, 'b')) + StatFrame(3, "");
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    FrameReader reader;
    reader.Add(Bytes(stream.substr(0, cut)));
    std::vector<uint64_t> ids = Ids(reader);
    reader.Add(Bytes(stream.substr(cut)));
    for (const uint64_t id : Ids(reader)) ids.push_back(id);
    EXPECT_EQ(ids, (std::vector<uint64_t>{1, 2, 3})) << cut;
    EXPECT_EQ(reader.left(), 0u);
  }
}

TEST(FrameTest, AFrameThatIsCutNeverComesOut) {
  const std::string frame = StatFrame(1, "name");
  for (size_t cut = 0; cut < frame.size(); ++cut) {
    FrameReader reader;
    reader.Add(Bytes(frame.substr(0, cut)));
    EXPECT_FALSE(reader.Next().has_value()) << cut;
    EXPECT_FALSE(reader.bad()) << cut;
  }
}

TEST(FrameTest, ALengthOfNothingOrTooMuchIsBadAndNothingBehindItIsRead) {
  for (const std::string& length :
       {std::string(4, '\0'), std::string("\0\1\0\1", 4), std::string("\xff\xff\xff\xff", 4)}) {
    FrameReader reader;
    reader.Add(Bytes(length + StatFrame(1, "a")));
    EXPECT_FALSE(reader.Next().has_value());
    EXPECT_TRUE(reader.bad());
    EXPECT_FALSE(reader.Next().has_value());
  }
}

TEST(FrameTest, TheLongestFrameIsWrittenAndReadAndOneByteMoreIsNot) {
  wire::Request request;
  request.mutable_stat()->set_name(std::string(kFrameBytesMax - 8, 'x'));
  ASSERT_EQ(request.ByteSizeLong(), kFrameBytesMax);
  const std::string frame = ToFrame(request);
  FrameReader reader;
  reader.Add(Bytes(frame));
  ASSERT_TRUE(reader.Next().has_value());
  request.mutable_stat()->mutable_name()->push_back('x');
  EXPECT_EQ(ToFrame(request), "");
  EXPECT_EQ(ToFrame(wire::Request()), "");
}

TEST(FrameTest, WhatComesBehindAFrameIsThereAsItIs) {
  FrameReader reader;
  reader.Add(Bytes(StatFrame(1, "a") + "bytes of a file" + StatFrame(2, "b")));
  ASSERT_TRUE(reader.Next().has_value());
  EXPECT_EQ(reader.TakeRaw(8), "bytes of");
  EXPECT_EQ(reader.TakeRaw(7), " a file");
  EXPECT_EQ(Ids(reader), std::vector<uint64_t>{2});
}

}  // namespace
}  // namespace esdp_files
