#ifndef ESDP_IMPL_SDP_CONNECTION_STATE_H_
#define ESDP_IMPL_SDP_CONNECTION_STATE_H_

#include <cstdint>
#include <optional>

#include "impl/base/ring.h"
#include "impl/base/time.h"
#include "impl/sdp/credits.h"
#include "impl/sdp/inbound/advert_reader.h"
#include "impl/sdp/inbound/receive_queue.h"
#include "impl/sdp/inbound/sink_adverts.h"
#include "impl/sdp/inbound/urgent_in.h"
#include "impl/sdp/interface/config.h"
#include "impl/sdp/interface/counters.h"
#include "impl/sdp/interface/input.h"
#include "impl/sdp/lifecycle/handshake.h"
#include "impl/sdp/lifecycle/machines.h"
#include "impl/sdp/lifecycle/mode.h"
#include "impl/sdp/lifecycle/mode_policy.h"
#include "impl/sdp/lifecycle/resize.h"
#include "impl/sdp/lifecycle/suspend.h"
#include "impl/sdp/lifecycle/teardown.h"
#include "impl/sdp/outbound/adaptive_threshold.h"
#include "impl/sdp/outbound/advert_writer.h"
#include "impl/sdp/outbound/send_queue.h"
#include "impl/sdp/outbound/source_adverts.h"
#include "impl/sdp/outbound/urgent_out.h"
#include "impl/sdp/receive_buffers.h"

namespace esdp::sdp {

// What a connection is made of: its parts, which know nothing of each other, and what belongs to
// none of them.
class ConnectionState {
 protected:
  enum class SendKind : uint8_t { kControl, kPayload, kDisConn };

  explicit ConnectionState(const Config& config) : config_(config), buffers_(config) {
    resize_in_.Start(config.receive_buffer_bytes, config.receive_buffer_bytes_max);
  }

  // --- questions that concern more than one part ---
  size_t WorkPosted() const {
    return posted_sends_.size() + reader_.reads_in_flight() + writer_.writes_in_flight();
  }
  bool OwesSinkAnswers() const {
    return writer_.cancelled() || writer_.ack_owed() || sink_.cancel_owed();
  }
  // [R19.1, R19.2, R19.3] Towards a deployed peer, or as one: Combined for ever. Both sides decide
  // it from what both have declared.
  bool MayUseModes() const {
    return !config_.as_deployed && config_.max_adverts > 1 && !peer_.deployed();
  }
  bool ModesRest() const {
    return mode_policy_.Rests(modes_.send(), modes_.receive(), send_.waiting());
  }
  bool HasSlot(uint32_t reserved) const { return WorkPosted() + reserved < config_.send_work_max; }
  bool MaySendControl() const { return HasSlot(0) && credits_.MaySendControl(); }
  // [R7.4.4] The report of reads that are over may bring the acknowledgement that is held back for
  // them, and has to where nothing else gives the peer credits for the last one that we have.
  bool MaySendReport() {
    if (MaySendControl()) return true;
    if (!credits_.holds_acknowledgement() || reader_.reads_in_flight() > 0) return false;
    if (!HasSlot(0) || !credits_.MaySendReleased()) return false;
    credits_.ReleaseAcknowledgement();
    return true;
  }
  [[gnu::noinline]] static void FinishNow(OperationId operation, Outcome outcome,
                                          Actions& actions) {
    FinishOperation& finish = Append<FinishOperation>(actions);
    finish.operation = operation;
    finish.outcome = outcome;
  }
  // [R4.1.3] The header of a message that goes out now.
  void Stamp(Send& send, SendKind kind, bool bare) {
    credits_.Stamp(send.message.base, kind == SendKind::kPayload, bare);
    posted_sends_.PushBack() = kind;
    ++counters_.messages_sent;
    if (buffers_.window().awaits_announcement()) [[unlikely]]
      buffers_.MayBeginTurn(send.message.base, credits_, now_);
    if (send.message.base.acknowledged == credits_.last_received()) {
      acknowledge_at_.reset();
      acknowledgement_due_ = false;
    }
  }
  void OnPayloadPosted(uint32_t sequence) {
    const uint64_t bytes = send_.OnPosted(sequence, counters_);
    if (resize_out_.counts()) [[unlikely]]
      resize_out_.OnPayloadPosted(bytes);
    writer_.OnPayloadPosted();
  }
  // A new queue pair's receives are those that its Hello announces, until it is ready.
  bool MayPostReceives() const { return phase_ <= Phase::kSuspending; }
  void PostAgain(ReceiveBuffer buffer, Actions& actions) {
    buffers_.PostAgain(buffer, calm_ || MayPostReceives(), resize_in_.size(), credits_, actions);
  }
  // Open, and no timer has to be set anew.
  bool TimersStand() const {
    return IsOpen(phase_) && teardown_.NextDeadline() == close_armed_ &&
           suspend_.NextDeadline() == suspend_armed_ && cancel_due_ == cancel_armed_ &&
           AcknowledgeTimerStands();
  }
  bool AcknowledgeTimerStands() const {
    return !acknowledge_at_ || acknowledge_armed_ || acknowledgement_due_;
  }
  static void Arm(Timer timer, Time deadline, Time& armed, Actions& actions) {
    if (deadline == armed) return;
    armed = deadline;
    if (deadline == kTimeInfinite) {
      actions.emplace_back(ClearTimer{timer});
    } else {
      actions.emplace_back(SetTimer{timer, deadline});
    }
  }
  // What is left of a close in order is not ours.
  bool WaitsForPeerAlone() const { return teardown_.disconn_left() && send_.empty(); }
  // The streams run, and nothing else is going on: nothing is to be said but payload, adverts of
  // ours, answers to the peer's and news of credits, and no timer but theirs is set.
  bool FindCalm() const {
    return phase_ == Phase::kEstablished && !speaks_first_ && !waits_for_first_ &&
           !suspend_.freezes() && !resize_in_.pending() && resize_out_.settled() &&
           !source_.cancelling() && sink_.idle() && writer_.idle() && !send_.has_urgent() &&
           !teardown_.shut() && !teardown_.peer_shut() && !acknowledgement_due_ &&
           !teardown_.disconn_left() && TimersStand() && close_armed_ == kTimeInfinite &&
           suspend_armed_ == kTimeInfinite && modes_.receive() != Mode::kPipelined &&
           mode_policy_.Rests(modes_.send(), modes_.receive(), 0);
  }

  Config config_;
  PeerParameters peer_;
  uint32_t reads_out_max_ = 0;
  bool peer_may_read_ = false;
  Phase phase_ = Phase::kIdle;
  Outcome cause_ = Outcome::kDone;  // the root cause
  const char* reason_ = "";
  Time now_{};

  // The parts.
  Credits credits_;
  SendQueue send_;
  SourceAdverts source_;
  ReceiveQueue receive_;
  AdvertReader reader_;
  SinkAdverts sink_;
  AdvertWriter writer_;
  Modes modes_;
  ModePolicy mode_policy_;
  AdaptiveThreshold threshold_;  // of sends that ask for it
  Teardown teardown_;
  UrgentOut urgent_out_;
  UrgentIn urgent_in_;
  ResizeRequest resize_out_;
  ResizeAnswer resize_in_;
  Suspend suspend_;
  ReceiveBuffers buffers_;

  GrowingRing<SendKind, 64> posted_sends_;  // not finished, in order
  GrowingRing<MessageArrived> early_;       // arrived before the queue pair was reported ready
  bool speaks_first_ = false;               // a bare Data is owed before anything else [R2.7.5]
  bool waits_for_first_ = false;      // nothing may leave before a message has arrived [R2.7.6]
  bool adverts_crossed_ = false;      // adverts of both sides have met with no receive posted
  bool sink_adverts_enabled_ = true;  // the peer writes to what it is shown
  bool stalled_ = false;              // payload waits for credits
  // FindCalm(), remembered from the end of one step to the next. What may change it clears it:
  // each input but those that Take lists, and what these lead to that is rare.
  bool calm_ = false;
  bool acknowledgement_due_ = false;
  std::optional<AskCancel> must_end_;  // with this step: it was cancelled to abort otherwise
  bool disconnect_asked_ = false;
  bool reported_closed_ = false;
  std::optional<Time> acknowledge_at_;  // for payload that no message of ours has acknowledged
  bool acknowledge_armed_ = false;
  Time close_armed_ = kTimeInfinite;
  Time suspend_armed_ = kTimeInfinite;
  // Not after the first time at which something taken back is overdue.
  Time cancel_due_ = kTimeInfinite;
  Time cancel_armed_ = kTimeInfinite;
  Time window_armed_ = kTimeInfinite;  // the next look whether anything has arrived
  uint32_t window_seen_ = 0;           // MSeq of the last message at the last look
  Counters counters_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_CONNECTION_STATE_H_
