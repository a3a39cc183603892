#include "impl/fabric/sim/history.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace esdp::fabric::sim {
namespace {

Step StepOf(uint64_t detail) { return {.time = Time{}, .object = 1, .detail = detail}; }

TEST(HistoryTest, EveryFieldAndTheOrderOfStepsIsInTheDigest) {
  std::set<uint64_t> digests;
  const Step base{
      .time = Time(Duration(5)), .kind = StepKind::kPost, .object = 1, .detail = 2, .content = 3};
  std::vector<Step> steps(6, base);
  steps[1].time += Duration(1);
  steps[2].kind = StepKind::kArrive;
  ++steps[3].object;
  ++steps[4].detail;
  ++steps[5].content;
  for (const Step& step : steps) {
    History history(0);
    history.Record(step);
    digests.insert(history.digest());
  }
  EXPECT_EQ(digests.size(), steps.size());

  History forth(0);
  forth.Record(steps[0]);
  forth.Record(steps[1]);
  History back(0);
  back.Record(steps[1]);
  back.Record(steps[0]);
  EXPECT_NE(forth.digest(), back.digest());
}

TEST(HistoryTest, KeepsTheLastStepsAndCountsAll) {
  History history(2);
  for (uint64_t i = 100; i < 105; ++i) history.Record(StepOf(i));

  EXPECT_EQ(history.count(), 5u);
  const std::string tail = history.Tail();
  EXPECT_EQ(tail.find("102"), std::string::npos) << tail;
  EXPECT_LT(tail.find("post 103"), tail.find("post 104")) << tail;
}

TEST(HistoryTest, WhatIsKeptDoesNotChangeTheDigest) {
  History keeping(10);
  History forgetting(0);
  for (uint64_t i = 0; i < 5; ++i) {
    keeping.Record(StepOf(i));
    forgetting.Record(StepOf(i));
  }
  EXPECT_EQ(keeping.digest(), forgetting.digest());
  EXPECT_EQ(forgetting.Tail(), "");
}

TEST(HistoryTest, TheDigestOfBytesTellsLengthAndEveryByte) {
  std::set<uint64_t> digests;
  const std::vector<std::byte> zeros(20);
  for (size_t length = 0; length <= zeros.size(); ++length) {
    digests.insert(DigestOf(ConstBytes(zeros).first(length)));
  }
  for (size_t i = 0; i < zeros.size(); ++i) {
    std::vector<std::byte> changed = zeros;
    changed[i] = std::byte{1};
    digests.insert(DigestOf(changed));
  }
  EXPECT_EQ(digests.size(), 21u + 20u);
}

}  // namespace
}  // namespace esdp::fabric::sim
