#ifndef ESDP_IMPL_FABRIC_SIM_TESTBED_WIRE_H_
#define ESDP_IMPL_FABRIC_SIM_TESTBED_WIRE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "impl/base/time.h"
#include "impl/fabric/sim/testbed/parameters.h"
#include "impl/fabric/sim/world.h"

namespace esdp::fabric::sim::testbed {

// One direction of a device and its link: flows take turns, a quantum each, at the rate of the
// slower of the bus and the link. A quantum is many packets: what is one packet goes between them.
//
//   Owns:     what waits for its turn.
//   Threads:  the world's lock.
//   Blocks:   never.
//   Units:    bytes, virtual time.
//   Errors:   –
class Wire {
 public:
  // Bytes have been taken from memory, and are put into that at the other end.
  using Moved = std::function<void(uint64_t bytes)>;

  Wire(World& world, const Parameters& parameters);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // `arrive` runs when the last byte is there. Those of one flow arrive in their order.
  void Send(uint64_t flow, uint64_t bytes, Moved moved, std::function<void()> arrive);

 private:
  struct Parcel {
    uint64_t left = 0;
    Moved moved;
    std::function<void()> arrive;
  };

  Duration TimeOf(uint64_t bytes) const;
  void ServeNext();
  void OnServed(uint64_t flow, uint64_t bytes);

  World& world_;
  const double nanoseconds_byte_;
  const uint64_t quantum_;
  const Duration latency_;
  std::map<uint64_t, std::deque<Parcel>> flows_;  // those that have something
  uint64_t last_served_ = 0;
  bool busy_ = false;
  // Packets that went between those of the turn that runs: how much later that ends, and when they
  // are out.
  Duration delayed_{};
  Time between_until_{};
};

}  // namespace esdp::fabric::sim::testbed

#endif  // ESDP_IMPL_FABRIC_SIM_TESTBED_WIRE_H_
