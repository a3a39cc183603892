#include "impl/sdp/common/limits.h"
#include "impl/sdp/connection.h"

// Urgent data between the halves, the flags of messages and the operations that wait for it [10].

namespace esdp::sdp {

void Connection::On(const AskUrgent& ask, Actions& actions) {
  if (phase_ == Phase::kClosed && cause_ != Outcome::kDone) {
    UrgentIn::Refuse(ask.operation, cause_, actions);
  } else if (teardown_.closing()) {
    UrgentIn::Refuse(ask.operation, Outcome::kShutDown, actions);
  } else {
    urgent_in_.Await(ask.operation, actions);
  }
}

// [R10.1] A message is about to be made: the notice rides on the first that leaves in time, but not
// on one behind our SuspComm, whose queue pair may end before it leaves.
void Connection::NoticeUrgent(wire::BaseHeader& header) {
  if (suspend_.initiator() || !urgent_out_.NoticeDue(send_.UrgentAhead())) return;
  header.flags |= wire::kFlagOobPending;
  urgent_out_.OnNotice();
}

void Connection::NoteUrgentLeft(wire::BaseHeader& header) {
  if ((header.flags & wire::kFlagOobPresent) == 0) return;
  if (!urgent_out_.noticed()) header.flags |= wire::kFlagOobPending;
  urgent_out_.OnByteLeft();
  ++counters_.urgent_sent;
}

// [R10.8] Payload before the urgent byte waits for credits, slots or an advert: the notice goes
// ahead.
void Connection::SendUrgentNotice(Actions& actions) {
  if (urgent_out_.NoticeDue(send_.UrgentAhead()) && MaySendControl()) SendBare(actions);
}

}  // namespace esdp::sdp
