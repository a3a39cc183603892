#ifndef ESDP_TESTS_SIM_WIRES_H_
#define ESDP_TESTS_SIM_WIRES_H_

#include <functional>
#include <vector>

#include "tests/sim/checkers/memory_checker.h"
#include "tests/sim/checkers/wire_checker.h"
#include "tests/sim/forger.h"
#include "tests/sim/hostile.h"

namespace esdp::simulation {

// Hands what happens on the wires to all who want to know.
class Wires : public fabric::sim::WireObserver {
 public:
  Wires(WireChecker& checker, MemoryChecker& memory, HostilePeer& hostile, Forger& forger,
        WireObserver* sabotage)
      : checker_(checker),
        memory_(memory),
        hostile_(hostile),
        forger_(forger),
        sabotage_(sabotage) {}

  std::function<void(uint16_t, fabric::sim::FaultKind)> disturbed;

  void OnPrivateData(const fabric::sim::WireEnd& from, std::vector<std::byte>& data) override {
    if (sabotage_ != nullptr) sabotage_->OnPrivateData(from, data);
    checker_.OnPrivateData(from, data);
    hostile_.OnPrivateData(from, data);
  }
  void OnTransmit(const fabric::sim::WireEnd& from, fabric::sim::Frame& frame) override {
    if (sabotage_ != nullptr) sabotage_->OnTransmit(from, frame);
    checker_.OnTransmit(from, frame);
    hostile_.OnTransmit(from, frame);
    forger_.OnTransmit(from, frame);
  }
  void OnArrive(const fabric::sim::WireEnd& at, const fabric::sim::Frame& frame) override {
    checker_.OnArrive(at, frame);
  }
  void OnTouch(const fabric::sim::WireEnd&, const std::byte* address, uint64_t length,
               fabric::sim::Touch touch) override {
    memory_.OnTouch(address, length, touch);
  }
  void OnFault(const fabric::sim::WireEnd& at, fabric::sim::FaultKind kind) override {
    disturbed(at.connection, kind);
  }
  void OnEnd(const fabric::sim::WireEnd& at, fabric::Cause cause) override {
    forger_.OnEnd(at, cause);
  }

 private:
  WireChecker& checker_;
  MemoryChecker& memory_;
  HostilePeer& hostile_;
  Forger& forger_;
  WireObserver* sabotage_;
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_WIRES_H_
