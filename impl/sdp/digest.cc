#include "impl/sdp/connection.h"

// The connection as a value: one number for equal states.

namespace esdp::sdp {

uint64_t Connection::digest() const {
  Digest digest;
  digest.Add(static_cast<uint8_t>(phase_)).Add(static_cast<uint8_t>(cause_)).Add(reads_out_max_);
  digest.Add(peer_may_read_);
  peer_.AddTo(digest);
  credits_.AddTo(digest);
  send_.AddTo(digest);
  source_.AddTo(digest);
  receive_.AddTo(digest);
  reader_.AddTo(digest);
  sink_.AddTo(digest);
  writer_.AddTo(digest);
  modes_.AddTo(digest);
  mode_policy_.AddTo(digest);
  threshold_.AddTo(digest);
  teardown_.AddTo(digest);
  urgent_out_.AddTo(digest);
  urgent_in_.AddTo(digest);
  resize_out_.AddTo(digest);
  resize_in_.AddTo(digest);
  suspend_.AddTo(digest);
  buffers_.AddTo(digest);
  digest.Add(config_.connecting).Add(window_seen_);
  digest.Add(static_cast<uint64_t>(suspend_armed_.time_since_epoch().count()));
  digest.Add(posted_sends_.size()).Add(early_.size());
  for (const SendKind kind : posted_sends_) digest.Add(static_cast<uint8_t>(kind));
  for (const MessageArrived& arrived : early_) digest.Add(arrived.message.base.sequence);
  digest.Add(speaks_first_).Add(waits_for_first_).Add(stalled_);
  digest.Add(sink_adverts_enabled_).Add(adverts_crossed_);
  digest.Add(acknowledgement_due_).Add(disconnect_asked_).Add(reported_closed_);
  const Time acknowledge_at = acknowledge_at_.value_or(kTimeInfinite);
  digest.Add(static_cast<uint64_t>(acknowledge_at.time_since_epoch().count()));
  digest.Add(acknowledge_armed_);
  digest.Add(static_cast<uint64_t>(close_armed_.time_since_epoch().count()));
  return digest.value();
}

}  // namespace esdp::sdp
