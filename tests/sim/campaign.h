#ifndef ESDP_TESTS_SIM_CAMPAIGN_H_
#define ESDP_TESTS_SIM_CAMPAIGN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "impl/fabric/sim/faults.h"
#include "tests/sim/checkers/findings.h"
#include "tests/sim/checkers/marks.h"
#include "tests/sim/run.h"

namespace esdp::simulation {

struct CampaignOptions {
  uint64_t seed = 1;  // of the first run; the next ones count on
  uint64_t lives = 20'000;
  uint64_t replay_each = 50;  // so many runs apart one is played twice; 0: none
  uint64_t findings_max = 5;  // runs with findings, until it gives up
  std::function<void(const std::string&)> progress = nullptr;
};

struct CampaignReport {
  uint64_t runs = 0;
  uint64_t lives = 0;
  uint64_t messages = 0;
  uint64_t touches = 0;
  uint64_t replayed = 0;
  uint64_t last_seed = 0;
  double seconds = 0;
  fabric::sim::FaultCounts faults{};
  Marks marks;
  Findings findings;

  std::string Table() const;
};

CampaignReport PlayCampaign(const CampaignOptions& options);

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CAMPAIGN_H_
