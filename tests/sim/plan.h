#ifndef ESDP_TESTS_SIM_PLAN_H_
#define ESDP_TESTS_SIM_PLAN_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "esdp/options.h"
#include "esdp/region.h"
#include "impl/base/random.h"
#include "impl/base/time.h"
#include "impl/fabric/sim/faults.h"
#include "impl/fabric/types.h"

namespace esdp::simulation {

// What one end of a connection may do; how often is drawn for each run, and some things not at all.
enum class Act : uint8_t {
  kSend,
  kReceive,
  kCancel,
  kCancelAll,
  kSetOption,
  kRest,
  kAwaitUrgent,
  kSetMode,
  kSuspend,
};
inline constexpr size_t kActs = 9;

// How an end leaves when it has done everything.
enum class Leave : uint8_t {
  kPolite,  // shuts down, reads to the end, closes
  kClose,   // closes at once, in order
  kAbort,
  kDrop,  // lets go of the handle
};

struct StationPlan {
  fabric::Limits limits;
  bool short_limits = false;
  ContextOptions context;
  // Of its sockets; 0: as SocketOptions has it.
  uint32_t receive_buffer_bytes_max = 0;
  uint32_t peer_receive_buffer_bytes = 0;
};

// Everything that one run draws before it begins, from one seed.
struct Plan {
  uint64_t seed = 0;
  uint32_t connections = 0;
  std::vector<StationPlan> stations;
  SocketOptions socket;
  uint32_t queue_depth = 64;
  Duration transit_max{};
  fabric::sim::Faults faults;
  uint32_t hostile = 0;  // out of a million messages
  uint32_t forged = 0;   // out of a million reads and writes
  // So long after the begin the first station's process dies; 0: it does not.
  Duration death_after{};
  bool death_is_told = false;  // its host tells the peers
  Duration faults_last{};
  std::array<uint32_t, kActs> weights{};
  std::array<uint32_t, 4> leaves{};
  uint32_t acts_max = 0;
  uint64_t size_max = 0;
  uint64_t deadline_chance = 0;  // out of a hundred operations
  uint64_t urgent_chance = 0;    // out of a hundred sends
  uint64_t wait_all_chance = 25;
  uint64_t small_send_chance = 0;  // out of a hundred sends
  Duration rest_max{};             // between what an end does
  Duration read_rest_max{};        // between the reads to the end: a slow reader

  bool disturbs() const {
    return lies() || death_after > Duration::zero() || faults.reset > 0 || faults.silence > 0;
  }
  bool lies() const { return hostile > 0 || forged > 0; }
  // Connections may fail to come about.
  bool starves() const {
    return faults.no_region > 0 || faults.no_queue_pair > 0 || faults.registered_bytes_max > 0;
  }
  // What the sockets of a station are made with.
  SocketOptions SocketOf(size_t station) const;
  std::string Describe() const;
};

Plan DrawPlan(uint64_t seed);

// A size with a preference for those where something begins or ends.
uint64_t DrawSize(const Plan& plan, Random& random);

// The memory that each station registers for its applications, once for each kind of exposure.
inline constexpr uint64_t kRegionBytes = 3 << 20;
inline constexpr std::array kExposures{Exposure::kPerOperation, Exposure::kRegionKey,
                                       Exposure::kNone};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_PLAN_H_
