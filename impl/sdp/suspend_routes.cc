#include <variant>

#include "impl/sdp/common/limits.h"
#include "impl/sdp/connection.h"

// The way to a new queue pair [12]: finish what is in process, say so, leave the old one, and start
// on the new one as a new connection does, with the streams where they were.

namespace esdp::sdp {
namespace {

// [R12.11]
bool MayMovePeer(const Config& config, const PeerParameters& peer) {
  if (config.as_deployed) return false;
  if (ReturnsAreGuarded(config, peer)) return peer.may_be_moved;
  return config.peer_moves == PeerMoves::kUnguarded;
}

// [R12.11] SuspComm has no answer that says no: a peer that asks for what it was told not to breaks
// the protocol.
const char* RefusalOfMove(const Config& config, const PeerParameters& peer) {
  if (config.peer_moves == PeerMoves::kRefused) return "SuspComm: this side is not to be moved";
  if (config.peer_moves == PeerMoves::kGuarded && !ReturnsAreGuarded(config, peer)) {
    return "SuspComm: from a peer that knows no return token";
  }
  return nullptr;
}

}  // namespace

// --- what is asked and said ---

void Connection::On(const AskSuspend& ask, Actions& actions) {
  Outcome refusal = Outcome::kDone;
  if (phase_ == Phase::kClosed) {
    refusal = OutcomeAfterEnd();
  } else if (phase_ == Phase::kAborting || phase_ == Phase::kTimeWait ||
             phase_ == Phase::kLastAck || teardown_.closing()) {
    refusal = Outcome::kShutDown;
  } else if (phase_ < Phase::kEstablished || peer_.max_adverts <= 1 ||
             !MayMovePeer(config_, peer_) || suspend_.pending()) {
    refusal = Outcome::kUnsupported;  // [19] a deployed peer ignores SuspComm, and never sends one
  }
  if (refusal == Outcome::kDone) {
    suspend_.OnAsk(ask);
    return;
  }
  FinishOperation finish;
  finish.operation = ask.operation;
  finish.outcome = refusal;
  actions.emplace_back(finish);
}

void Connection::OnSuspComm(const wire::SuspComm& message, Actions& actions) {
  // Both DisConns have crossed it: the peer ends the connection.
  if (phase_ == Phase::kLastAck) return;
  const char* refusal = RefusalOfMove(config_, peer_);
  if (refusal == nullptr && !suspend_.TakeMove(now_, config_.moves_max)) {
    refusal = "SuspComm: too many moves";
  }
  if (refusal != nullptr) {
    Fail(Outcome::kPeerProtocol, refusal, actions);
    return;
  }
  const Time until = AddSaturating(now_, config_.suspend_wait);
  switch (suspend_.OnSuspComm(message, config_.connecting, until)) {
    case Suspend::Answer::kRespond:
      Move(PhaseCue::kSuspCommArrived);
      return;
    case Suspend::Answer::kDisregard:
      return;
    case Suspend::Answer::kViolation:
      Fail(Outcome::kPeerProtocol, "SuspComm: a second one, or for port 0", actions);
      return;
  }
}

void Connection::OnSuspCommAck() {
  if (suspend_.OnSuspCommAck()) Move(PhaseCue::kSuspCommAckArrived);
}

// [R12.2] Behind SuspComm the peer says no more than this.
const char* Connection::CheckSilence(const MessageArrived& arrived) const {
  if (!suspend_.peer_is_silent()) return nullptr;
  const wire::Body& body = arrived.message.body;
  const bool bare = std::holds_alternative<wire::Data>(body) && arrived.payload_length == 0;
  const bool allowed = bare || std::holds_alternative<wire::SuspComm>(body) ||
                       std::holds_alternative<wire::SuspCommAck>(body) ||
                       std::holds_alternative<wire::AbortConn>(body);
  return allowed ? nullptr : "a message behind SuspComm";
}

// The queue pair is being ended: news of credits may still have been on their way.
void Connection::OnMessageWhileSuspended(const MessageArrived& arrived, Actions& actions) {
  const char* violation = CheckSilence(arrived);
  if (violation != nullptr) Fail(Outcome::kPeerProtocol, violation, actions);
}

// --- before the old queue pair is left ---

// [R12.1], [R12.3] Reads that run are finished and reported. An advert with nothing running is void
// afterwards: its inline bytes count, the rest is the source's again.
bool Connection::TransfersInProcess() const {
  return writer_.in_process() || writer_.writes_in_flight() > 0 || reader_.reads_in_flight() > 0 ||
         reader_.NextAnswer() != AdvertReader::Answer::kNone;
}

uint32_t Connection::FreeReceives() const {
  return buffers_.count() - receive_.BuffersHeldBelow(buffers_.count());
}

// What is on its way may leave us two receive buffers, but the next Hello has to announce three: a
// wish waits for a spare one. Unread bytes may hold it for long, so nothing waits for the wish.
bool Connection::Freezes() const {
  return suspend_.freezes() && !(suspend_.owes_susp_comm() && !buffers_.has_spare());
}

void Connection::SuspendOut(Actions& actions) {
  if (reader_.fresh()) UseInlineBytes();
  if (suspend_.initiator()) {
    // SuspComm is out and nothing may follow it, but a peer without credits could not answer.
    if (credits_.MustUpdate() && HasSlot(0)) SendBare(actions);
    return;
  }
  SendAnswers(actions);
  // [R12.1] Partial fills are completed as for a cancel.
  if (writer_.in_process()) writer_.OnSinkAvailCancel();
  SendSinkAnswers(actions);
  const bool ready = !TransfersInProcess() && MaySendControl();
  if (suspend_.owes_susp_comm_ack() && ready && FreeReceives() >= kBuffersMin) {
    suspend_.TakeSuspCommAck();
    Stamp(NewSend(wire::SuspCommAck{}, actions), SendKind::kControl, false);
    Move(PhaseCue::kSuspCommAckSent);
    return;
  }
  if (suspend_.owes_susp_comm() && ready && Move(PhaseCue::kSuspCommSent)) {
    Stamp(NewSend(suspend_.TakeSuspComm(), actions), SendKind::kControl, false);
    return;
  }
  SendUpdate(actions);
}

void Connection::AdvanceSuspended(Actions& actions) {
  Deliver(actions);
  // [R12.3] The responder ends the queue pair, when SuspCommAck has left.
  if (phase_ != Phase::kSuspended || !suspend_.responder()) return;
  if (!posted_sends_.empty() || disconnect_asked_) return;
  disconnect_asked_ = true;
  actions.emplace_back(Disconnect{true, Outcome::kDone, ""});
}

// --- without a queue pair ---

// [R12.4]
void Connection::LeaveQueuePair(Actions& actions) {
  ForgetQueuePair(actions);
  if (phase_ != Phase::kResuming) return;
  config_.connecting = suspend_.responder();
  if (suspend_.initiator()) {
    actions.emplace_back(AwaitHello{});
    return;
  }
  actions.emplace_back(ReplaceQueuePair{});
  buffers_.PostFree(resize_in_.size(), credits_, actions);
  actions.emplace_back(StartConnect{MakeHello(config_, credits_.posted(), config_.return_token),
                                    suspend_.peer_port()});
}

// What has ended without a queue pair the peer would learn at its deadline only.
void Connection::SayFarewell(Actions& actions) {
  Config config = config_;
  config.receive_buffer_bytes = resize_in_.size();
  actions.emplace_back(Farewell{MakeHello(config, config.receive_buffers, config.return_token),
                                suspend_.peer_port()});
}

// [R12.6], [R12.7] Everything sent has arrived, everything received is here, every advert is void.
void Connection::ForgetQueuePair(Actions& actions) {
  for (const SendKind kind : posted_sends_) {
    if (kind == SendKind::kDisConn) teardown_.OnDisConnLeft();
  }
  posted_sends_.clear();
  send_.OnQueuePairLeft();
  const bool advertised = source_.outstanding();
  while (const auto number = source_.OnQueuePairLeft()) send_.OnWithdrawn(*number);
  if (advertised) send_.OnAdvertsRevoked(actions);
  reader_ = AdvertReader{};
  modes_ = Modes{};
  sink_.OnQueuePairLeft();
  receive_.OnAllWithdrawn();
  receive_.OnAdvertsDropped(actions);
  writer_ = AdvertWriter{};
  config_.receive_buffer_bytes = resize_in_.size();  // what the next Hello says
  resize_in_ = ResizeAnswer{};
  resize_in_.Start(config_.receive_buffer_bytes, config_.receive_buffer_bytes_max);
  sink_adverts_enabled_ = true;
  adverts_crossed_ = false;
  credits_ = Credits{};
  const size_t surplus = receive_.buffers_held() - receive_.BuffersHeldBelow(buffers_.count());
  buffers_.OnQueuePairLeft([this](ReceiveBuffer buffer) { return receive_.InvariantsHold(buffer); },
                           surplus);
  stalled_ = acknowledgement_due_ = disconnect_asked_ = false;
  speaks_first_ = waits_for_first_ = false;
  acknowledge_at_.reset();
}

void Connection::NoteAddresses(const PathAddresses& addresses) {
  config_.local_port = addresses.local_port;
  config_.peer_port = addresses.peer_port;
  config_.local_address = addresses.local;
  config_.peer_address = addresses.peer;
}

// --- on the new one ---

// [R12.5], [R12.10]
const char* Connection::CheckResumption(const wire::Message& message) const {
  const auto* hello = std::get_if<wire::Hello>(&message.body);
  if (!suspend_.initiator() || hello == nullptr) return "Hello: none is expected";
  if (hello->ip_version != config_.ip_version) return "IPV: not that of the suspended connection";
  if (hello->source_address != config_.peer_address) return "source address: not the peer's";
  if (hello->destination_address != config_.local_address) return "destination address: not ours";
  if (hello->local_port != config_.peer_port) return "local port: not the peer's";
  if (ReturnsAreGuarded(config_, peer_) && hello->return_token != config_.return_token) {
    return "return token: not that of the connection";
  }
  return nullptr;
}

void Connection::OnResumptionHello(const wire::Message& hello, Actions& actions) {
  PeerParameters peer;
  const char* refusal = CheckResumption(hello);
  if (refusal == nullptr) refusal = CheckHello(hello, peer);
  // Copied payload that waits was cut for buffers of that size.
  if (refusal == nullptr && peer.receive_buffer_bytes < resize_out_.size()) {
    refusal = "LocalRcvSz: smaller than before";
  }
  if (refusal == nullptr && FreeReceives() < kBuffersMin) {
    refusal = "Bufs: the peer has overdrawn its credits";
  }
  // Once answered, another request is none of this connection's.
  if (refusal == nullptr && credits_.posted() > 0) refusal = "Hello: a second one";
  if (refusal != nullptr) {
    actions.emplace_back(RejectConnection{refusal});
    return;
  }
  peer_ = peer;
  actions.emplace_back(ReplaceQueuePair{});
  buffers_.PostFree(resize_in_.size(), credits_, actions);
  actions.emplace_back(AcceptConnection{MakeHelloAck(config_, credits_.posted(), peer_)});
}

void Connection::Resume(const Established& established, Actions& actions) {
  if (config_.connecting) {
    const char* refusal =
        established.hello_ack ? CheckHelloAck(*established.hello_ack, peer_) : "HelloAck: missing";
    if (refusal == nullptr && peer_.receive_buffer_bytes < resize_out_.size()) {
      refusal = "ActRcvSz: smaller than before";
    }
    if (refusal != nullptr) {
      Fail(Outcome::kHandshakeRefused, refusal, actions);
      return;
    }
    config_.return_token = peer_.return_token;
  }
  Move(teardown_.disconn_sent() ? PhaseCue::kResumedShut
       : teardown_.peer_shut()  ? PhaseCue::kResumedPeerShut
                                : PhaseCue::kResumed);
  StartCarrying(established);
  suspend_.OnResumed(actions);
  buffers_.PostFree(resize_in_.size(), credits_, actions);
  ++counters_.resumptions;
  ReceiveEarly(actions);
}

// --- waiting ---

void Connection::OnSuspendTimer(Actions& actions) {
  suspend_armed_ = kTimeInfinite;
  if (suspend_.DropLateWish(now_, actions) || !suspend_.Ended(now_)) return;
  Fail(Outcome::kResumeFailed,
       phase_ == Phase::kResuming    ? "the peer did not come back in time"
       : phase_ == Phase::kSuspended ? "the old queue pair did not end in time"
       : suspend_.initiator()        ? "SuspComm was not answered in time"
                                     : "SuspCommAck could not be sent in time",
       actions);
}

void Connection::ArmSuspendTimer(Actions& actions) {
  const bool over = !IsAlive(phase_);
  Arm(Timer::kSuspend, over ? kTimeInfinite : suspend_.NextDeadline(), suspend_armed_, actions);
}

}  // namespace esdp::sdp
