#include <variant>

#include "impl/sdp/common/limits.h"
#include "impl/sdp/connection.h"

// The way to a new queue pair [12]: finish what is in process, say so, leave the old one, and start
// on the new one as a new connection does, with the streams where they were.

namespace esdp::sdp {

// --- what is asked and said ---

void Connection::On(const AskSuspend& ask, Actions& actions) {
  Outcome refusal = Outcome::kDone;
  if (phase_ == Phase::kClosed) {
    refusal = teardown_.outcome();
  } else if (phase_ == Phase::kAborting || phase_ == Phase::kTimeWait ||
             phase_ == Phase::kLastAck || teardown_.closing()) {
    refusal = Outcome::kShutDown;
  } else if (phase_ < Phase::kEstablished || !handshake_.MayMovePeer() || suspend_.pending()) {
    refusal = Outcome::kUnsupported;
  }
  if (refusal != Outcome::kDone) return FinishNow(ask.operation, refusal, actions);
  suspend_.OnAsk(ask);
}

void Connection::OnSuspComm(const wire::SuspComm& message, Actions& actions) {
  // Both DisConns have crossed it: the peer ends the connection.
  if (phase_ == Phase::kLastAck) return;
  const char* refusal = handshake_.RefusalOfMove();
  if (refusal == nullptr && !suspend_.TakeMove(outgoing_.now(), handshake_.config().moves_max)) {
    refusal = "SuspComm: too many moves";
  }
  if (refusal != nullptr) {
    Fail(Outcome::kPeerProtocol, refusal, actions);
    return;
  }
  const Time until = AddSaturating(outgoing_.now(), handshake_.config().suspend_wait);
  const Suspend::Answer answer =
      suspend_.OnSuspComm(message, handshake_.config().connecting, until);
  if (answer.violation != nullptr) return Fail(Outcome::kPeerProtocol, answer.violation, actions);
  if (answer.responds) Move(PhaseCue::kSuspCommArrived);
}

// --- before the old queue pair is left ---

void Connection::SuspendOut(bool may_advertise, Actions& actions) {
  inbound_.UseInlineBytes();
  if (suspend_.initiator()) {
    // SuspComm is out and nothing may follow it, but a peer without credits could not answer.
    if (outgoing_.credits().MustUpdate() && outgoing_.HasSlot(0)) {
      outgoing_.PostBare(actions, counters_);
    }
    return;
  }
  SendReadAnswers(actions);
  // [R12.1] Partial fills are completed as for a cancel.
  if (outbound_.in_process()) outbound_.OnSinkAvailCancel();
  outbound_.SendSinkCancelAck(may_advertise, !inbound_.holds_acknowledgement(), outgoing_, actions,
                              counters_);
  inbound_.SendSinkCancel(outgoing_, actions, counters_);
  // [R12.1], [R12.3] Reads that run are finished and reported. An advert with nothing running is
  // void afterwards: its inline bytes count, the rest is the source's again.
  const bool in_process = outbound_.in_process() || outbound_.write_in_flight() ||
                          inbound_.read_in_flight() || inbound_.owes_read_answer();
  const bool ready = !in_process && outgoing_.MaySendControl();
  if (suspend_.owes_susp_comm_ack() && ready && inbound_.FreeReceives() >= kBuffersMin) {
    suspend_.TakeSuspCommAck();
    outgoing_.Post(wire::SuspCommAck{}, Outgoing::Kind::kControl, actions, counters_);
    Move(PhaseCue::kSuspCommAckSent);
  } else if (suspend_.owes_susp_comm() && ready && Move(PhaseCue::kSuspCommSent)) {
    const wire::SuspComm message = suspend_.TakeSuspComm();
    NoteDuties();
    outgoing_.Post(message, Outgoing::Kind::kControl, actions, counters_);
  } else {
    outgoing_.SendCredits(actions, counters_);
  }
}

void Connection::AdvanceSuspended(Actions& actions) {
  Deliver(actions);
  // [R12.3] The responder ends the queue pair, when SuspCommAck has left.
  if (phase_ != Phase::kSuspended || !suspend_.responder()) return;
  if (!outgoing_.AnythingPosted()) teardown_.Disconnect(actions);
}

// --- without a queue pair ---

// [R12.4]
void Connection::LeaveQueuePair(Actions& actions) {
  ForgetQueuePair(actions);
  if (phase_ != Phase::kResuming) return;
  handshake_.OnConnectingAnew(suspend_.responder());
  if (suspend_.initiator()) {
    actions.emplace_back(AwaitHello{});
    return;
  }
  actions.emplace_back(ReplaceQueuePair{});
  inbound_.buffers().PostFree(outgoing_.credits(), actions);
  const uint16_t posted = outgoing_.credits().posted();
  actions.emplace_back(StartConnect{handshake_.HelloOfReturn(posted), suspend_.peer_port()});
}

// What has ended without a queue pair the peer would learn at its deadline only.
void Connection::SendFarewell(Actions& actions) {
  handshake_.OnQueuePairLeft(inbound_.buffers().bytes());
  const uint16_t posted = handshake_.config().receive_buffers;
  actions.emplace_back(Farewell{handshake_.HelloOfReturn(posted), suspend_.peer_port()});
}

// [R12.6], [R12.7] Everything sent has arrived, everything received is here, every advert is void.
void Connection::ForgetQueuePair(Actions& actions) {
  if (outgoing_.DisConnPosted()) teardown_.OnDisConnLeft();
  outbound_.OnQueuePairLeft(actions);
  inbound_.OnQueuePairLeft(actions);
  modes_.OnQueuePairLeft();
  outgoing_.OnQueuePairLeft();
  handshake_.OnQueuePairLeft(inbound_.buffers().bytes());
  teardown_.OnQueuePairLeft();
}

// --- on the new one ---

const char* Connection::CheckResumption(const wire::Message& hello) const {
  return suspend_.initiator() ? handshake_.CheckReturn(hello) : "Hello: none is expected";
}

void Connection::OnResumptionHello(const wire::Message& hello, Actions& actions) {
  const char* refusal = CheckResumption(hello);
  if (refusal == nullptr) {
    refusal = Handshake::CheckHelloOfReturn(hello, outbound_.message_bytes());
  }
  if (refusal == nullptr && inbound_.FreeReceives() < kBuffersMin) {
    refusal = "Bufs: the peer has overdrawn its credits";
  }
  // Once answered, another request is none of this connection's.
  if (refusal == nullptr && outgoing_.credits().posted() > 0) refusal = "Hello: a second one";
  if (refusal != nullptr) {
    actions.emplace_back(RejectConnection{refusal});
    return;
  }
  handshake_.OnHello(hello);
  actions.emplace_back(ReplaceQueuePair{});
  inbound_.buffers().PostFree(outgoing_.credits(), actions);
  actions.emplace_back(AcceptConnection{handshake_.HelloAck(outgoing_.credits().posted())});
}

void Connection::Resume(const Established& established, Actions& actions) {
  if (handshake_.config().connecting) {
    const char* refusal = handshake_.OnHelloAck(established.hello_ack, outbound_.message_bytes());
    if (refusal != nullptr) return Fail(Outcome::kHandshakeRefused, refusal, actions);
  }
  Move(teardown_.disconn_sent() ? PhaseCue::kResumedShut
       : teardown_.peer_shut()  ? PhaseCue::kResumedPeerShut
                                : PhaseCue::kResumed);
  StartCarrying(established);
  suspend_.OnResumed(actions);
  inbound_.buffers().PostFree(outgoing_.credits(), actions);
  ++counters_.resumptions;
  ReceiveEarly(actions);
}

}  // namespace esdp::sdp
