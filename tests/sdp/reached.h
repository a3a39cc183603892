#ifndef ESDP_TESTS_SDP_REACHED_H_
#define ESDP_TESTS_SDP_REACHED_H_

#include <cstdint>

#include "tests/sdp/side.h"

namespace esdp::sdp::testing {

// Rare things that a campaign must have met, or it proves nothing.
struct Reached {
  uint64_t zero_copy = 0, send_sm = 0, expose_failures = 0, stalls = 0, updates = 0;
  uint64_t urgent = 0, urgent_ahead = 0, raised = 0, lowered = 0, refused = 0;
  uint64_t sink_adverts = 0, writes = 0, stale = 0, overridden = 0, transactions = 0;
  uint64_t sink_cancels = 0, sink_cancel_acks = 0;
  uint64_t many_adverts = 0, cancels = 0, revoked_whole = 0, mode_changes = 0, buffered = 0;
  uint64_t partial_reads = 0, invalidates = 0, cancelled = 0, withdrawn_by_peer = 0, mixed = 0;

  void Add(const Side& side) {
    const Counters& counters = side.core().counters();
    zero_copy += counters.bytes_sent_zero_copy;
    send_sm += counters.send_sm_sent;
    expose_failures += counters.expose_failures;
    stalls += counters.credit_stalls;
    updates += counters.credit_updates_sent;
    many_adverts += side.adverts_most() > 1 ? 1u : 0u;
    cancels += counters.source_cancels_sent;
    revoked_whole += side.dropped_after_advert();
    mode_changes += counters.mode_changes_sent;
    for (const wire::Message& message : side.Posted<wire::ModeChange>()) {
      const bool down = std::get<wire::ModeChange>(message.body).mode == wire::Mode::kBuffered;
      buffered += down ? 1u : 0u;
    }
    urgent += counters.urgent_sent;
    raised += counters.peer_resizes;
    refused += side.Posted<wire::ChRcvBufAck>().size() - counters.receive_resizes;
    lowered += counters.receive_resizes;
    for (const wire::Message& data : side.Posted<wire::Data>()) {
      urgent_ahead += data.base.flags == wire::kFlagOobPending ? 1u : 0u;
    }
    sink_adverts += counters.sink_adverts_sent;
    stale += counters.stale_adverts;
    overridden += counters.source_adverts_lost;
    transactions += counters.transactions_received;
    sink_cancels += counters.sink_cancels_sent;
    writes += side.CountOf<Write>();
    sink_cancel_acks += side.Posted<wire::SinkCancelAck>().size();
    const size_t completions = side.Posted<wire::RdmaRdCompl>().size();
    partial_reads += completions > counters.source_adverts_received ? 1u : 0u;
    for (const Action& action : side.history()) {
      if (const auto* send = std::get_if<sdp::Send>(&action)) {
        invalidates += send->invalidate_key ? 1u : 0u;
      } else if (const auto* withdraw = std::get_if<Withdraw>(&action)) {
        withdrawn_by_peer += withdraw->already_invalidated ? 1u : 0u;
      } else if (const auto* finish = std::get_if<FinishOperation>(&action)) {
        cancelled += finish->outcome == Outcome::kCancelled ? 1u : 0u;
        mixed += finish->bytes_zero_copy > 0 && finish->bytes_zero_copy < finish->bytes ? 1u : 0u;
      }
    }
  }
};

}  // namespace esdp::sdp::testing

#endif  // ESDP_TESTS_SDP_REACHED_H_
