#include "impl/sdp/flow/outgoing.h"

#include "impl/sdp/common/limits.h"

namespace esdp::sdp {

void Outgoing::Start(const Config& config, uint16_t peer_buffers) {
  credits_.Start(peer_buffers);
  connecting_ = config.connecting;
  acknowledge_delay_ = config.acknowledge_delay;
  speaks_first_ = config.initiator_speaks_first && connecting_;
  waits_for_first_ = config.initiator_speaks_first && !connecting_;
}

// A notice that has left is not repeated on the next queue pair, and a timer that is set fires.
void Outgoing::OnQueuePairLeft() {
  posted_.clear();
  rdma_posted_ = 0;
  credits_ = Credits{};
  stalled_ = acknowledgement_due_ = owes_answer_to_write_ = false;
  speaks_first_ = waits_for_first_ = false;
  acknowledge_at_.reset();
}

bool Outgoing::DisConnPosted() const {
  for (const Kind kind : posted_) {
    if (kind == Kind::kDisConn) return true;
  }
  return false;
}

void Outgoing::RideUrgentNotice(wire::BaseHeader& header) {
  if (!UrgentNoticeDue()) return;
  header.flags |= wire::kFlagOobPending;
  urgent_.OnNotice();
}

void Outgoing::OnUrgentByte(wire::BaseHeader& header, Counters& counters) {
  if (!urgent_.noticed()) header.flags |= wire::kFlagOobPending;
  urgent_.OnByteLeft();
  urgent_ahead_.reset();
  ++counters.urgent_sent;
}

void Outgoing::SendCredits(Actions& actions, Counters& counters) {
  if (!HasSlot(0)) return;
  using Update = Credits::Update;
  const bool acknowledges =
      acknowledgement_due_ && !credits_.holds_acknowledgement() && credits_.MaySendControl();
  const Update update = credits_.UpdateDue();
  const Update escape = stalled_ ? credits_.EscapeDue() : Update::kNone;
  if (acknowledges || update == Update::kNow) {
    PostBare(actions, counters);
    ++counters.credit_updates_sent;
  } else if (escape == Update::kNow) {
    PostBare(actions, counters);
    credits_.OnEscape();
  } else if ((update == Update::kLater || escape == Update::kLater) && !acknowledge_at_) {
    // The sides differ: with equal delays their bare Data would cross for ever, each with an
    // acknowledgement that is one short of what the other's payload needs.
    const Duration delay = credits_.LaterBy() * acknowledge_delay_;
    acknowledge_at_ = AddSaturating(now_, connecting_ ? delay + delay / 2 : delay);
  }
}

// Set lazily: a deadline that has moved away is looked at again when the earlier one fires.
void Outgoing::ArmTimer(bool over, Actions& actions) {
  if (over) {
    if (acknowledge_armed_) actions.emplace_back(ClearTimer{Timer::kAcknowledge});
    acknowledge_armed_ = false;
  } else if (!TimerStands()) {
    acknowledge_armed_ = true;
    actions.emplace_back(SetTimer{Timer::kAcknowledge, *acknowledge_at_});
  }
}

void Outgoing::AddTo(Digest& digest) const {
  credits_.AddTo(digest);
  digest.Add(posted_.size()).Add(rdma_posted_);
  for (const Kind kind : posted_) digest.Add(static_cast<uint8_t>(kind));
  digest.Add(speaks_first_).Add(waits_for_first_).Add(stalled_).Add(connecting_);
  digest.Add(owes_answer_to_write_).Add(acknowledgement_due_).Add(acknowledge_armed_);
  const Time acknowledge_at = acknowledge_at_.value_or(kTimeInfinite);
  digest.Add(static_cast<uint64_t>(acknowledge_at.time_since_epoch().count()));
  urgent_.AddTo(digest);
}

}  // namespace esdp::sdp
