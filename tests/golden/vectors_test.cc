#include "tests/golden/vectors.h"

#include <map>
#include <string>

#include "gtest/gtest.h"

namespace esdp::golden {
namespace {

constexpr char kOne[] =
    "# comment\n"
    "[TV1]\n"
    "name = a name\n"
    "direction = A->B\n"
    "kind = sdp-message\n"
    "length = 4\n"
    "hex = 01ff0000\n"
    "@0+1 first = 1\n"
    "@0+1:1-0 first.low = 1\n"
    "@1+1 second = 0xff\n"
    "@2+2 rest = zero\n";

// kOne with one piece of text replaced.
std::string With(const std::string& from, const std::string& to) {
  std::string text = kOne;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string ErrorOf(const std::string& text) {
  std::string error;
  EXPECT_FALSE(Parse(text, error).has_value()) << text;
  return error;
}

TEST(VectorsTest, AVectorIsReadWithItsBytesFieldsAndBits) {
  std::string error;
  const auto vectors = Parse(kOne, error);
  ASSERT_TRUE(vectors.has_value()) << error;
  ASSERT_EQ(vectors->size(), 1u);
  const Vector& vector = vectors->front();
  EXPECT_EQ(vector.id, "TV1");
  EXPECT_EQ(vector.name, "a name");
  EXPECT_EQ(vector.direction, "A->B");
  EXPECT_EQ(vector.bytes.size(), 4u);
  ASSERT_EQ(vector.fields.size(), 4u);
  EXPECT_EQ(vector.Find("second")->number, 0xffu);
  ASSERT_TRUE(vector.Find("first.low")->bits.has_value());
  EXPECT_EQ(vector.Find("first.low")->bits->high, 1u);
  EXPECT_FALSE(vector.Find("rest")->number.has_value());
  EXPECT_EQ(vector.Find("missing"), nullptr);
}

TEST(VectorsTest, AByteIsFoundUnderItsFieldAndItsBitNames) {
  std::string error;
  const Vector vector = Parse(kOne, error)->front();
  EXPECT_EQ(vector.FieldAt(0), "first");
  EXPECT_EQ(vector.FieldAt(3), "rest");
  EXPECT_EQ(vector.FieldAt(4), "");
  EXPECT_TRUE(vector.HasNameAt(0, "first.low"));
  EXPECT_FALSE(vector.HasNameAt(1, "first"));
}

TEST(VectorsTest, ATextThatContradictsItselfIsRefusedWithItsLine) {
  EXPECT_EQ(ErrorOf(With("first = 1", "first = 2")), "line 8: disagrees with the bytes");
  EXPECT_EQ(ErrorOf(With("first.low = 1", "first.low = 2")), "line 9: disagrees with the bytes");
  EXPECT_EQ(ErrorOf(With("@2+2 rest", "@3+1 rest")), "line 11: leaves a gap or overlaps");
  EXPECT_EQ(ErrorOf(With("@2+2 rest", "@1+2 rest")), "line 11: disagrees with the bytes");
  EXPECT_EQ(ErrorOf(With("@2+2 rest", "@2+1 rest")),
            "line 11: [TV1] has bytes that no field covers");
  EXPECT_EQ(ErrorOf(With("length = 4", "length = 5")),
            "line 11: [TV1] does not have the length it states");
  EXPECT_EQ(ErrorOf(With("@2+2 rest", "@2+9 rest")), "line 11: disagrees with the bytes");
}

TEST(VectorsTest, ATextThatCannotBeReadIsRefusedWithItsLine) {
  EXPECT_EQ(ErrorOf(""), "line 0: holds no vector");
  EXPECT_EQ(ErrorOf("name = early\n"), "line 1: stands before the first [ID]");
  EXPECT_EQ(ErrorOf(With("hex = 01ff0000", "hex = 01ff000")), "line 7: is no hex");
  EXPECT_EQ(ErrorOf(With("hex = 01ff0000", "hex = 01fg0000")), "line 7: is no hex");
  EXPECT_EQ(ErrorOf(With("kind", "sort")), "line 5: has an unknown key");
  EXPECT_EQ(ErrorOf(With("0xff", "0xfg")), "line 10: has a value that cannot be read");
  EXPECT_EQ(ErrorOf(With("1-0", "0-1")), "line 9: has no place or no name");
  EXPECT_EQ(ErrorOf(With("length = 4", "length = ")), "line 6: has no value");
}

TEST(VectorsTest, TheSdpFileHoldsEveryKindOfVector) {
  std::map<std::string, int> counts;
  for (const Vector& vector : Load("sdp.vec")) ++counts[vector.kind];
  const std::map<std::string, int> expected = {{"sdp-message", 28},
                                               {"req-private-data", 1},
                                               {"service-id", 3},
                                               {"compact-hello", 2},
                                               {"mpa-frame", 2}};
  EXPECT_EQ(counts, expected);
}

TEST(VectorsTest, OnlyTheKindAskedForIsLoaded) {
  const std::vector<Vector> frames = Load("sdp.vec", "mpa-frame");
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].Find("mpa.pd_length")->number, 96u);
  EXPECT_EQ(frames[1].Find("mpa.pd_length")->number, 200u);
  EXPECT_EQ(frames[0].Find("hh.src_addr")->comment, "192.168.10.1");
}

}  // namespace
}  // namespace esdp::golden
