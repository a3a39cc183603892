#ifndef ESDP_IMPL_SDP_INTERFACE_COUNTERS_H_
#define ESDP_IMPL_SDP_INTERFACE_COUNTERS_H_

#include <cstdint>

namespace esdp::sdp {

// Counters of one connection, from its start: the list counters.def.
struct Counters {
#define ESDP_COUNTER(name) uint64_t name = 0;
#define ESDP_INNER_COUNTER(name) uint64_t name = 0;
#include "impl/sdp/interface/counters.def"
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_INTERFACE_COUNTERS_H_
