#ifndef ESDP_TESTS_SDP_LENT_H_
#define ESDP_TESTS_SDP_LENT_H_

#include <cstdint>

#include "impl/sdp/interface/action.h"

// What every model of an application checks when an operation ends [es-api D.2, 4 and 11].

namespace esdp::sdp::testing {

// What the fabric and the peer still do with the memory of an operation.
struct Lent {
  uint8_t gathers = 0, reads = 0, writes = 0, exposures = 0;

  // Why the operation may not end yet, or nullptr.
  const char* InUse() const {
    if (gathers > 0) return "an operation ends while a Send gathers from it";
    if (reads > 0) return "an operation ends while a READ fills it";
    if (writes > 0) return "an operation ends while a WRITE takes from it";
    if (exposures > 0) return "an operation ends while the peer can reach it";
    return nullptr;
  }
};

// Operations end in posting order; what moved no byte may end before its turn.
inline bool MayOvertake(const FinishOperation& end) {
  return end.bytes == 0 &&
         (end.outcome == Outcome::kCancelled || end.outcome == Outcome::kDeadlineExceeded);
}

}  // namespace esdp::sdp::testing

#endif  // ESDP_TESTS_SDP_LENT_H_
