// Two cores back to back, so that the instructions of their steps can be counted:
//
//   core_instructions copied|coalesced|advertised COUNT
//
// sends COUNT messages, each received by one operation, and prints whether it was built with
// optimisation. Everything but StepSending and StepReceiving is the test's own and not to be
// counted; tests/bench/instructions_test.py runs it under callgrind.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "impl/base/ring.h"
#include "impl/base/time.h"
#include "impl/sdp/connection.h"

#ifdef __OPTIMIZE__
#define ESDP_BENCH_BUILD "optimised"
#else
#define ESDP_BENCH_BUILD "plain"
#endif

extern "C" {
[[gnu::noinline]] void StepSending(esdp::sdp::Connection& core, const esdp::sdp::Input& input,
                                   esdp::Time now, esdp::sdp::Actions& actions) {
  core.Step(input, now, actions);
}
[[gnu::noinline]] void StepReceiving(esdp::sdp::Connection& core, const esdp::sdp::Input& input,
                                     esdp::Time now, esdp::sdp::Actions& actions) {
  core.Step(input, now, actions);
}
}

namespace esdp::sdp {
namespace {

using Stepper = void (*)(Connection&, const Input&, Time, Actions&);

// One core, and a fabric of its own on which everything is done at once.
class End {
 public:
  End(const Config& config, Stepper step) : core_(config), step_(step) {}

  void set_peer(End& peer) { peer_ = &peer; }
  void Feed(const Input& input) { waiting_.PushBack(input); }
  // Runs one waiting input; false if there is none.
  bool Move() {
    if (waiting_.empty()) return false;
    Run(waiting_.TakeFront());
    return true;
  }
  uint64_t finished() const { return finished_; }

 private:
  void Run(const Input& input) {
    actions_.clear();
    step_(core_, input, Time{}, actions_);
    std::optional<Exposed> exposed;
    for (const Action& action : actions_) {
      if (const auto* expose = std::get_if<Expose>(&action)) {
        exposed = Exposed{expose->advert, {static_cast<uint32_t>(expose->advert), 0}};
      }
      Carry(action);
    }
    if (exposed) Run(*exposed);
  }

  void Carry(const Action& action) {
    if (const auto* start = std::get_if<StartConnect>(&action)) {
      peer_->Feed(HelloArrived{start->hello});
    } else if (const auto* accept = std::get_if<AcceptConnection>(&action)) {
      peer_->Feed(Established{accept->hello_ack, 16, 16});
      Feed(Established{std::nullopt, 16, 16});
    } else if (const auto* posted = std::get_if<PostReceive>(&action)) {
      receives_.PushBack(posted->buffer);
    } else if (const auto* send = std::get_if<Send>(&action)) {
      peer_->Arrive(*send);
      Feed(SendFinished{});
    } else if (std::holds_alternative<Read>(action)) {
      Feed(ReadFinished{});
    } else if (const auto* withdraw = std::get_if<Withdraw>(&action)) {
      Feed(Withdrawn{withdraw->advert});
    } else if (std::holds_alternative<FinishOperation>(action)) {
      ++finished_;
    }
  }

  void Arrive(const Send& send) {
    MessageArrived arrived;
    arrived.message = send.message;
    arrived.buffer = receives_.TakeFront();
    arrived.payload_offset = wire::kBaseHeaderBytes;
    arrived.payload_length = send.copied_bytes;
    for (uint32_t i = 0; i < send.gather_count; ++i) {
      arrived.payload_length += send.gather[i].length;
    }
    arrived.invalidated_key = send.invalidate_key;
    Feed(arrived);
  }

  Connection core_;
  const Stepper step_;
  End* peer_ = nullptr;
  Actions actions_;
  GrowingRing<Input> waiting_;
  GrowingRing<ReceiveBuffer> receives_;
  uint64_t finished_ = 0;
};

struct Scenario {
  std::string_view name;
  uint32_t length = 0;
  uint32_t batch = 1;  // sends posted before anything moves
};

constexpr Scenario kScenarios[] = {
    {"copied", 16 * 1024, 1}, {"coalesced", 64, 32}, {"advertised", 1 << 20, 1}};

Config ConfigOf(bool connecting) {
  Config config;
  config.connecting = connecting;
  config.remote_invalidate = true;
  return config;
}

bool Run(const Scenario& scenario, uint64_t count) {
  End sender(ConfigOf(true), StepSending);
  End receiver(ConfigOf(false), StepReceiving);
  sender.set_peer(receiver);
  receiver.set_peer(sender);
  const auto settle = [&] {
    while (sender.Move() || receiver.Move()) {
    }
  };
  sender.Feed(AskConnect{});
  settle();
  const uint32_t length = scenario.length;
  for (uint64_t done = 0; done < count; done += scenario.batch) {
    for (uint32_t i = 0; i < scenario.batch; ++i) {
      const OperationRange piece{OperationId{i + 1}, length, 0};
      receiver.Feed(
          AskReceive{.piece = piece, .wait_all = true, .placeable = true, .zcopy_min = 64 * 1024});
      sender.Feed(AskSend{.piece = piece, .exposable = true, .zcopy_min = 64 * 1024});
    }
    settle();
  }
  return sender.finished() >= count && receiver.finished() >= count;
}

}  // namespace
}  // namespace esdp::sdp

int main(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<size_t>(argc));
  for (const auto& scenario : esdp::sdp::kScenarios) {
    if (words.size() != 3 || scenario.name != words[1]) continue;
    const uint64_t count = std::strtoull(words[2], nullptr, 10);
    if (!esdp::sdp::Run(scenario, count)) {
      std::fprintf(stderr, "core_instructions: an operation did not end\n");
      return 1;
    }
    std::puts(ESDP_BENCH_BUILD);
    return 0;
  }
  std::fprintf(stderr, "usage: core_instructions copied|coalesced|advertised COUNT\n");
  return 2;
}
