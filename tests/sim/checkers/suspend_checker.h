#ifndef ESDP_TESTS_SIM_CHECKERS_SUSPEND_CHECKER_H_
#define ESDP_TESTS_SIM_CHECKERS_SUSPEND_CHECKER_H_

#include <cstdint>
#include <map>

#include "tests/sim/checkers/wire_books.h"

namespace esdp::simulation {

struct SuspendPage {
  bool asked = false;         // SuspComm has left
  bool acknowledged = false;  // SuspCommAck has left
  bool asked_by_peer = false;
};

// The rules of a connection that moves to another queue pair (section 12): who says what behind
// SuspComm, and where the connection goes on. The new queue pair has another number on the wire.
class SuspendChecker : private WireBooks<SuspendPage> {
 public:
  SuspendChecker(Findings& findings, Marks& marks) : WireBooks(findings, marks) {}

  // The connecting side of a queue pair asks for one.
  void OnHello(const fabric::sim::WireEnd& from);
  void OnImmediateSent(const fabric::sim::WireEnd& from, const sdp::wire::Message& message,
                       size_t payload, bool shows_sources, bool shows_sinks);
  // An RDMA write or a request to read.
  void OnTransfer(const fabric::sim::WireEnd& from);
  void OnArrived(const fabric::sim::WireEnd& at, const sdp::wire::Message& message);

  // Where the connection goes on.
  void NoteReturn(const fabric::sim::WireEnd& from, const sdp::wire::SuspComm& asks);
  // The number that the connection began with.
  uint16_t FirstOf(uint16_t connection) const;
  // The same end on the queue pair that the connection began with.
  fabric::sim::WireEnd FirstOf(const fabric::sim::WireEnd& end) const;

 private:
  bool IsSilent(const fabric::sim::WireEnd& from);

  struct Move {
    uint16_t first = 0;
    uint32_t times = 0;
    bool turned = false;  // the side that connected first is now the accepting one
  };
  std::map<uint16_t, Move> returns_;  // by the port that a SuspComm has named
  std::map<uint16_t, Move> moved_;    // by the number of the new queue pair
};

}  // namespace esdp::simulation

#endif  // ESDP_TESTS_SIM_CHECKERS_SUSPEND_CHECKER_H_
