#include "tools/esdp_copy/wire.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>

namespace esdp_copy {
namespace {

using Bytes = std::array<std::byte, kRecordBytes>;

TEST(WireTest, RequestsAndAnswersSurviveTheWire) {
  Bytes record;
  Encode(Request{"a file", 1ull << 40 | 7, true}, record);
  const auto request = DecodeRequest(record);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->name, "a file");
  EXPECT_EQ(request->size, 1ull << 40 | 7);
  EXPECT_TRUE(request->resume);
  EXPECT_FALSE(DecodeAnswer(record).has_value());

  Encode(Answer{Answer::State::kFailed, true, 12345, "no room"}, record);
  const auto answer = DecodeAnswer(record);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->state, Answer::State::kFailed);
  EXPECT_TRUE(answer->again);
  EXPECT_EQ(answer->offset, 12345u);
  EXPECT_EQ(answer->text, "no room");
  EXPECT_FALSE(DecodeRequest(record).has_value());
}

TEST(WireTest, ANameThatLeavesTheFolderIsNoRequest) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../x"),
        std::string("/etc/passwd"), std::string("a/b"), std::string(251, 'x')}) {
    Bytes record;
    Encode(Request{name, 1, false}, record);
    EXPECT_FALSE(DecodeRequest(record).has_value()) << name;
  }
}

TEST(WireTest, ASizeThatNoFileHasIsNoRequest) {
  Bytes record;
  Encode(Request{"x", 1ull << 63, false}, record);
  EXPECT_FALSE(DecodeRequest(record).has_value());
}

TEST(WireTest, ALongTextIsCutAndARecordWithoutAnEndIsRead) {
  Bytes record;
  Encode(Answer{Answer::State::kFailed, false, 0, std::string(2 * kRecordBytes, 'x')}, record);
  EXPECT_LT(DecodeAnswer(record)->text.size(), kRecordBytes);
  record.back() = std::byte{'x'};
  EXPECT_LT(DecodeAnswer(record)->text.size(), kRecordBytes);
}

TEST(WireTest, AStateThatThereIsNotIsNoAnswer) {
  Bytes record;
  Encode(Answer{static_cast<Answer::State>(4), false, 0, ""}, record);
  EXPECT_FALSE(DecodeAnswer(record).has_value());
}

}  // namespace
}  // namespace esdp_copy
