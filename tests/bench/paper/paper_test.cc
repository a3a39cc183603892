#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/bench/paper/goals.h"
#include "tests/bench/paper/pair.h"
#include "tests/bench/paper/results.h"
#include "tests/bench/paper/statements.h"
#include "tools/testbed/parameters.h"

namespace esdp::paper {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

// What the model does not do as the paper says; docs/paper.md says why.
const std::vector<std::string> kMisses = {"cpu_bcopy_2"};

const std::vector<std::string> kGoalsMissed = {"es_cpu", "es_cpu_1m"};

fabric::sim::testbed::Parameters Testbed() {
  return Require(esdp::testbed::ReadParameters("tools/testbed/infinihost_2005.txtpb"));
}

// One measurement for all tests: they are the same each time.
Results& Measured() {
  static Results results(Testbed());
  return results;
}

std::string Document() {
  std::ifstream file("docs/paper.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(PaperTest, TheDocumentSaysWhatIsMeasured) {
  const std::string document = Document();
  for (const Statement& one : Judge(Measured())) EXPECT_THAT(document, HasSubstr(ToRow(one)));
  for (const Goal& one : JudgeGoals(Measured())) EXPECT_THAT(document, HasSubstr(ToRow(one)));
  for (const Share& one : CompareCpu(Measured())) EXPECT_THAT(document, HasSubstr(ToRow(one)));
}

TEST(PaperTest, EveryStatementButTheKnownMissesIsReproduced) {
  std::vector<std::string> outside;
  for (const Statement& one : Judge(Measured())) {
    if (one.verdict == Verdict::kOutside) outside.push_back(one.id);
  }
  EXPECT_THAT(outside, UnorderedElementsAreArray(kMisses));
}

TEST(PaperTest, EveryGoalBeyondThePaperButTheKnownMissesIsReached) {
  std::vector<std::string> missed;
  for (const Goal& one : JudgeGoals(Measured())) {
    if (!one.reached) missed.push_back(one.id);
  }
  EXPECT_THAT(missed, UnorderedElementsAreArray(kGoalsMissed));
}

// Why es_cpu is missed: where a program can be woken for a few operations alone, that takes too long.
TEST(PaperTest, OneSocketCannotTakeSoLittleOfTheProcessorWhereFewOperationsShareAWake) {
  for (const Share& one : CompareCpu(Measured())) {
    EXPECT_GE(one.polling, one.least) << ToRow(one);
    if (one.operations == 2) {
      EXPECT_GT(one.least, 0.4) << ToRow(one);
    }
  }
}

TEST(PaperTest, CrossoversOfOneTwoFourAndEightConnections) {
  EXPECT_EQ(Measured().Crossover(1), 128 * kKib);
  EXPECT_EQ(Measured().Crossover(2), 32 * kKib);
  EXPECT_EQ(Measured().Crossover(4), 16 * kKib);
  EXPECT_EQ(Measured().Crossover(8), 8 * kKib);
}

TEST(PaperTest, APointIsTheSameToTheLastBitEachTime) {
  for (const Mode mode : {Mode::kBuffered, Mode::kZeroCopy}) {
    const Point one = MeasureBandwidth(Testbed(), mode, 2, 64 * kKib);
    const Point again = MeasureBandwidth(Testbed(), mode, 2, 64 * kKib);
    EXPECT_EQ(one.mb_s, again.mb_s);
    EXPECT_EQ(one.cpu_percent, again.cpu_percent);
  }
}

// The numbers come of what the protocol does: who makes a step dearer sees it.
TEST(PaperTest, AStepOfTheProtocolThatTakesLongerShows) {
  auto slower = Testbed();
  slower.device_interrupt_us += 10;
  const double before = Measured().Bandwidth(Mode::kZeroCopy, 1, 4 * kKib).mb_s;
  const double behind = MeasureBandwidth(slower, Mode::kZeroCopy, 1, 4 * kKib).mb_s;
  // Three interrupts stand one after the other in a transaction: SrcAvail, the read, RdmaRdCompl.
  const double added = 4096 / behind - 4096 / before;
  EXPECT_NEAR(added, 30, 3);
}

TEST(PaperTest, NoTestbedAtAllIsToldSo) {
  EXPECT_THROW((void)MeasureBandwidth({}, Mode::kBuffered, 1, 4096), std::runtime_error);
}

}  // namespace
}  // namespace esdp::paper
