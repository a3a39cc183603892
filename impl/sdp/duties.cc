#include <algorithm>
#include <cstddef>
#include <optional>

#include "impl/sdp/connection.h"

// What a connection has to do beside its streams, and doing it: what is rare.

namespace esdp::sdp {

// --- what is owed ---

Owed Connection::AskWhatIsOwed() const {
  Owed owed;
  owed.Add(Duty::kPhase, phase_ != Phase::kEstablished);
  owed.Add(Duty::kFirstMessage, outgoing_.speaks_first());
  owed.Add(Duty::kSilence, outgoing_.waits_for_first() || phase_ == Phase::kLastAck);
  owed.Add(Duty::kSuspend, suspend_.freezes());
  owed.Add(Duty::kResize, inbound_.buffers().resizing() || !outbound_.resize_settled());
  owed.Add(Duty::kSourceCancel, outbound_.cancels_source_adverts());
  owed.Add(Duty::kSinkAnswers, outbound_.writes() || inbound_.owes_sink_cancel());
  owed.Add(Duty::kModeChange, !modes_.Rests(0));
  owed.Add(Duty::kSinkAdvert, modes_.receive() == Mode::kPipelined || !inbound_.sink_idle());
  owed.Add(Duty::kUrgentNotice, outbound_.has_urgent());
  owed.Add(Duty::kDisConn, teardown_.shut() || teardown_.peer_shut());
  owed.Add(Duty::kCredits, outgoing_.acknowledgement_due());
  owed.Add(Duty::kWindow, inbound_.buffers().window().due());
  owed.Add(Duty::kDeadlines, !TimersStand() || teardown_.timer_set() || suspend_.timer_set());
  return owed;
}

// [R10.1] An urgent notice rides on what leaves next, but not behind our SuspComm, whose queue pair
// may end before it leaves.
void Connection::NoteDuties() {
  owed_ = AskWhatIsOwed();
  outgoing_.SetUrgentAhead(suspend_.initiator() ? std::nullopt : outbound_.UrgentAhead());
}

// --- what leaves ---

void Connection::SendReadAnswers(Actions& actions) {
  inbound_.SendReadAnswers(modes_.HintsFrom(), outgoing_, actions, counters_);
}

// Of SendRare.
bool Connection::SendDuties(Duty first, Duty last, bool may_advertise, Actions& actions) {
  Owed owed = owed_.From(first);
  while (!owed.empty() && owed.First() <= last) {
    const Duty duty = owed.First();
    const size_t before = actions.size();
    const bool more = SendDuty(duty, may_advertise, actions);
    if (actions.size() != before) NoteDuties();
    if (!more) return false;
    owed = owed_.Behind(duty);
  }
  return true;
}

bool Connection::SendDuty(Duty duty, bool may_advertise, Actions& actions) {
  switch (duty) {
    case Duty::kFirstMessage:
      outgoing_.SpeakFirst(actions, counters_);
      return true;
    case Duty::kSilence:
      return !outgoing_.waits_for_first() && phase_ != Phase::kLastAck;
    case Duty::kSuspend:
      if (!MoveGoesFirst()) return true;
      SuspendOut(may_advertise, actions);
      return false;
    case Duty::kResize:
      inbound_.SendResizeAnswer(outgoing_, actions, counters_);
      outbound_.SendResizeRequest(!inbound_.buffers().resizing() && !teardown_.shut(), outgoing_,
                                  actions, counters_);
      return true;
    case Duty::kSourceCancel:
      outbound_.SendSourceCancel(outgoing_, actions, counters_);
      return true;
    case Duty::kSinkAnswers:
      outbound_.SendSinkCancelAck(may_advertise, !inbound_.holds_acknowledgement(), outgoing_,
                                  actions, counters_);
      inbound_.SendSinkCancel(outgoing_, actions, counters_);
      return true;
    case Duty::kSinkAdvert:
      // [R13.1.2] No advert behind our DisConn, and none for a stream that has ended.
      if (modes_.usable() && modes_.permits().sink_adverts == AdvertAllowance::kMany &&
          !teardown_.disconn_sent() && !teardown_.peer_shut() && !teardown_.closing()) {
        // Half of what the peer can hold is left to our own SrcAvails.
        const size_t share = std::max<size_t>(1, handshake_.peer().max_adverts / 2);
        inbound_.OfferSink(AdvertRoom(), share, outgoing_, actions);
      }
      return !inbound_.offering();  // its advert has the next MSeq
    case Duty::kUrgentNotice:
      // [R10.8] Payload before the urgent byte waits for credits, slots or an advert.
      if (outgoing_.UrgentNoticeDue() && outgoing_.MaySendControl()) {
        outgoing_.PostBare(actions, counters_);
      }
      return true;
    case Duty::kDisConn:
      if (teardown_.shut()) SendDisConn(actions);
      return phase_ != Phase::kLastAck;  // behind both nobody needs to hear of us any more
    default:
      return true;
  }
}

void Connection::SendModeChanges(bool may_advertise, Actions& actions) {
  if (modes_.Rests(outbound_.waiting())) return;
  DeliveryModes::Facts facts;
  facts.may_send = !teardown_.disconn_sent() && !outbound_.cancels_source_adverts();
  facts.may_receive = !teardown_.peer_shut();
  facts.large_sends = outbound_.LargeSends(may_advertise);
  facts.large_receives = inbound_.LargeReceives();
  facts.source_adverts_out = outbound_.advertised();
  facts.writing = outbound_.in_process();
  const size_t before = actions.size();
  if (modes_.SendDue(facts, outgoing_, actions, counters_)) outbound_.LeavePipelined();
  if (actions.size() != before) NoteDuties();
}

// [R13.1.1, R13.1.2] Only after all data, and adverts to their last byte.
void Connection::SendDisConn(Actions& actions) {
  if (teardown_.disconn_sent() || !outbound_.done() || !outgoing_.MaySendControl()) return;
  if (!Move(PhaseCue::kDisConnSent)) return;
  outgoing_.Post(wire::DisConn{}, Outgoing::Kind::kDisConn, actions, counters_);
  teardown_.OnDisConnPosted();
  outbound_.DropSinkAdverts();  // [8.5]
  if (phase_ == Phase::kLastAck) {
    teardown_.WaitForPeer(AddSaturating(outgoing_.now(), handshake_.config().close_wait));
  }
}

void Connection::ChangeWindow(Actions& actions) {
  if (MoveGoesFirst() || outbound_.offering() || inbound_.offering()) return;
  inbound_.buffers().AskForWindow(actions);
}

// --- what ends ---

// Without a queue pair that carries messages.
void Connection::AdvanceNotOpen(Actions& actions) {
  if (phase_ == Phase::kTimeWait) {
    Deliver(actions);
  } else if (phase_ == Phase::kSuspended || phase_ == Phase::kResuming) {
    AdvanceSuspended(actions);
  } else if (phase_ == Phase::kClosed) {
    if (!teardown_.reported() || teardown_.in_order()) Deliver(actions);
    MaybeReportClosed(actions);
  }
}

// What may end with a step that was more than the streams.
void Connection::FinishRare(Actions& actions) {
  if (phase_ >= Phase::kEstablished && !is_over() && WaitsForPeerAlone()) {
    teardown_.FinishShutdowns(Outcome::kDone, actions);
  }
  // [R13.2.5] Not before our own DisConn has left, or what is behind it on the queue is lost.
  if (phase_ == Phase::kTimeWait && teardown_.disconn_left()) teardown_.Disconnect(actions);
  if (must_end_) EndOrAbort(actions);
}

// --- readiness ---

Readiness Connection::readiness() const {
  Readiness now;
  now.readable = inbound_.readable() && !teardown_.closing();
  now.writable = IsOpen(phase_) && !teardown_.shut() && outbound_.writable();
  now.urgent = inbound_.urgent().unheard() && !is_over();
  now.ended = teardown_.peer_shut() || is_over();
  return now;
}

bool Connection::TimersStand() const {
  return IsOpen(phase_) && teardown_.TimerStands() && suspend_.TimerStands() &&
         cancel_due_ == cancel_armed_ && outgoing_.TimerStands();
}

void Connection::ArmTimers(Actions& actions) {
  suspend_.ArmTimer(IsAlive(phase_), actions);
  if (is_over()) cancel_due_ = kTimeInfinite;
  ArmTimer(Timer::kCancel, cancel_due_, cancel_armed_, actions);
  if (is_over()) inbound_.buffers().StopWindowTimer(actions);
  outgoing_.ArmTimer(is_over(), actions);
  teardown_.ArmTimer(is_over(), actions);
}

}  // namespace esdp::sdp
