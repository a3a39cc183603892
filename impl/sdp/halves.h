#ifndef ESDP_IMPL_SDP_HALVES_H_
#define ESDP_IMPL_SDP_HALVES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "impl/base/digest.h"
#include "impl/base/time.h"
#include "impl/sdp/flow/outgoing.h"
#include "impl/sdp/inbound/inbound_half.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/config.h"
#include "impl/sdp/interface/counters.h"
#include "impl/sdp/interface/input.h"
#include "impl/sdp/lifecycle/delivery_modes.h"
#include "impl/sdp/lifecycle/handshake.h"
#include "impl/sdp/outbound/outbound_half.h"
#include "impl/sdp/owed.h"

namespace esdp::sdp {

// Both half-connections of a connection, the flow and the delivery modes that they have in common,
// and arbitration: what either needs of the other, and in which order they send.
//
// It knows neither the phase nor the cause of an end; how far the connection is comes as Terms, and
// the set of what is owed as Owed, which it brings up to date for its own duties. What it answers of
// the peer's messages is a violation of the protocol as text, or nullptr; of what the fabric says, a
// fault of this side.
class Halves {
 public:
  // As it is while nothing goes on but the streams.
  struct Terms {
    bool may_read = true;        // reads may start
    bool may_read_last = false;  // or that, but no more once there is a spare receive buffer
    bool may_post = true;        // receive buffers may be posted
    bool shut = false;           // no send is taken any more
    bool disconn_sent = false;   // our stream has ended
    bool peer_shut = false;      // the peer's has
    bool closing = false;        // the application reads no more
  };

  explicit Halves(const Config& config)
      : outgoing_(config), inbound_(config), cancel_grace_(config.cancel_grace) {}
  // A queue pair, the first or a later one, is ready.
  void Start(const Config& config, const PeerParameters& peer, const Established& established);
  // [R12.6], [R12.7] It is gone. Everything sent has arrived, everything received is here, every
  // advert is void.
  void OnQueuePairLeft(Actions& actions);
  // Receive buffers, all at the start and later those that are free. So many are posted then.
  uint16_t PostAllReceives(Actions& actions);
  uint16_t PostFreeReceives(Actions& actions);

  // --- to be looked at; what is not const is the connection's own messages and the time ---
  Outgoing& outgoing() { return outgoing_; }
  const Outgoing& outgoing() const { return outgoing_; }
  const OutboundHalf& outbound() const { return outbound_; }
  const InboundHalf& inbound() const { return inbound_; }
  Counters& counters() { return counters_; }
  const Counters& counters() const { return counters_; }
  Time now() const { return outgoing_.now(); }
  bool offering() const { return outbound_.offering() || inbound_.offering(); }

  // --- the application ---
  bool MaySendImmediate(const AskSend& ask) const;
  void SendImmediate(const AskSend& ask, Actions& actions) {
    outbound_.SendImmediate(ask, outgoing_, actions, counters_);
  }
  void Ask(const AskSend& ask, bool shut) {
    if (shut) return outbound_.AskRefused(ask, Outcome::kShutDown);
    outbound_.Ask(ask, outgoing_.now(), counters_);
  }
  void Ask(const AskReceive& ask, bool closing) {
    closing ? inbound_.AskRefused(ask, Outcome::kShutDown) : inbound_.Ask(ask);
  }
  void Ask(const AskUrgent& ask, Actions& actions) {
    inbound_.urgent().Await(ask.operation, actions);
  }
  void Want(const AskMode& ask) { modes_.Want(ask.send, ask.receive); }
  void Cancel(const AskCancel& ask, Actions& actions);
  // Why it is still there, or nullptr if it has ended.
  const char* WhyNotEnded(const AskCancel& cancelled) const;
  void CancelReceives(Actions& actions) { inbound_.CancelAll(Outcome::kShutDown, actions); }

  // --- the peer [17] ---
  // Of any message. `unexpected`: why the connection does not take it, or nullptr.
  const char* OnHeader(const MessageArrived& arrived, const char* unexpected, Actions& actions);
  // What it took of the peer's credits may end a turn: whether a change of their number is due.
  bool EndsTurn(const MessageArrived& arrived);
  using Arrival = InboundHalf::Arrival;
  // `ended`: the peer's stream is over.
  Arrival OnData(const MessageArrived& arrived, bool ended, Actions& actions);
  Arrival OnSrcAvail(const MessageArrived& arrived, bool ended, Actions& actions);
  const char* OnRdmaRdCompl(const MessageArrived& arrived, Actions& actions);
  Arrival OnRare(const MessageArrived& arrived, const Terms& terms, Actions& actions);
  void OnDisConn(Actions& actions);
  void OnDisConnPosted() { outbound_.DropSinkAdverts(); }  // [8.5]
  // What came in this buffer is dealt with; `keeps`: but for unread bytes.
  void OnDone(ReceiveBuffer buffer, bool keeps, Actions& actions) {
    inbound_.buffers().OnDone(buffer, keeps, outgoing_.credits(), actions);
  }

  // --- the fabric; `over`: the connection is ---
  Outgoing::Kind OnSendFinished();
  const char* OnReadFinished();
  const char* OnWriteFinished();
  const char* OnExposed(const Exposed& exposed, bool over, Actions& actions);
  const char* OnExposeFailed(const ExposeFailed& failed, bool over);
  void OnWithdrawn(const Withdrawn& withdrawn, Actions& actions) {
    inbound_.OnWithdrawn(withdrawn.advert, actions);
    outbound_.OnWithdrawn(withdrawn.advert);
  }
  void OnPrepared(const ReceivesPrepared& prepared, bool may_post, Actions& actions);

  // --- what reaches receives ---
  bool MayDeliver(bool end_of_stream) const { return inbound_.MayDeliver(end_of_stream); }
  void Deliver(const Terms& terms, Owed& owed, Actions& actions);
  void Discard(Actions& actions) { inbound_.Discard(outgoing_, actions); }

  // --- what leaves, in this order; `steady`: nothing is owed but what the streams bring ---
  void AskWhatIsOwed(Owed& owed) const;
  void NoteDuties(Owed& owed);
  void SendFirst(Owed& owed, Actions& actions);
  // Copies small sends that wait. Whether SrcAvails are possible.
  bool CopySmall(Actions& actions);
  // All that is for the streams. False: nothing else may leave now.
  bool SendDue(bool steady, bool may_advertise, const Terms& terms, Owed& owed, Actions& actions);
  void SendCredits(bool steady, Actions& actions);
  // Instead of SendDue: what is in process ends, and nothing is begun. True: it has, and a message
  // may leave.
  bool ComeToRest(bool may_advertise, Actions& actions);
  // Our last message on this queue pair is out, but a peer without credits could not answer.
  void StayAtRest(Actions& actions);
  void AskForWindow(Actions& actions);

  // --- what ends with a step ---
  void FinishReady(Actions& actions) { outbound_.FinishReady(counters_, actions); }
  void NoteAnnouncement(const Actions& actions);
  void LearnFromEnds(const Actions& actions) {
    if (outbound_.learns()) outbound_.LearnFromEnds(actions, outgoing_.now(), counters_);
  }
  // The connection is over: everything has arrived (kDone), or what is pending ends with `cause`.
  // `input_kept`: what has arrived stays readable.
  void End(Outcome cause, bool input_kept, const Terms& terms, Owed& owed, Actions& actions);
  void FinishReceives(Outcome outcome, Actions& actions);

  // --- timers ---
  bool pipelined() const { return modes_.pipelined(); }
  bool TimersStand() const { return cancel_due_ == cancel_armed_ && outgoing_.TimerStands(); }
  void ArmTimers(bool over, Actions& actions);
  // True: what was cancelled has not come back from the peer in time.
  bool OnCancelTimer();
  void OnWindowTimer(bool open, Actions& actions);

  bool InvariantsHold() const;
  void AddTo(Digest& digest) const;

 private:
  const char* CheckArrival(const MessageArrived& arrived) const;
  Arrival OnSinkAvail(const MessageArrived& arrived, const Terms& terms, Actions& actions);
  AdvertWriter::Legality LegalityOfSinkAvail(bool disconn_sent) const;
  const char* OnModeChange(const wire::ModeChange& change, Actions& actions);
  const char* OnChRcvBuf(const wire::ChRcvBuf& request, Actions& actions);

  // [R5.13] Adverts of either kind that may yet be outstanding.
  size_t AdvertRoom() const {
    const size_t out = outbound_.source_adverts() + inbound_.sink_adverts();
    return peer_adverts_max_ - std::min<size_t>(peer_adverts_max_, out);
  }
  OutboundHalf::SourceTerms TermsOfSourceAdverts() const;
  // Duties from `first` to `last`. False: nothing else may leave now.
  bool SendDuties(Duty first, Duty last, bool may_advertise, const Terms& terms, Owed& owed,
                  Actions& actions);
  bool SendDuty(Duty duty, bool may_advertise, const Terms& terms, Actions& actions);
  void SendReadAnswers(Actions& actions) {
    inbound_.SendReadAnswers(modes_.HintsFrom(), outgoing_, actions, counters_);
  }
  void SendModeChanges(bool may_advertise, const Terms& terms, Owed& owed, Actions& actions);

  Outgoing outgoing_;
  OutboundHalf outbound_;
  InboundHalf inbound_;
  DeliveryModes modes_;
  Counters counters_;

  uint16_t adverts_held_max_ = 0;  // the peer's, that we can hold
  uint16_t peer_adverts_max_ = 0;  // ours, that it can
  bool remote_invalidate_ = false;
  bool connecting_ = false;
  const Duration cancel_grace_;
  // Not after the first time at which something taken back is overdue.
  Time cancel_due_ = kTimeInfinite;
  Time cancel_armed_ = kTimeInfinite;
};

inline constexpr Halves::Terms kStreaming{};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_HALVES_H_
