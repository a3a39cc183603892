#ifndef ESDP_IMPL_SDP_CONNECTION_H_
#define ESDP_IMPL_SDP_CONNECTION_H_

#include <cstdint>

#include "impl/base/time.h"
#include "impl/sdp/connection_state.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/input.h"

namespace esdp::sdp {

// One SDP connection: a state machine without I/O.
//
//   One door:  Step takes one input and the time, and appends actions. Nothing else is read or
//              called; payload is never touched; the same inputs give the same actions.
//   Value:     copyable; digest() is equal for equal states.
//   Checks:    after each step the invariants are checked. One that fails ends the connection with
//              kInternal.
//   Time:      must not run backwards between inputs.
//
// The parts know nothing of each other. What leaves is pulled: after each input the connection asks
// them, in a fixed order, what they would send now, as far as credits and send slots go, so no
// message is made before it may leave.
class Connection : private ConnectionState {
 public:
  explicit Connection(const Config& config) : ConnectionState(config) {}

  void Step(const Input& input, Time now, Actions& actions);
  // A Step with this would copy it, send it and finish it, whatever the operation's name.
  bool MaySendImmediate(const AskSend& ask) const;

  // No operation is pending and ReportClosed has been given.
  bool closed() const { return reported_closed_; }
  Phase phase() const { return phase_; }
  const Counters& counters() const { return counters_; }
  // Why this Hello is not of the peer that is to come back [12], or nullptr. For any time.
  const char* CheckResumption(const wire::Message& hello) const;
  std::optional<uint32_t> oldest_sink_key() const { return sink_.oldest_key(); }
  uint64_t digest() const;

 private:
  // --- connection.cc: what the fabric says, and the end ---
  void On(const AskConnect& ask, Actions& actions);
  void On(const HelloArrived& arrived, Actions& actions);
  void On(const HelloRefused& refused, Actions& actions);
  void On(const Established& established, Actions& actions);
  void On(const ConnectFailed& failed, Actions& actions);
  void On(const MessageRefused& refused, Actions& actions);
  void On(const SendFinished& finished, Actions& actions);
  void On(const ReadFinished& finished, Actions& actions);
  void On(const WriteFinished& finished, Actions& actions);
  void On(const ConnectionLost& lost, Actions& actions);

  bool Move(PhaseCue cue);
  void StartCarrying(const Established& established);
  void ReceiveEarly(Actions& actions);
  // The root cause is given once; later ones change nothing.
  void Fail(Outcome cause, const char* reason, Actions& actions);
  void End(Actions& actions);
  void MaybeReportClosed(Actions& actions);
  Outcome OutcomeAfterEnd() const;

  // --- application_requests.cc: what the application asks, answers, timers ---
  void On(const AskCancel& ask, Actions& actions);
  void EndOrAbort(Actions& actions);
  void OnCancelTimer(Actions& actions);
  void On(const AskMode& ask, Actions& actions);
  void On(const AskShutdown& ask, Actions& actions);
  void On(const AskClose& ask, Actions& actions);
  void On(const TimerFired& fired, Actions& actions);

  // --- adaptive_routes.cc ---
  void AskAdaptiveSend(AskSend ask);
  void LearnFromEnds(const Actions& actions, size_t first);

  // --- delivery.cc: our adverts, and the modes of both halves ---
  void On(const Exposed& exposed, Actions& actions);
  void On(const ExposeFailed& failed, Actions& actions);
  void On(const Withdrawn& withdrawn, Actions& actions);
  void OnRdmaRdCompl(const MessageArrived& arrived, Actions& actions);
  void OnSendSm(const MessageArrived& arrived, Actions& actions);
  void OnModeChange(const wire::ModeChange& change, Actions& actions);
  // [8.3, 5] A live SinkAvail wins: what is advertised goes back to the queue.
  void OverrideSourceAdverts(Actions& actions);
  size_t AdvertRoom() const;  // adverts of either kind that may yet be outstanding [5]
  bool MayAdvertise() const;  // the front piece may go that way, perhaps later
  bool MayOffer() const;      // now
  void OfferAdvert(Actions& actions);
  bool HintsPipelined() const;
  void SendSourceCancel(Actions& actions);
  void SendModeChanges(Actions& actions);
  void PostModeChange(const wire::ModeChange& change, Actions& actions);

  // --- urgent_routes.cc ---
  void On(const AskUrgent& ask, Actions& actions);
  void NoticeUrgent(wire::BaseHeader& header);
  void NoteUrgentLeft(wire::BaseHeader& header);
  void SendUrgentNotice(Actions& actions);

  // --- writing.cc: SinkAvails and RDMA Writes of both sides ---
  bool MayOfferSink() const;
  void OfferSink(Actions& actions);
  void OnSinkExposed(const Exposed& exposed, Actions& actions);
  bool MayRideAlong() const;
  bool TakenBySink(const MessageArrived& arrived, Actions& actions);
  void OnRdmaWrCompl(const MessageArrived& arrived, Actions& actions);
  void OnSinkCancelAck(const MessageArrived& arrived, Actions& actions);
  void DropSinkAdverts(Actions& actions);
  AdvertWriter::Legality LegalityOfSinkAvail() const;
  bool OnSinkAvail(const wire::SinkAvail& advert, const MessageArrived& arrived, Actions& actions);
  void SendSinkAnswers(Actions& actions);
  bool WritesHavePrecedence(Actions& actions);
  void SendWrites(Actions& actions);

  // --- resize_routes.cc ---
  void OnChRcvBuf(const wire::ChRcvBuf& request, Actions& actions);
  void OnChRcvBufAck(const wire::ChRcvBufAck&, const wire::BaseHeader& header, Actions& actions);
  void On(const ReceivesPrepared& prepared, Actions& actions);
  void ApplySize();
  void SendResize(Actions& actions);
  void ChangeWindow(Actions& actions);
  void OnWindowTimer(Actions& actions);

  // --- suspend_routes.cc: to a new queue pair [12] ---
  void On(const AskSuspend& ask, Actions& actions);
  void OnSuspComm(const wire::SuspComm& message, Actions& actions);
  void OnSuspCommAck();
  const char* CheckSilence(const MessageArrived& arrived) const;
  void OnMessageWhileSuspended(const MessageArrived& arrived, Actions& actions);
  bool Freezes() const;
  void SuspendOut(Actions& actions);
  bool TransfersInProcess() const;
  uint32_t FreeReceives() const;
  void AdvanceSuspended(Actions& actions);
  void LeaveQueuePair(Actions& actions);
  void ForgetQueuePair(Actions& actions);
  void SayFarewell(Actions& actions);
  void NoteAddresses(const PathAddresses& addresses);
  void OnResumptionHello(const wire::Message& hello, Actions& actions);
  void Resume(const Established& established, Actions& actions);
  void OnSuspendTimer(Actions& actions);
  void ArmSuspendTimer(Actions& actions);

  // --- arrival.cc: what the peer says ---
  void On(const MessageArrived& arrived, Actions& actions);
  void Receive(const MessageArrived& arrived, Actions& actions);
  [[gnu::noinline]] bool ReceiveRare(const MessageArrived& arrived, Actions& actions);
  [[gnu::noinline]] void ReceiveWhileNotOpen(const MessageArrived& arrived, Actions& actions);
  const char* CheckArrival(const MessageArrived& arrived) const;
  // Each returns true when it keeps the receive buffer.
  bool OnData(const MessageArrived& arrived, Actions& actions);
  bool OnSrcAvail(const wire::SrcAvail& advert, const MessageArrived& arrived, Actions& actions);
  const char* CheckSrcAvail(const MessageArrived& arrived) const;
  size_t HeldMax() const;
  void OnSrcAvailCancel(uint32_t sequence);
  void OnDisConn(Actions& actions);
  void OnOther(const wire::Body& body, Actions& actions);
  bool RefusesPayload(Actions& actions);
  void UseInlineBytes();

  // --- step.cc: what each message costs ---
  void On(const AskSend& ask, Actions& actions);
  void On(const AskReceive& ask, Actions& actions);
  void Take(const Input& input, Actions& actions);
  void TakeRare(const Input& input, Actions& actions);
  void Advance(Actions& actions);
  void AdvanceCalmly(Actions& actions);
  void SendOut(Actions& actions);
  void CopySmallSends(Actions& actions);
  void SendImmediate(const AskSend& ask, Actions& actions);
  bool SendBeforePayload(Actions& actions);
  void SendPayload(Actions& actions);
  void PostPayload(SendQueue::Next next, Actions& actions);
  bool InvariantsHold() const;

  // --- departure.cc: what follows from it ---
  [[gnu::noinline]] void MaybeDisconnect(Actions& actions);
  void Deliver(Actions& actions);
  bool ReadAdvert(Actions& actions);
  bool SettleInlineBytes(uint32_t first_read_bytes, Actions& actions);
  void RefuseAdvert();
  void DiscardInbound(Actions& actions);
  void SendAnswers(Actions& actions);
  void SendDisConn(Actions& actions);
  void SendUpdate(Actions& actions);
  void ArmTimers(Actions& actions);
  template <typename Body>
  Send& NewSend(const Body& body, Actions& actions) {
    Send& send = Append<Send>(actions);
    send.message.body.template emplace<Body>(body);
    if (send_.has_urgent()) NoticeUrgent(send.message.base);
    return send;
  }
  [[gnu::noinline]] void SendBare(Actions& actions);  // rare: not inlined where it is called
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_CONNECTION_H_
