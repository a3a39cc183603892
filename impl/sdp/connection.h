#ifndef ESDP_IMPL_SDP_CONNECTION_H_
#define ESDP_IMPL_SDP_CONNECTION_H_

#include <cstdint>

#include "impl/base/time.h"
#include "impl/sdp/action.h"
#include "impl/sdp/config.h"
#include "impl/sdp/input.h"

namespace esdp::sdp {

// Counters of one connection, from its start.
struct Counters {
  uint64_t bytes_sent_copied = 0, bytes_sent_zero_copy = 0;        // by Data (and inline), by RDMA
  uint64_t bytes_received_copied = 0, bytes_received_zero_copy = 0;
  uint64_t sends_copied = 0, sends_zero_copy = 0;                  // operations finished, by where most bytes went
  uint64_t receives_copied = 0, receives_zero_copy = 0;
  uint64_t messages_sent = 0, messages_received = 0;
  uint64_t source_adverts_sent = 0, source_adverts_received = 0;
  uint64_t send_sm_sent = 0, send_sm_received = 0;
  uint64_t payload_copies = 0, payload_copy_bytes = 0;             // CopyIn and CopyOut
  uint64_t credit_stalls = 0, credit_updates_sent = 0;
  uint64_t expose_failures = 0;
};

// One SDP connection: a state machine without I/O.
//
//   One door:  Step takes one input and the time, and appends actions. Nothing else is read or called; payload is never
//              touched; the same inputs give the same actions.
//   Value:     copyable; digest() is equal for equal states.
//   Checks:    after each step the invariants are checked. One that fails ends the connection with kInternal.
//   Time:      must not run backwards between inputs.
class Connection {
 public:
  explicit Connection(const Config& config);

  void Step(const Input& input, Time now, Actions& actions);

  // No operation is pending and ReportClosed has been given.
  bool closed() const;
  const Counters& counters() const;
  uint64_t digest() const;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_CONNECTION_H_
