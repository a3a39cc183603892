#include "tools/testbed/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace esdp::testbed {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr char kPath[] = "tools/testbed/infinihost_2005.txtpb";

// The file with one text of it changed, and what is said of that.
std::string Complaint(const std::string& from, const std::string& to) {
  std::ifstream file(kPath);
  std::ostringstream read;
  read << file.rdbuf();
  std::string text = read.str();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const std::string path = ::testing::TempDir() + "/mine.txtpb";
  std::ofstream(path) << text;
  const absl::Status status = ReadParameters(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message().data(), status.message().size());
}

// Of the changed text's field in the file as it is.
std::string LineOf(const std::string& text) {
  std::ifstream file(kPath);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find(text) != std::string::npos) return ":" + std::to_string(number) + ": ";
  }
  return "no such line";
}

TEST(ReadParametersTest, GivesTheNumbersOfAFile) {
  const auto parameters = ReadParameters(kPath);
  ASSERT_TRUE(parameters.ok()) << parameters.status().ToString();
  EXPECT_EQ(parameters->machine_cores, 2);
  EXPECT_EQ(parameters->kernel_region_kib, 128);
}

TEST(ReadParametersTest, ANumberInAnotherUnitIsRefusedWithItsLine) {
  const std::string text =
      Complaint("value: 1890\n    unit: \"MB/s\"", "value: 1.89\n    unit: \"GB/s\"");
  EXPECT_THAT(text, HasSubstr("mine.txtpb" + LineOf("memory_mb_s {")));
  EXPECT_THAT(text, EndsWith("machine.memory_mb_s is in MB/s, and not in \"GB/s\""));
}

TEST(ReadParametersTest, ANumberThatNoMachineHasIsRefusedWithItsLine) {
  EXPECT_THAT(Complaint("value: 1.25", "value: 0.5"),
              HasSubstr("mine.txtpb" + LineOf("core_gain {") + "machine.core_gain is below 1"));
  EXPECT_THAT(Complaint("value: 1890", "value: -1"), HasSubstr("machine.memory_mb_s is negative"));
  EXPECT_THAT(Complaint("value: 1890", "value: nan"), HasSubstr(LineOf("memory_mb_s {")));
}

TEST(ReadParametersTest, AFieldThatThereIsNotIsRefusedWithItsLine) {
  EXPECT_THAT(Complaint("core_gain {", "core_loss {"),
              HasSubstr("mine.txtpb" + LineOf("core_gain {").substr(0, 4)));
  EXPECT_THAT(Complaint("core_gain {", "core_loss {"), HasSubstr("core_loss"));
}

TEST(ReadParametersTest, AFileThatIsNotThereIsNotFound) {
  EXPECT_EQ(ReadParameters("no/such.txtpb").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace esdp::testbed
