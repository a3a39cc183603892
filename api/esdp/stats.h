#ifndef ESDP_STATS_H_
#define ESDP_STATS_H_

#include <cstdint>

// Counters, from the start of what they count. A snapshot is consistent within one object.

namespace esdp {

struct SocketStats {
  uint64_t bytes_sent_copied = 0;  // in messages
  uint64_t bytes_sent_zero_copy =
      0;  // read or written by RDMA, straight from the application's memory
  uint64_t bytes_received_copied = 0;
  uint64_t bytes_received_zero_copy = 0;  // straight into the application's memory
  uint64_t sends_copied = 0;              // operations, by the path most of their bytes took
  uint64_t sends_zero_copy = 0;
  uint64_t receives_copied = 0;
  uint64_t receives_zero_copy = 0;
  uint64_t payload_copies = 0;  // copies of payload by this side's processor, both directions
  uint64_t payload_copy_bytes = 0;
  uint64_t messages_sent = 0;  // SDP messages
  uint64_t messages_received = 0;
  uint64_t source_adverts_sent = 0;  // SrcAvail
  uint64_t source_adverts_received = 0;
  uint64_t source_adverts_lost = 0;  // ours, taken back for the peer showed its receives meanwhile
  uint64_t sink_adverts_sent = 0;    // SinkAvail: receives that the peer may write to
  uint64_t sink_adverts_received = 0;
  uint64_t sink_cancels_sent = 0;  // SinkAvailCancel: takes back all that the peer has not used
  uint64_t sink_cancels_received = 0;
  uint64_t stale_adverts = 0;      // the peer's SinkAvails that data of ours had crossed
  uint64_t mode_changes_sent = 0;  // ModeChange
  uint64_t mode_changes_received = 0;
  uint64_t send_sm_sent = 0;  // adverts that were answered with "send it in messages instead"
  uint64_t send_sm_received = 0;
  uint64_t adaptive_threshold = 0;  // in force for sends, of a Stream for Writes; 0: none learned
  uint64_t credit_stalls = 0;       // times that data waited for the peer's buffers
  uint64_t credit_updates_sent = 0;
  uint64_t receive_resizes = 0;  // changes of our receive buffers' size that the peer asked for
  uint64_t peer_resizes = 0;     // of the peer's, that we asked for and it granted
  uint64_t urgent_sent = 0;      // urgent bytes
  uint64_t urgent_received = 0;
  uint64_t expose_failures = 0;      // memory that could not be shown to the peer, and was copied
  uint64_t resumptions = 0;          // moves to a new queue pair, whoever asked
  uint64_t returns_rejected = 0;     // who came back during a move, and was not the peer
  uint64_t ended_before_accept = 0;  // listener: connections that ended before an Accept took them
};

struct QueueStats {
  uint32_t depth = 0;
  uint32_t waiting = 0;      // events not yet dequeued
  uint32_t reserved = 0;     // slots promised to outstanding operations
  uint32_t waiting_max = 0;  // high mark
  uint64_t events = 0;       // delivered to the queue
  uint64_t full = 0;         // posts refused for want of a slot
  uint64_t starved = 0;      // times that connections had to wait for a slot to be accepted
};

struct ContextStats {
  uint32_t regions = 0;
  uint64_t region_bytes = 0;
  uint32_t sockets = 0;
  uint32_t queues = 0;
  uint32_t operations = 0;  // outstanding
  uint64_t operations_posted = 0;
  uint64_t bounce_bytes = 0;  // of SendCopy, in use
  // Of SendFile: read from the page cache in passing, and by the threads for files. Of RecvFile.
  uint64_t file_bytes_cached = 0;
  uint64_t file_bytes_read = 0;
  uint64_t file_bytes_written = 0;
  uint64_t accepts_given_up = 0;     // accepted connections that nobody took in time
  uint64_t ended_before_accept = 0;  // incoming ones that ended before an Accept took them
  // Incoming connections that were rejected, by the limit that they met.
  uint64_t rejected_backlog = 0;      // of their listener
  uint64_t rejected_half_open = 0;    // ContextOptions::half_open_max
  uint64_t rejected_connections = 0;  // ContextLimits::connections_max
  uint64_t rejected_address = 0;      // ContextLimits::connections_per_address_max
  uint64_t rejected_rate = 0;         // ContextLimits::accept_rate
};

}  // namespace esdp

#endif  // ESDP_STATS_H_
