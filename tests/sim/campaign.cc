#include "tests/sim/campaign.h"

#include <chrono>
#include <utility>

namespace esdp::simulation {
namespace {

using Steady = std::chrono::steady_clock;

constexpr double kProgressSeconds = 10;

std::string Row(const std::string& name, uint64_t count) {
  std::string row = "  " + name;
  row.resize(std::max<size_t>(row.size() + 1, 40), ' ');
  return row + std::to_string(count) + "\n";
}

void Add(CampaignReport& report, const Plan& plan, const Outcome& outcome) {
  ++report.runs;
  report.lives += outcome.lives;
  report.messages += outcome.messages;
  report.touches += outcome.touches;
  report.marks.Merge(outcome.marks);
  for (size_t i = 0; i < outcome.faults.size(); ++i) report.faults[i] += outcome.faults[i];
  for (const std::string& text : outcome.findings.texts()) {
    report.findings.Add(plan.Describe() + ": " + text);
  }
}

}  // namespace

CampaignReport PlayCampaign(const CampaignOptions& options) {
  const auto say = [&](const std::string& line) {
    if (options.progress) options.progress(line);
  };
  say("campaign from seed " + std::to_string(options.seed));
  CampaignReport report;
  ArenaPool arenas;
  const Steady::time_point begin = Steady::now();
  double told = 0;
  uint64_t failed = 0;
  for (uint64_t seed = options.seed; report.lives < options.lives; ++seed) {
    const Plan plan = DrawPlan(seed);
    const Outcome outcome = Play(plan, arenas);
    Add(report, plan, outcome);
    report.last_seed = seed;
    for (const std::string& text : outcome.findings.texts()) {
      say("FOUND " + plan.Describe() + ": " + text);
    }
    if (options.replay_each > 0 && seed % options.replay_each == 0) {
      ++report.replayed;
      if (Play(plan, arenas).digest != outcome.digest) {
        report.findings.Add(plan.Describe() + ": played again it has another history");
      }
    }
    report.seconds = std::chrono::duration<double>(Steady::now() - begin).count();
    if (report.seconds - told > kProgressSeconds) {
      told = report.seconds;
      say(std::to_string(report.lives) + " lives, seed " + std::to_string(seed) + ", " +
          std::to_string(static_cast<uint64_t>(told)) + " s");
    }
    if (!outcome.findings.empty() && ++failed >= options.findings_max) break;
  }
  return report;
}

std::string CampaignReport::Table() const {
  std::string table = Row("runs", runs) + Row("of them played twice", replayed) +
                      Row("connection lives", lives) + Row("messages", messages) +
                      Row("RDMA to application memory", touches) +
                      Row("seconds", static_cast<uint64_t>(seconds)) + "faults\n";
  for (size_t i = 0; i < faults.size(); ++i) {
    table += Row(ToString(static_cast<fabric::sim::FaultKind>(i)), faults[i]);
  }
  table += "states\n";
  for (const auto& [name, count] : marks.counts()) table += Row(name, count);
  for (const std::string& name : marks.Missing()) table += "NOT REACHED: " + name + "\n";
  table += Row("findings", findings.count());
  return table;
}

}  // namespace esdp::simulation
