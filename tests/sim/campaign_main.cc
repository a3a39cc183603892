// A campaign: runs from one seed on, until so many connections have lived. Prints the seed first,
// progress on the way, and a table of what was met.
//
//   campaign [--seed N] [--lives N] [--replays N]    from seed N on; each Nth run is played twice
//            [--findings N]                          until so many runs have found something
//   campaign --seed N --only                         one run, and what it found

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "impl/sdp/wire/codec.h"
#include "impl/sdp/wire/text.h"
#include "tests/sim/campaign.h"

namespace {

using esdp::simulation::CampaignOptions;

uint64_t Number(const char* text) { return std::strtoull(text, nullptr, 0); }

// Prints the conversations.
class Printer : public esdp::fabric::sim::WireObserver {
 public:
  void OnPrivateData(const esdp::fabric::sim::WireEnd& from,
                     std::vector<std::byte>& data) override {
    esdp::sdp::wire::Message message;
    const bool is_good = !esdp::sdp::wire::Decode(data, message);
    std::printf("%u %s port %u: %s\n", from.connection, from.connecting ? "->" : "<-",
                from.listener, is_good ? esdp::sdp::wire::ToText(message).c_str() : "refused");
  }
  void OnTransmit(const esdp::fabric::sim::WireEnd& from,
                  esdp::fabric::sim::Frame& frame) override {
    esdp::sdp::wire::Message message;
    std::string text = "frame " + std::to_string(static_cast<int>(frame.kind)) + " of " +
                       std::to_string(std::max<uint64_t>(frame.payload.size(), frame.length)) +
                       " bytes";
    if (frame.kind == esdp::fabric::sim::FrameKind::kSend &&
        !esdp::sdp::wire::Decode(frame.payload, message)) {
      text = esdp::sdp::wire::ToText(message);
    }
    std::printf("%u %s %s\n", from.connection, from.connecting ? "->" : "<-", text.c_str());
  }
};

std::vector<esdp::Event> Print(const esdp::Event& event) {
  std::printf("socket %llu: %s %llu: %s, %llu bytes (%llu by RDMA) at %llu%s\n",
              static_cast<unsigned long long>(event.socket), ToString(event.type),
              static_cast<unsigned long long>(event.op), ToString(event.kind),
              static_cast<unsigned long long>(event.bytes),
              static_cast<unsigned long long>(event.bytes_zero_copy),
              static_cast<unsigned long long>(event.stream_offset), event.eof() ? ", the end" : "");
  return {event};
}

int PlayOne(uint64_t seed) {
  const esdp::simulation::Plan plan = esdp::simulation::DrawPlan(seed);
  std::printf("%s\n", plan.Describe().c_str());
  esdp::simulation::ArenaPool arenas;
  Printer printer;
  const esdp::simulation::Outcome outcome =
      esdp::simulation::Play(plan, arenas, {.wire = &printer, .events = Print});
  if (!outcome.findings.empty()) std::printf("%s", outcome.history.c_str());
  for (const std::string& text : outcome.findings.texts()) std::printf("FOUND: %s\n", text.c_str());
  std::printf("digest %016llx\n", static_cast<unsigned long long>(outcome.digest));
  return outcome.findings.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CampaignOptions options;
  bool only = false;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (std::strcmp(argv[i], "--only") == 0) {
      only = true;
    } else if (has_value && std::strcmp(argv[i], "--seed") == 0) {
      options.seed = Number(argv[++i]);
    } else if (has_value && std::strcmp(argv[i], "--lives") == 0) {
      options.lives = Number(argv[++i]);
    } else if (has_value && std::strcmp(argv[i], "--replays") == 0) {
      options.replay_each = Number(argv[++i]);
    } else if (has_value && std::strcmp(argv[i], "--findings") == 0) {
      options.findings_max = Number(argv[++i]);
    } else {
      std::fprintf(stderr,
                   "usage: %s [--seed N] [--lives N] [--replays N] [--findings N] [--only]\n",
                   argv[0]);
      return 2;
    }
  }
  if (only) return PlayOne(options.seed);
  options.progress = [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  };
  const esdp::simulation::CampaignReport report = esdp::simulation::PlayCampaign(options);
  std::printf("%s", report.Table().c_str());
  return report.findings.empty() && report.marks.Missing().empty() ? 0 : 1;
}
