// The campaign that runs with every change: ESDP_SEED begins it elsewhere, ESDP_LIVES makes it
// longer or shorter. What it must reach is in marks.cc.

#include "tests/sim/campaign.h"

#include <cstdio>
#include <cstdlib>

#include "gtest/gtest.h"
#include "tests/base/sanitized.h"

namespace esdp::simulation {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

// Under a sanitizer fewer lives: enough for memory, not for every rare state.
constexpr uint64_t kLives = kSanitized ? 600 : 12'000;

// Each shard has seeds of its own.
uint64_t FirstSeed(uint64_t shard) { return FromEnvironment("ESDP_SEED", 1) + shard * 1'000'000; }

class CampaignTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(CampaignTest, EveryLifeKeepsEveryRuleAndEveryStateIsReached) {
  CampaignOptions options;
  options.seed = FirstSeed(GetParam());
  options.lives = FromEnvironment("ESDP_LIVES", kLives);
  std::printf("from seed %llu\n", static_cast<unsigned long long>(options.seed));
  const CampaignReport report = PlayCampaign(options);
  std::printf("%s", report.Table().c_str());
  for (const std::string& text : report.findings.texts()) ADD_FAILURE() << text;
  EXPECT_GE(report.lives, options.lives);
  EXPECT_GT(report.replayed, 0u);
  if (options.lives < kLives || kSanitized) return;
  for (const std::string& name : report.marks.Missing()) ADD_FAILURE() << "never reached: " << name;
  for (size_t i = 0; i < report.faults.size(); ++i) {
    EXPECT_GT(report.faults[i], 0u) << ToString(static_cast<fabric::sim::FaultKind>(i));
  }
}

INSTANTIATE_TEST_SUITE_P(Shard, CampaignTest, ::testing::Range<uint64_t>(0, 2));

}  // namespace
}  // namespace esdp::simulation
