#include "tools/esdp_files/names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace esdp_files {
namespace {

using absl::StatusCode;

TEST(NamesTest, NamesBelowTheRootAreTaken) {
  for (const std::string name : {"", ".", "a", "a/b", "a//b", "./a", "a/", "...", "..a", "a..",
                                 "a/..b", "\xff\x01\n", "a\\..\\b"}) {
    EXPECT_TRUE(CheckName(name).ok()) << name;
  }
  EXPECT_TRUE(CheckName(std::string(kNameBytesMax, 'x')).ok());
}

TEST(NamesTest, NamesThatGoUpOrAreAbsoluteAreNotPermitted) {
  for (const std::string name :
       {"..", "../a", "a/..", "a/../b", "a/..//", "/", "/a", "//", "/../.."}) {
    EXPECT_EQ(CheckName(name).code(), StatusCode::kPermissionDenied) << name;
  }
}

TEST(NamesTest, NamesWithANulOrTooLongAreNone) {
  EXPECT_EQ(CheckName(std::string("a\0b", 3)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckName(std::string("\0", 1)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckName(std::string(kNameBytesMax + 1, 'x')).code(), StatusCode::kInvalidArgument);
}

TEST(NamesTest, AFileThatIsToBeMadeHasANameOfItsOwn) {
  EXPECT_TRUE(CheckNewName("a/b").ok());
  for (const std::string name :
       {"", "a/", ".", "a/.", "/a", "..", "a/.esdp-0123456789abcdef.part"}) {
    EXPECT_FALSE(CheckNewName(name).ok()) << name;
  }
}

TEST(NamesTest, PartsGoByNameTagAndSizeAndFitAFolder) {
  const std::set<std::string> names = {PartName("a", 1, 2), PartName("b", 1, 2),
                                       PartName("a", 2, 2), PartName("a", 1, 3),
                                       PartName(std::string(255, 'x'), 1, 2)};
  EXPECT_EQ(names.size(), 5u);
  for (const std::string& name : names) {
    EXPECT_TRUE(IsPartName(name)) << name;
    EXPECT_LE(name.size(), 255u);
    EXPECT_TRUE(IsPartName(SumsName(name))) << name;
    EXPECT_NE(SumsName(name), name);
  }
  EXPECT_EQ(PartName("a", 1, 2), PartName("a", 1, 2));
  for (const std::string name : {"", "a", ".esdp-.part", ".esdp-0123456789abcdef.part2"}) {
    EXPECT_FALSE(IsPartName(name)) << name;
  }
}

}  // namespace
}  // namespace esdp_files
