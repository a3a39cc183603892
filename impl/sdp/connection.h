#ifndef ESDP_IMPL_SDP_CONNECTION_H_
#define ESDP_IMPL_SDP_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/base/time.h"
#include "impl/sdp/flow/outgoing.h"
#include "impl/sdp/inbound/inbound_half.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/config.h"
#include "impl/sdp/interface/counters.h"
#include "impl/sdp/interface/input.h"
#include "impl/sdp/lifecycle/delivery_modes.h"
#include "impl/sdp/lifecycle/handshake.h"
#include "impl/sdp/lifecycle/machines.h"
#include "impl/sdp/lifecycle/suspend.h"
#include "impl/sdp/lifecycle/teardown.h"
#include "impl/sdp/outbound/outbound_half.h"
#include "impl/sdp/owed.h"
#include "impl/sdp/readiness_watch.h"

namespace esdp::sdp {

// One SDP connection: a state machine without I/O.
//
//   One door:  Step takes one input and the time, and replaces actions. Nothing else is read or
//              called; payload is never touched; the same inputs give the same actions.
//   Value:     copyable; digest() is equal for equal states.
//   Checks:    after each step the invariants are checked. One that fails ends the connection with
//              kInternal.
//   Time:      must not run backwards between inputs.
//
// It keeps the phase and the end, and arbitrates between its two halves, which know nothing of each
// other. What leaves is pulled: behind each input what is owed is gone through in one order
// (SendOwed), as far as credits and send slots go, so no message is made before it may leave.
class Connection {
 public:
  explicit Connection(const Config& config)
      : handshake_(config),
        outgoing_(config),
        inbound_(config),
        readiness_watch_(config.watch_readiness) {}

  void Step(const Input& input, Time now, Actions& actions);
  // A Step with this would copy it, send it and finish it, whatever the operation's name.
  bool MaySendImmediate(const AskSend& ask) const;

  // No operation is pending and ReportClosed has been given.
  bool closed() const { return teardown_.reported(); }
  Phase phase() const { return phase_; }
  const Counters& counters() const { return counters_; }
  Readiness readiness() const;
  // Arrived or shown to us, and no receive has taken them.
  uint64_t unread_bytes() const { return inbound_.unread_bytes(); }
  // Why this Hello is not of the peer that is to come back [12], or nullptr. For any time.
  const char* CheckResumption(const wire::Message& hello) const;
  std::optional<uint32_t> oldest_sink_key() const { return inbound_.oldest_sink_key(); }
  uint64_t digest() const;

 private:
  // --- what each message goes through ---
  // True: nothing but the two streams has changed.
  bool Take(const Input& input, Actions& actions);
  void TakeRare(const Input& input, Actions& actions);
  bool On(const MessageArrived& arrived, Actions& actions);
  bool Receive(const MessageArrived& arrived, Actions& actions);
  const char* CheckArrival(const MessageArrived& arrived) const;
  bool OnSrcAvail(const wire::SrcAvail& advert, const MessageArrived& arrived, Actions& actions);
  void OnRdmaRdCompl(const MessageArrived& arrived, Actions& actions);
  void On(const SendFinished& finished, Actions& actions);
  void On(const ReadFinished& finished, Actions& actions);
  void On(const Exposed& exposed, Actions& actions);
  void On(const Withdrawn& withdrawn, Actions& actions);
  bool On(const AskSend& ask, Actions& actions);
  void On(const AskReceive& ask, Actions& actions);
  void Deliver(Actions& actions);
  OutboundHalf::SourceTerms TermsOfSourceAdverts() const;
  bool CopySmall(Actions& actions);
  void SendOwed(bool steady, Actions& actions);
  void Advance(bool steady, Actions& actions);
  [[gnu::noinline]] void AdvanceRare(Actions& actions);
  [[gnu::noinline]] void DeliverRare(Actions& actions);
  bool InvariantsHold() const;
  // --- what is owed beside the streams ---
  [[gnu::noinline]] Owed AskWhatIsOwed() const;
  [[gnu::noinline]] void NoteDuties();
  bool SendRare(Duty first, Duty last, bool may_advertise, Actions& actions);
  bool SendDuties(Duty first, Duty last, bool may_advertise, Actions& actions);
  bool SendDuty(Duty duty, bool may_advertise, Actions& actions);
  void SendReadAnswers(Actions& actions);
  void SendModeChanges(bool may_advertise, Actions& actions);
  void SendDisConn(Actions& actions);
  void ChangeWindow(Actions& actions);
  void AdvanceNotOpen(Actions& actions);
  void FinishRare(Actions& actions);
  void ArmTimers(Actions& actions);
  bool TimersStand() const;  // open, and no timer has to be set anew

  // --- messages of the peer that are rare ---
  bool ReceiveRare(const MessageArrived& arrived, Actions& actions);
  void ReceiveWhileNotOpen(const MessageArrived& arrived, Actions& actions);
  bool OnSinkAvail(const wire::SinkAvail& advert, const MessageArrived& arrived, Actions& actions);
  AdvertWriter::Legality LegalityOfSinkAvail() const;
  void OnModeChange(const wire::ModeChange& change, Actions& actions);
  void OnChRcvBuf(const wire::ChRcvBuf& request, Actions& actions);
  void OnDisConn(Actions& actions);
  // [R17.3] User bytes that may not come, in any message.
  bool RefusesPayload(Actions& actions) {
    if (!teardown_.peer_shut()) [[likely]]
      return false;
    Fail(Outcome::kPeerProtocol, "data behind DisConn", actions);
    return true;
  }

  // --- set-up, what is asked, timers, and the end ---
  void On(const AskConnect& ask, Actions& actions);
  void On(const HelloArrived& arrived, Actions& actions);
  void On(const HelloRefused& refused, Actions& actions);
  void On(const Established& established, Actions& actions);
  void On(const ConnectFailed& failed, Actions& actions);
  void On(const MessageRefused& refused, Actions& actions);
  void On(const WriteFinished& finished, Actions& actions);
  void On(const ConnectionLost& lost, Actions& actions);
  void On(const ExposeFailed& failed, Actions& actions);
  void On(const ReceivesPrepared& prepared, Actions& actions);
  void On(const AskUrgent& ask, Actions& actions);
  void On(const AskCancel& ask, Actions& actions);
  void On(const AskMode& ask, Actions& actions);
  void On(const WatchReadiness& watch, Actions& actions);
  void On(const AskShutdown& ask, Actions& actions);
  void On(const AskClose& ask, Actions& actions);
  void On(const TimerFired& fired, Actions& actions);
  void OnCancelTimer(Actions& actions);
  void EndOrAbort(Actions& actions);
  bool Move(PhaseCue cue);
  void StartCarrying(const Established& established);
  void ReceiveEarly(Actions& actions);
  // The root cause is given once; later ones change nothing.
  void Fail(Outcome cause, const char* reason, Actions& actions);
  void End(Actions& actions);
  void MaybeReportClosed(Actions& actions);
  bool is_over() const { return phase_ == Phase::kAborting || phase_ == Phase::kClosed; }
  // What is left of a close in order is not ours.
  bool WaitsForPeerAlone() const { return teardown_.disconn_left() && outbound_.empty(); }
  // A new queue pair's receives are those that its Hello announces, until it is ready.
  bool MayPostReceives() const { return phase_ <= Phase::kSuspending; }
  // [R5.13] Adverts of either kind that may yet be outstanding.
  size_t AdvertRoom() const;
  // --- to a new queue pair [12] ---
  void On(const AskSuspend& ask, Actions& actions);
  void OnSuspComm(const wire::SuspComm& message, Actions& actions);
  bool MoveGoesFirst() const { return suspend_.GoesFirst(inbound_.buffers().has_spare()); }
  void SuspendOut(bool may_advertise, Actions& actions);
  void AdvanceSuspended(Actions& actions);
  void LeaveQueuePair(Actions& actions);
  void ForgetQueuePair(Actions& actions);
  void SendFarewell(Actions& actions);
  void OnResumptionHello(const wire::Message& hello, Actions& actions);
  void Resume(const Established& established, Actions& actions);

  Handshake handshake_;
  Phase phase_ = Phase::kIdle;

  Outgoing outgoing_;
  OutboundHalf outbound_;
  InboundHalf inbound_;
  DeliveryModes modes_;
  Teardown teardown_;
  Suspend suspend_;

  // What there is to do beside the streams. It is asked for anew behind each step that has touched
  // more than them; empty is the steady state.
  Owed owed_{Duty::kPhase};
  std::optional<AskCancel> must_end_;  // with this step: it was cancelled to abort otherwise
  ReadinessWatch readiness_watch_;

  // Not after the first time at which something taken back is overdue.
  Time cancel_due_ = kTimeInfinite;
  Time cancel_armed_ = kTimeInfinite;
  Counters counters_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_CONNECTION_H_
