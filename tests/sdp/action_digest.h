#ifndef ESDP_TESTS_SDP_ACTION_DIGEST_H_
#define ESDP_TESTS_SDP_ACTION_DIGEST_H_

#include <cstdint>
#include <vector>

#include "impl/sdp/interface/action.h"

namespace esdp::sdp::testing {

// A number for all that an action says: two actions with the same one say the same. Of a message the
// bytes that go on the wire count.
uint64_t DigestOf(const Action& action);
std::vector<uint64_t> DigestsOf(const std::vector<Action>& actions);

}  // namespace esdp::sdp::testing

#endif  // ESDP_TESTS_SDP_ACTION_DIGEST_H_
