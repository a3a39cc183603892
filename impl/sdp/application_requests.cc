#include <algorithm>

#include "impl/base/check.h"
#include "impl/sdp/connection.h"

// What the application asks, and what the clock says.

namespace esdp::sdp {

// --- the application ---

void Connection::On(const AskCancel& ask, Actions& actions) {
  using Answer = SendQueue::CancelAnswer;
  const bool asks_back = ask.mode == CancelMode::kIfNotStarted;
  if (!asks_back) must_end_ = ask;
  const Time end_by = AddSaturating(now_, config_.cancel_grace);
  if (urgent_in_.Cancel(ask.operation, ask.outcome, actions)) return;
  // [10] Behind its OOB_PEND an urgent byte has to come.
  const bool promised = urgent_out_.noticed() && send_.CarriesNextUrgent(ask.operation);
  const Answer sending = promised ? Answer::kBegun : send_.Cancel(ask, actions);
  const bool shown = sending == Answer::kAdvertised || sending == Answer::kPartlyRead;
  if (shown && asks_back) source_.AskCancel();
  if (sending != Answer::kUnknown) {
    send_.Bound(ask.operation, end_by);
    cancel_due_ = std::min(cancel_due_, send_.NextEndBy());
    return;
  }
  if (suspend_.Cancel(ask.operation, ask.outcome, actions)) return;
  const auto receiving = receive_.Cancel(ask.operation, ask.outcome, actions);
  if (receiving == ReceiveQueue::CancelAnswer::kAdvertised && asks_back) sink_.AskCancel();
  receive_.Bound(ask.operation, end_by);
  cancel_due_ = std::min(cancel_due_, receive_.NextEndBy());
}

// What was cancelled to end with this step, and has not, takes the connection with it.
void Connection::EndOrAbort(Actions& actions) {
  const AskCancel ask = *must_end_;
  must_end_.reset();
  const bool late = ask.outcome == Outcome::kDeadlineExceeded;
  if (send_.Has(ask.operation)) {
    Fail(Outcome::kLocalAbort,
         late ? "a send had begun when its deadline passed" : "a send that had begun was cancelled",
         actions);
  } else if (receive_.Has(ask.operation)) {
    Fail(Outcome::kLocalAbort,
         late ? "a receive had begun when its deadline passed"
              : "a receive that had begun was cancelled",
         actions);
  } else if (suspend_.Has(ask.operation)) {
    Fail(Outcome::kLocalAbort, "a move that had begun was cancelled", actions);
  }
}

// Set lazily: most of what is cancelled has ended long since.
void Connection::OnCancelTimer(Actions& actions) {
  cancel_armed_ = kTimeInfinite;
  cancel_due_ = std::min(send_.NextEndBy(), receive_.NextEndBy());
  if (cancel_due_ > now_) return;
  cancel_due_ = kTimeInfinite;
  Fail(Outcome::kLocalAbort, "the peer did not give back within cancel_grace what was cancelled",
       actions);
}

// A queue pair, the first or a later one, starts with what was wanted last.
void Connection::On(const AskMode& ask, Actions&) {
  config_.mode_send = ask.send;
  config_.mode_receive = ask.receive;
  mode_policy_.Want(ask.send, ask.receive);
}

void Connection::On(const AskShutdown& ask, Actions& actions) {
  if (phase_ == Phase::kClosed) {
    FinishNow(ask.operation, cause_, actions);
  } else {
    teardown_.OnAskShutdown(ask);
  }
}

void Connection::On(const AskClose& ask, Actions& actions) {
  if (reported_closed_) {
    FinishNow(ask.operation, ask.abort ? Outcome::kDone : cause_, actions);
    return;
  }
  const bool escalates = ask.abort && teardown_.close_pending();
  teardown_.OnAskClose(ask, AddSaturating(now_, config_.linger));
  if (phase_ == Phase::kClosed) {
    MaybeReportClosed(actions);
  } else if (escalates) {
    Fail(Outcome::kLocalAbort,
         WaitsForPeerAlone() ? "everything had been sent, and the peer had not closed its side"
                             : "closed before everything had been sent",
         actions);
  } else if (ask.abort) {
    Fail(Outcome::kLocalAbort, "the application aborted the connection", actions);
  } else if (phase_ < Phase::kEstablished) {
    Fail(Outcome::kLocalAbort, "closed before it was connected", actions);
  } else if (phase_ != Phase::kAborting) {
    urgent_in_.FinishAll(Outcome::kShutDown, actions);
    receive_.CancelAll(Outcome::kShutDown, actions);
    sink_.AskCancel();
  }
}

// --- timers ---

void Connection::On(const TimerFired& fired, Actions& actions) {
  if (fired.timer == Timer::kAcknowledge) {
    acknowledge_armed_ = false;
    acknowledgement_due_ = acknowledge_at_ && *acknowledge_at_ <= now_;
    return;
  }
  if (fired.timer == Timer::kSuspend) return OnSuspendTimer(actions);
  if (fired.timer == Timer::kCancel) return OnCancelTimer(actions);
  if (fired.timer == Timer::kWindow) return OnWindowTimer(actions);
  close_armed_ = kTimeInfinite;
  if (teardown_.LingerEnded(now_)) {  // [R13.2.10]
    Fail(Outcome::kLocalAbort,
         WaitsForPeerAlone()
             ? "the linger time ran out: everything had been sent, and the peer had not closed its "
               "side"
             : "the linger time ran out before everything had been sent",
         actions);
    teardown_.StopWaiting();
  } else if (phase_ == Phase::kLastAck && teardown_.WaitEnded(now_)) {
    Move(PhaseCue::kWaitEnded);
    teardown_.WaitForPeer(kTimeInfinite);
  }
}

}  // namespace esdp::sdp
