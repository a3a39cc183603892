#include "tools/testbed/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "impl/fabric/sim/testbed/parameters.h"

namespace esdp::testbed {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string Complaint(const std::string& text) {
  const absl::Status status = ParseText(text).status();
  return std::string(status.message().data(), status.message().size());
}

class TextTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TextTest, HasEveryParameterOnceWithItsUnitAndItsSource) {
  const auto read = ReadFile(GetParam());
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  fabric::sim::testbed::Parameters parameters;
  for (const Number& number : read->numbers) {
    double* const value = fabric::sim::testbed::Find(parameters, number.name);
    ASSERT_NE(value, nullptr) << number.name;
    *value = number.value;
    EXPECT_NE(number.unit, "") << number.name;
    EXPECT_NE(number.source, "") << number.name;
    EXPECT_NE(number.known, "UNKNOWN") << number.name;
  }
  EXPECT_EQ(read->numbers.size(), fabric::sim::testbed::ParameterNames().size());
  EXPECT_TRUE(fabric::sim::testbed::Check(parameters).ok());
}

INSTANTIATE_TEST_SUITE_P(Files, TextTest,
                         ::testing::Values("tools/testbed/infinihost_2005.txtpb",
                                           "tools/testbed/connectx_2025.txtpb"));

TEST(TextErrorsTest, NameTheLineThatDoesNotParse) {
  EXPECT_THAT(Complaint("name: \"x\"\nmachine { fans { value: 3 } }\n"), HasSubstr("2:16: "));
}

TEST(TextErrorsTest, NameWhatIsMissing) {
  std::string text = TextOf("tools/testbed/infinihost_2005.txtpb");
  const size_t link = text.find("link {");
  text.resize(link);
  EXPECT_THAT(Complaint(text), HasSubstr("link"));
}

TEST(TextErrorsTest, NameTheFileThatIsNotThere) {
  const absl::Status status = ReadFile("no/such.txtpb").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.ToString(), HasSubstr("no/such.txtpb"));
}

}  // namespace
}  // namespace esdp::testbed
