#ifndef ESDP_IMPL_FABRIC_VERBS_PROFILE_H_
#define ESDP_IMPL_FABRIC_VERBS_PROFILE_H_

#include <cstdint>

namespace esdp::fabric::verbs {

// How peers meet: the connection profiles of the SDP wire protocol, section 2.6.
enum class Profile : uint8_t {
  kTcp,         // B: in the connection manager's port space of TCP; on every device
  kInfiniBand,  // C: in that of InfiniBand, which stock tshark takes for SDP; not on iWARP
  kNative,      // A: by SDP's own service ids, as in kernels; connects only, and on InfiniBand only
};

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_PROFILE_H_
