#include "impl/sockets/context/context_state.h"
#include "impl/sockets/stream/stream_state.h"

// What the connection has counted.

namespace esdp::sockets {

SocketStats StreamState::Stats() const {
  SocketStats stats;
  const provider::ConnectionId connection = connection_;
  const ContextCall call(&context_);
  if (connection == provider::ConnectionId::kNone || !call.ok()) return stats;
  const auto found = context_.shard().Counters(connection);
  if (!found.ok()) return stats;
  const provider::ConnectionCounters& from = *found;
  stats.bytes_sent_copied = from.bytes_sent_copied;
  stats.bytes_sent_zero_copy = from.bytes_sent_zero_copy;
  stats.bytes_received_copied = from.bytes_received_copied;
  stats.bytes_received_zero_copy = from.bytes_received_zero_copy;
  stats.sends_copied = from.sends_copied;
  stats.sends_zero_copy = from.sends_zero_copy;
  stats.receives_copied = from.receives_copied;
  stats.receives_zero_copy = from.receives_zero_copy;
  stats.payload_copies = from.payload_copies + bounce_share_.copies();
  stats.payload_copy_bytes = from.payload_copy_bytes + bounce_share_.copied_bytes();
  stats.messages_sent = from.messages_sent;
  stats.messages_received = from.messages_received;
  stats.source_adverts_sent = from.source_adverts_sent;
  stats.source_adverts_received = from.source_adverts_received;
  stats.source_adverts_lost = from.source_adverts_lost;
  stats.sink_adverts_sent = from.sink_adverts_sent;
  stats.sink_adverts_received = from.sink_adverts_received;
  stats.sink_cancels_sent = from.sink_cancels_sent;
  stats.sink_cancels_received = from.sink_cancels_received;
  stats.stale_adverts = from.stale_adverts;
  stats.mode_changes_sent = from.mode_changes_sent;
  stats.mode_changes_received = from.mode_changes_received;
  stats.send_sm_sent = from.send_sm_sent;
  stats.send_sm_received = from.send_sm_received;
  stats.adaptive_threshold = from.adaptive_threshold;
  stats.credit_stalls = from.credit_stalls;
  stats.credit_updates_sent = from.credit_updates_sent;
  stats.receive_resizes = from.receive_resizes;
  stats.peer_resizes = from.peer_resizes;
  stats.urgent_sent = from.urgent_sent;
  stats.urgent_received = from.urgent_received;
  stats.expose_failures = from.expose_failures;
  stats.resumptions = from.resumptions;
  stats.returns_rejected = from.returns_rejected;
  return stats;
}

}  // namespace esdp::sockets
