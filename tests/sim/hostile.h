#ifndef ESDP_TESTS_SIM_HOSTILE_H_
#define ESDP_TESTS_SIM_HOSTILE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "impl/base/random.h"
#include "impl/fabric/sim/wire_observer.h"
#include "impl/sdp/wire/messages.h"
#include "tests/sim/checkers/marks.h"

namespace esdp::simulation {

// Plays a peer that breaks the rules: now and then a message that leaves is changed or another is
// invented in its place. Keys it has seen it tries again.
class HostilePeer : public fabric::sim::WireObserver {
 public:
  // `chance` out of a million messages. `told` hears of each connection that was disturbed, before
  // the changed message leaves.
  HostilePeer(uint64_t seed, uint32_t chance, Marks& marks, std::function<void(uint16_t)> told)
      : random_(seed), chance_(chance), marks_(&marks), told_(std::move(told)) {}

  void OnTransmit(const fabric::sim::WireEnd& from, fabric::sim::Frame& frame) override;
  // A Hello or HelloAck is rarer than a message, and changed that much more often.
  void OnPrivateData(const fabric::sim::WireEnd& from, std::vector<std::byte>& data) override;
  void Stop() { chance_ = 0; }

 private:
  void Mutate(std::vector<std::byte>& payload);
  void Lie(sdp::wire::Message& opening);
  void Invent(std::vector<std::byte>& payload);
  sdp::wire::Body DrawBody();
  uint32_t DrawLength();
  uint32_t DrawKey();

  Random random_;
  uint32_t chance_;
  Marks* marks_;
  std::function<void(uint16_t)> told_;
  std::vector<uint32_t> keys_;  // of adverts that have passed
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_HOSTILE_H_
