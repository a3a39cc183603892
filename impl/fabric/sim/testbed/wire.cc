#include "impl/fabric/sim/testbed/wire.h"

#include <algorithm>
#include <utility>

namespace esdp::fabric::sim::testbed {
namespace {

constexpr uint64_t kFraming = 64;  // headers of a message, more or less
// What fits one packet waits for one at the most, which takes no time to speak of.
constexpr uint64_t kPacket = 2048;

}  // namespace

Wire::Wire(World& world, const Parameters& parameters)
    : world_(world),
      nanoseconds_byte_(1000 /
                        std::min(parameters.device_bus_mb_s, parameters.link_bandwidth_mb_s)),
      quantum_(static_cast<uint64_t>(parameters.device_quantum_kib * 1024)),
      latency_(Microseconds(parameters.link_latency_us)) {}

void Wire::Send(uint64_t flow, uint64_t bytes, Moved moved, std::function<void()> arrive) {
  if (busy_ && bytes + kFraming <= kPacket && !flows_.contains(flow)) {
    const Duration takes = TimeOf(bytes + kFraming);
    delayed_ += takes;
    between_until_ = std::max(between_until_, world_.Now()) + takes;
    moved(bytes + kFraming);
    world_.Schedule(between_until_ + latency_, std::move(arrive));
    return;
  }
  flows_[flow].push_back({bytes + kFraming, std::move(moved), std::move(arrive)});
  if (!busy_) ServeNext();
}

Duration Wire::TimeOf(uint64_t bytes) const {
  return Duration(static_cast<Duration::rep>(static_cast<double>(bytes) * nanoseconds_byte_));
}

void Wire::ServeNext() {
  busy_ = !flows_.empty();
  if (!busy_) return;
  auto next = flows_.upper_bound(last_served_);
  if (next == flows_.end()) next = flows_.begin();
  last_served_ = next->first;
  const uint64_t bytes = std::min(next->second.front().left, quantum_);
  world_.Schedule(world_.Now() + TimeOf(bytes),
                  [this, flow = next->first, bytes] { OnServed(flow, bytes); });
}

void Wire::OnServed(uint64_t flow, uint64_t bytes) {
  if (const Duration late = std::exchange(delayed_, Duration(0)); late > Duration(0)) {
    world_.Schedule(world_.Now() + late, [this, flow, bytes] { OnServed(flow, bytes); });
    return;
  }
  const auto found = flows_.find(flow);
  Parcel& parcel = found->second.front();
  parcel.left -= bytes;
  parcel.moved(bytes);
  if (parcel.left == 0) {
    world_.Schedule(world_.Now() + latency_, std::move(parcel.arrive));
    found->second.pop_front();
    if (found->second.empty()) flows_.erase(found);
  }
  ServeNext();
}

}  // namespace esdp::fabric::sim::testbed
