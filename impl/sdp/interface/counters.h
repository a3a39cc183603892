#ifndef ESDP_IMPL_SDP_INTERFACE_COUNTERS_H_
#define ESDP_IMPL_SDP_INTERFACE_COUNTERS_H_

#include <cstdint>

namespace esdp::sdp {

// Counters of one connection, from its start.
struct Counters {
  uint64_t bytes_sent_copied = 0, bytes_sent_zero_copy = 0;  // by Data (and inline), by RDMA
  uint64_t bytes_received_copied = 0, bytes_received_zero_copy = 0;
  uint64_t sends_copied = 0, sends_zero_copy = 0;  // operations finished, by where most bytes went
  uint64_t receives_copied = 0, receives_zero_copy = 0;
  uint64_t messages_sent = 0, messages_received = 0;
  uint64_t source_adverts_sent = 0, source_adverts_received = 0;
  uint64_t sink_adverts_sent = 0, sink_adverts_received = 0;
  uint64_t sink_cancels_sent = 0, sink_cancels_received = 0;
  uint64_t stale_adverts = 0;        // the peer's SinkAvails that came too late
  uint64_t source_adverts_lost = 0;  // ours that a SinkAvail of the peer's overrode
  uint64_t transactions_sent = 0, transactions_received = 0;  // payload on a SinkAvail
  uint64_t source_cancels_sent = 0, source_cancels_received = 0;
  uint64_t mode_changes_sent = 0, mode_changes_received = 0;
  uint64_t send_sm_sent = 0, send_sm_received = 0;
  uint64_t payload_copies = 0, payload_copy_bytes = 0;  // CopyIn and CopyOut
  uint64_t adaptive_threshold = 0;                      // in force; 0: none is learned
  uint64_t credit_stalls = 0, credit_updates_sent = 0;
  uint64_t expose_failures = 0;
  uint64_t receive_resizes = 0, peer_resizes = 0;  // ours by the peer's wish; the peer's by ours
  uint64_t urgent_sent = 0, urgent_received = 0;   // bytes
  uint64_t resumptions = 0;                        // on a new queue pair after SuspComm
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_INTERFACE_COUNTERS_H_
