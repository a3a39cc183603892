#include <algorithm>
#include <variant>

#include "impl/sdp/common/limits.h"
#include "impl/sdp/connection.h"

// What follows from an input: unread bytes reach receives, adverts are read, and what the peer is
// owed leaves.

namespace esdp::sdp {

// [R13.2.5] Not before our own DisConn has left, or what is behind it on the queue is lost.
void Connection::MaybeDisconnect(Actions& actions) {
  if (!teardown_.disconn_left() || disconnect_asked_) return;
  disconnect_asked_ = true;
  actions.emplace_back(Disconnect{true, Outcome::kDone, ""});
}

// --- inbound ---

void Connection::Deliver(Actions& actions) {
  do {
    while (receive_.may_copy()) {
      const auto emptied = receive_.CopyNext(actions, counters_);
      if (emptied) PostAgain(*emptied, actions);
    }
  } while (reader_.active() && IsOpen(phase_) && !Freezes() && ReadAdvert(actions));
  if (!receive_.MayFinish(teardown_.peer_shut())) return;
  receive_.FinishReady(reader_.brings_more(), teardown_.peer_shut(), counters_, actions);
}

// [R7.1.3, R6.2, R25.3] Starts reads as far as receives, the device and the policy allow. True:
// there are unread bytes to deliver first.
bool Connection::ReadAdvert(Actions& actions) {
  while (const uint32_t left = reader_.left()) {
    if (!receive_.has_room()) {
      // [R15.1] Both sides have advertised and neither may ever receive: ours goes as Data.
      adverts_crossed_ = adverts_crossed_ || source_.outstanding();
      source_.AskCancel();
      calm_ = calm_ && !source_.cancelling();
      return false;
    }
    if (receive_.has_unread()) return true;
    const ReceiveRoom room = *receive_.Room();
    if (!ReadsIntoRoom(room, left, reads_out_max_ > 0)) {
      if (room.may_end_short) {
        receive_.EndShort();
        continue;
      }
      RefuseAdvert();
      return true;
    }
    if (reader_.reads_in_flight() >= reads_out_max_ || !HasSlot(kWorkSlotsForControl)) return false;
    if (reader_.IsAhead(config_.read_ahead_bytes)) return false;
    const uint32_t read_max = std::min(room.range.length, config_.read_bytes_max);
    if (reader_.fresh() && !SettleInlineBytes(read_max, actions)) return true;
    const OperationRange target{room.range.operation, std::min(read_max, reader_.left()),
                                room.range.offset};
    const uint64_t number = receive_.OnReadStarted(target.length);
    Append<Read>(actions) = reader_.StartRead(target, number);
  }
  return false;
}

// A few inline bytes are read again with the rest, unless the first read would not cover them.
// False: they are unread bytes now.
bool Connection::SettleInlineBytes(uint32_t first_read_bytes, Actions& actions) {
  if (first_read_bytes <= reader_.inline_bytes()) {
    UseInlineBytes();
    return false;
  }
  PostAgain(reader_.RereadInline().buffer, actions);
  return true;
}

// [R13.2.7] Nobody reads any more: the peer's buffers come back and its adverts come as Data, so
// that it gets to its end.
void Connection::DiscardInbound(Actions& actions) {
  if (reader_.left() > 0) RefuseAdvert();
  while (receive_.has_unread()) PostAgain(receive_.DropOldestUnread(), actions);
}

void Connection::RefuseAdvert() {
  if (reader_.fresh()) UseInlineBytes();
  reader_.Refuse();
}

// --- outbound ---

void Connection::SendBare(Actions& actions) {
  Stamp(NewSend(wire::Data{}, actions), SendKind::kControl, true);
}

// [R15.2, R16.2] They wait for no receive.
void Connection::SendAnswers(Actions& actions) {
  for (;;) {
    const AdvertReader::Answer answer = reader_.NextAnswer();
    if (answer == AdvertReader::Answer::kNone || !MaySendReport()) break;
    if (answer == AdvertReader::Answer::kRdmaRdCompl) {
      const AdvertReader::Completion completion = reader_.TakeRdmaRdCompl();
      Send& send = NewSend(completion.message, actions);
      if (HintsPipelined()) send.message.base.flags |= wire::kFlagReqPipe;
      // [R19.1] Neither towards a deployed peer nor as one.
      const bool deployed = peer_.deployed() || config_.as_deployed;
      if (peer_.accepts_invalidate && !deployed) send.invalidate_key = completion.finished_key;
      Stamp(send, SendKind::kControl, false);
    } else {
      credits_.ReleaseAcknowledgement();  // [R7.4.5]
      reader_.TakeSendSm();
      Stamp(NewSend(wire::SendSm{}, actions), SendKind::kControl, false);
      ++counters_.send_sm_sent;
    }
    if (!reader_.HoldsAcknowledgement()) credits_.ReleaseAcknowledgement();
  }
}

void Connection::SendDisConn(Actions& actions) {
  // [R13.1.1, R13.1.2] Only after all data, and adverts to their last byte.
  if (teardown_.disconn_sent()) return;
  if (!send_.drained() || !source_.idle() || writer_.in_process()) return;
  if (!MaySendControl()) return;
  if (!Move(PhaseCue::kDisConnSent)) return;
  Stamp(NewSend(wire::DisConn{}, actions), SendKind::kDisConn, false);
  teardown_.OnDisConnPosted();
  writer_.DropAll();  // [8.5]
  if (phase_ == Phase::kLastAck) {
    teardown_.WaitForPeer(AddSaturating(now_, config_.close_wait));
  }
}

void Connection::SendUpdate(Actions& actions) {
  if (phase_ == Phase::kLastAck || !HasSlot(0)) return;
  using Update = Credits::Update;
  const bool acknowledges =
      acknowledgement_due_ && !credits_.holds_acknowledgement() && credits_.MaySendControl();
  const Update update = credits_.UpdateDue();
  const Update escape = stalled_ ? credits_.EscapeDue() : Update::kNone;
  if (acknowledges || update == Update::kNow) {
    SendBare(actions);
    ++counters_.credit_updates_sent;
  } else if (escape == Update::kNow) {
    SendBare(actions);
    credits_.OnEscape();
  } else if ((update == Update::kLater || escape == Update::kLater) && !acknowledge_at_) {
    // The sides differ: with equal delays their bare Data would cross for ever, each with an
    // acknowledgement that is one short of what the other's payload needs.
    const Duration delay = credits_.LaterBy() * config_.acknowledge_delay;
    acknowledge_at_ = AddSaturating(now_, config_.connecting ? delay + delay / 2 : delay);
  }
}

// --- timers ---

void Connection::ArmTimers(Actions& actions) {
  const bool over = phase_ == Phase::kClosed || phase_ == Phase::kAborting;
  ArmSuspendTimer(actions);
  if (over) cancel_due_ = kTimeInfinite;
  Arm(Timer::kCancel, cancel_due_, cancel_armed_, actions);
  if (over) Arm(Timer::kWindow, kTimeInfinite, window_armed_, actions);
  // Set lazily: a deadline that has moved away is looked at again when the earlier one fires.
  if (!over && acknowledge_at_ && !acknowledge_armed_ && !acknowledgement_due_) {
    acknowledge_armed_ = true;
    actions.emplace_back(SetTimer{Timer::kAcknowledge, *acknowledge_at_});
  } else if (over && acknowledge_armed_) {
    acknowledge_armed_ = false;
    actions.emplace_back(ClearTimer{Timer::kAcknowledge});
  }
  Arm(Timer::kClose, over ? kTimeInfinite : teardown_.NextDeadline(), close_armed_, actions);
}

}  // namespace esdp::sdp
