#ifndef ESDP_TESTS_SIM_CHECKERS_URGENT_CHECKER_H_
#define ESDP_TESTS_SIM_CHECKERS_URGENT_CHECKER_H_

#include <cstdint>

#include "tests/sim/checkers/wire_books.h"

namespace esdp::simulation {

struct UrgentPage {
  bool announced = false;  // and the byte has not left
  uint64_t ahead = 0;      // user bytes in messages since then
  uint64_t ahead_max = 0;  // as many there may be: what was shown then may come back
};

// The rules of urgent bytes (section 10): each is announced once, before it or with it, at most
// 65,535 bytes ahead, and is the last byte of a Data.
class UrgentChecker : private WireBooks<UrgentPage> {
 public:
  UrgentChecker(Findings& findings, Marks& marks) : WireBooks(findings, marks) {}

  // `shown`: the bytes of SrcAvails of `from` that are neither read nor given back.
  void OnImmediateSent(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                       size_t payload, uint64_t shown);
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CHECKERS_URGENT_CHECKER_H_
