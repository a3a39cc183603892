// Every numbered sentence of CONTRACT.md has its test, and every test its sentence.

#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace esdp::fabric {
namespace {

std::set<std::string> Sentences() {
  std::ifstream file("impl/fabric/CONTRACT.md");
  std::set<std::string> names;
  const std::regex sentence("^\\* [A-Z][0-9]+ `([A-Za-z0-9]+)`:.*");
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (std::regex_match(line, match, sentence)) {
      EXPECT_TRUE(names.insert(match[1]).second) << match[1] << " stands there twice";
    }
  }
  return names;
}

std::set<std::string> Tests() {
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  std::set<std::string> names;
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *program.GetTestSuite(i);
    if (std::string(suite.name()).find("Contract") == std::string::npos) continue;
    if (std::string(suite.name()) == "ContractSentencesTest") continue;
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const std::string name = suite.GetTestInfo(j)->name();
      names.insert(name.substr(0, name.find('/')));
    }
  }
  return names;
}

TEST(ContractSentencesTest, SentencesAndTestsAreTheSame) {
  const std::set<std::string> sentences = Sentences();

  EXPECT_GT(sentences.size(), 80u) << "is impl/fabric/CONTRACT.md in reach of this test?";
  EXPECT_EQ(sentences, Tests());
}

}  // namespace
}  // namespace esdp::fabric
