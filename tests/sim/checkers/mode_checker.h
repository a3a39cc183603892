#ifndef ESDP_TESTS_SIM_CHECKERS_MODE_CHECKER_H_
#define ESDP_TESTS_SIM_CHECKERS_MODE_CHECKER_H_

#include <cstdint>
#include <optional>

#include "tests/sim/checkers/wire_books.h"

namespace esdp::simulation {

// What one end knows of the data delivery modes, by what it has sent and what has arrived.
struct ModePage {
  sdp::wire::Mode send = sdp::wire::Mode::kCombined;
  sdp::wire::Mode receive = sdp::wire::Mode::kCombined;
  uint8_t adverts_max = 16;              // that it has declared
  uint32_t acknowledged = 0;             // the highest MSeqAck that has arrived
  std::optional<uint32_t> frozen_until;  // its own change out of Pipelined
  std::optional<uint32_t> lowered_by;    // the peer's change out of Pipelined, once it has arrived
};

// The rules of the data delivery modes (section 5), and the subset that a deployed peer knows: who
// may order which change and when, and that adverts and RDMA writes fit the mode.
class ModeChecker : private WireBooks<ModePage> {
 public:
  ModeChecker(Findings& findings, Marks& marks) : WireBooks(findings, marks) {}

  void OnDeclared(const fabric::sim::WireEnd& from, uint8_t adverts_max) {
    Of(from).adverts_max = adverts_max;
  }
  void OnImmediateSent(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                       size_t payload, bool invalidates);
  void OnWrite(const fabric::sim::WireEnd& from);
  void OnArrived(const fabric::sim::WireEnd& at, const sdp::wire::Message& message);

 private:
  void CheckDeployed(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                     bool invalidates);
  void CheckSrcAvail(const fabric::sim::WireEnd& from, const sdp::wire::SrcAvail& advert,
                     size_t payload);
  void CheckSinkAvail(const fabric::sim::WireEnd& from, const sdp::wire::Message& message);
  void CheckChange(const fabric::sim::WireEnd& from, const sdp::wire::Message& message);
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CHECKERS_MODE_CHECKER_H_
