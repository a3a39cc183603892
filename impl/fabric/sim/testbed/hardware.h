#ifndef ESDP_IMPL_FABRIC_SIM_TESTBED_HARDWARE_H_
#define ESDP_IMPL_FABRIC_SIM_TESTBED_HARDWARE_H_

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "impl/fabric/sim/testbed/machine.h"
#include "impl/fabric/sim/testbed/parameters.h"
#include "impl/fabric/sim/testbed/wire.h"
#include "impl/fabric/sim/world.h"

namespace esdp::fabric::sim::testbed {

// What the completion queues of a host share: its processors and its memory, the device's way out,
// and the device's interrupt. What is raised while one is served is served behind it, without
// another.
//
//   Owns:     the machine and the wire.
//   Threads:  the world's lock.
//   Blocks:   never.
//   Units:    virtual time.
//   Errors:   –
class Hardware {
 public:
  Hardware(std::shared_ptr<World> world, const Parameters& parameters)
      : world_(std::move(world)),
        parameters_(parameters),
        machine_(*world_, parameters_),
        wire_(*world_, parameters_) {}

  const std::shared_ptr<World>& world() const { return world_; }
  const Parameters& parameters() const { return parameters_; }
  Machine& machine() { return machine_; }
  Wire& wire() { return wire_; }

  // `serve` runs on a processor that the interrupt has, and calls Served once it is through.
  void Interrupt(std::function<void()> serve) {
    raised_.push_back(std::move(serve));
    if (std::exchange(serving_, true)) return;
    machine_.Acquire(tasklet_, [this] {
      SpendInInterrupt({.nanoseconds = parameters_.device_interrupt_us * 1000},
                       [this] { ServeNext(); });
    });
  }
  void SpendInInterrupt(const Work& work, Machine::Then then) {
    machine_.Spend(tasklet_, work, std::move(then));
  }
  void Served() {
    if (!raised_.empty()) return ServeNext();
    serving_ = false;
    machine_.Release(tasklet_);
  }

 private:
  void ServeNext() {
    const std::function<void()> serve = std::move(raised_.front());
    raised_.pop_front();
    serve();
  }

  const std::shared_ptr<World> world_;
  const Parameters parameters_;
  Machine machine_;
  Wire wire_;
  Task tasklet_{/*interrupt=*/true};
  std::deque<std::function<void()>> raised_;
  bool serving_ = false;
};

}  // namespace esdp::fabric::sim::testbed

#endif  // ESDP_IMPL_FABRIC_SIM_TESTBED_HARDWARE_H_
