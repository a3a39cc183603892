#ifndef ESDP_TOOLS_TESTBED_CACHES_H_
#define ESDP_TOOLS_TESTBED_CACHES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "impl/fabric/sim/testbed/parameters.h"

namespace esdp::testbed {

inline constexpr double kUncached = 1;  // all of it is in no cache

// The part of an application's buffer that is in no cache when a call copies there. The paper, 4.1:
// "while copying 512KB, the cache is entirely occupied by the source and destination data". So what
// a call touches is twice its bytes, in its share of the caches.
inline double MissingInCaches(const fabric::sim::testbed::Parameters& parameters, uint64_t bytes,
                              size_t sharers) {
  const double cores = parameters.machine_cores;
  const double share =
      parameters.machine_cache_kib * 1024 * cores / std::max(cores, static_cast<double>(sharers));
  return std::clamp(2 * static_cast<double>(bytes) / share - 1, 0.0, 1.0);
}

}  // namespace esdp::testbed

#endif  // ESDP_TOOLS_TESTBED_CACHES_H_
