#ifndef ESDP_IMPL_SDP_CONNECTION_H_
#define ESDP_IMPL_SDP_CONNECTION_H_

#include <cstdint>
#include <optional>

#include "impl/base/time.h"
#include "impl/sdp/halves.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/config.h"
#include "impl/sdp/interface/counters.h"
#include "impl/sdp/interface/input.h"
#include "impl/sdp/lifecycle/handshake.h"
#include "impl/sdp/lifecycle/machines.h"
#include "impl/sdp/lifecycle/suspend.h"
#include "impl/sdp/lifecycle/teardown.h"
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
// It keeps the phase and the end; the data of an open connection is the halves'. What leaves is
// pulled: behind each input what is owed is gone through in one order (SendOwed), as far as credits
// and send slots go, so no message is made before it may leave.
class Connection {
 public:
  explicit Connection(const Config& config)
      : handshake_(config), halves_(config), readiness_watch_(config.watch_readiness) {}

  void Step(const Input& input, Time now, Actions& actions);
  // A Step with this would copy it, send it and finish it, whatever the operation's name.
  bool MaySendImmediate(const AskSend& ask) const;

  // No operation is pending and ReportClosed has been given.
  bool closed() const { return teardown_.reported(); }
  Phase phase() const { return phase_; }
  const Counters& counters() const { return halves_.counters(); }
  Readiness readiness() const;
  // Closed: what the peer has sent is whole, and receives still take it.
  bool input_kept() const { return teardown_.input_kept(); }
  // Arrived or shown to us, and no receive has taken them.
  uint64_t unread_bytes() const { return halves_.inbound().unread_bytes(); }
  // Why this Hello is not of the peer that is to come back [12], or nullptr. For any time.
  const char* CheckResumption(const wire::Message& hello) const;
  std::optional<uint32_t> oldest_sink_key() const { return halves_.inbound().oldest_sink_key(); }
  uint64_t digest() const;

 private:
  // --- what each message goes through ---
  // True: nothing but the two streams has changed.
  bool Take(const Input& input, Actions& actions);
  void TakeRare(const Input& input, Actions& actions);
  bool On(const MessageArrived& arrived, Actions& actions);
  void ReceiveNotOpen(const MessageArrived& arrived, Actions& actions);
  Halves::Arrival ReceiveRare(const MessageArrived& arrived, Actions& actions);
  bool On(const AskSend& ask, Actions& actions);
  void On(const AskReceive& ask, Actions& actions);
  void On(const SendFinished& finished, Actions& actions);
  void On(const ReadFinished& finished, Actions& actions);
  void On(const Exposed& exposed, Actions& actions);
  void On(const Withdrawn& withdrawn, Actions& actions) { halves_.OnWithdrawn(withdrawn, actions); }
  void SendOwed(bool steady, Actions& actions);
  void Advance(bool steady, Actions& actions);
  [[gnu::noinline]] void AdvanceRare(Actions& actions);
  [[gnu::noinline]] void DeliverRare(Actions& actions);
  // --- what is rare in a step ---
  Halves::Terms TermsNow() const;
  void Deliver(Actions& actions) { halves_.Deliver(TermsNow(), owed_, actions); }
  [[gnu::noinline]] Owed AskWhatIsOwed() const;
  [[gnu::noinline]] void NoteDuties();
  // False: nothing else may leave now.
  bool GiveWay(bool may_advertise, Actions& actions);
  bool SendDisConn(Actions& actions);
  void AdvanceNotOpen(Actions& actions);
  void FinishRare(Actions& actions);
  bool TimersStand() const;  // open, and no timer has to be set anew
  void ArmTimers(Actions& actions);

  // --- set-up ---
  void On(const AskConnect& ask, Actions& actions);
  void On(const HelloArrived& arrived, Actions& actions);
  void On(const HelloRefused& refused, Actions& actions);
  void On(const Established& established, Actions& actions);
  void On(const ConnectFailed& failed, Actions& actions);
  // --- what is asked, and timers ---
  void On(const AskUrgent& ask, Actions& actions);
  void On(const AskCancel& ask, Actions& actions);
  void On(const AskShutdown& ask, Actions& actions);
  void On(const AskClose& ask, Actions& actions);
  void On(const TimerFired& fired, Actions& actions);
  // --- to a new queue pair [12] ---
  void On(const AskSuspend& ask, Actions& actions);
  const char* OnSuspComm(const wire::SuspComm& message);
  void SuspendOut(bool may_advertise, Actions& actions);
  void LeaveQueuePair(Actions& actions);
  void OnHelloOfReturn(const wire::Message& hello, Actions& actions);
  // --- the end ---
  const char* OnDisConn(Actions& actions);
  void On(const ConnectionLost& lost, Actions& actions);
  bool Move(PhaseCue cue);
  // The root cause is given once; later ones change nothing.
  void Fail(Outcome cause, const char* reason, Actions& actions);
  // `reason` nullptr: there is none.
  void FailIf(Outcome cause, const char* reason, Actions& actions) {
    if (reason != nullptr) [[unlikely]]
      Fail(cause, reason, actions);
  }
  void End(Actions& actions);
  void MaybeReportClosed(Actions& actions);
  bool MoveGoesFirst() const { return suspend_.GoesFirst(halves_.inbound().buffers().has_spare()); }
  // What is left of a close in order is not ours.
  bool WaitsForPeerAlone() const { return teardown_.disconn_left() && halves_.outbound().empty(); }

  Handshake handshake_;
  Phase phase_ = Phase::kIdle;
  Halves halves_;
  Teardown teardown_;
  Suspend suspend_;

  // What there is to do beside the streams. It is asked for anew behind each step that has touched
  // more than them; empty is the steady state, and so Established.
  Owed owed_{Duty::kPhase};
  std::optional<AskCancel> must_end_;  // with this step: it was cancelled to abort otherwise
  ReadinessWatch readiness_watch_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_CONNECTION_H_
