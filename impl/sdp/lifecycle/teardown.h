#ifndef ESDP_IMPL_SDP_LIFECYCLE_TEARDOWN_H_
#define ESDP_IMPL_SDP_LIFECYCLE_TEARDOWN_H_

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/base/time.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/interface/input.h"

namespace esdp::sdp {

// The end of a connection [13]: what was asked, which DisConn is where, how long to wait, the root
// cause, and the operations that wait for it. The order of states is the table of phases.
class Teardown {
 public:
  // --- what was asked ---
  void OnAskShutdown(const AskShutdown& ask);
  void OnAskClose(const AskClose& ask, Time linger_until);
  bool shut() const { return shut_; }        // no send is taken any more
  bool closing() const { return closing_; }  // no receive either
  bool close_pending() const { return !closes_.empty(); }

  // --- DisConn ---
  void OnDisConnPosted() { sent_ = true; }
  void OnDisConnLeft() { left_ = true; }
  void OnPeerDisConn() { peer_sent_ = true; }
  bool disconn_sent() const { return sent_; }
  bool disconn_left() const { return left_; }
  bool peer_shut() const { return peer_sent_; }

  // --- the root cause: the first that is given ---
  void SetCause(Outcome cause, const char* reason);
  Outcome cause() const { return cause_; }  // kDone: in order
  bool in_order() const { return cause_ == Outcome::kDone; }
  // The peer has ended its stream, and nothing is wrong with what of it is here: it stays readable.
  void KeepInput() { input_kept_ = true; }
  bool input_kept() const { return in_order() || input_kept_; }
  // Of operations that the end finds, or that are asked for behind it.
  Outcome outcome() const { return in_order() ? Outcome::kShutDown : cause_; }

  // --- the two waits, on one timer ---
  void WaitForPeer(Time until) { wait_until_ = until; }
  bool WaitEnded(Time now) const { return now >= wait_until_; }
  bool LingerEnded(Time now) const { return now >= linger_until_; }
  void StopWaiting() { linger_until_ = wait_until_ = kTimeInfinite; }
  bool timer_set() const { return armed_ != kTimeInfinite; }
  bool TimerStands() const { return NextDeadline() == armed_; }
  void OnTimer() { armed_ = kTimeInfinite; }
  // `over`: it is not needed any more.
  void ArmTimer(bool over, Actions& actions);

  // --- who is told ---
  // The queue pair is to end in order; asked once of each.
  void Disconnect(Actions& actions);
  // Or at once, for the root cause.
  void Abort(Actions& actions) const;
  void OnQueuePairLeft() { disconnect_asked_ = false; }
  void FinishShutdowns(Outcome outcome, Actions& actions);
  // It is all over.
  void Report(Actions& actions);
  bool reported() const { return reported_; }

  void AddTo(Digest& digest) const;

 private:
  struct Close {
    OperationId operation{};
    bool abort = false;
  };

  Time NextDeadline() const { return linger_until_ < wait_until_ ? linger_until_ : wait_until_; }

  Outcome cause_ = Outcome::kDone;
  const char* reason_ = "";
  bool input_kept_ = false;
  bool shut_ = false;
  bool closing_ = false;
  bool sent_ = false;
  bool left_ = false;
  bool peer_sent_ = false;
  bool disconnect_asked_ = false;
  bool reported_ = false;
  Time linger_until_ = kTimeInfinite;
  Time wait_until_ = kTimeInfinite;
  Time armed_ = kTimeInfinite;
  GrowingRing<OperationId> shutdowns_;
  GrowingRing<Close> closes_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_LIFECYCLE_TEARDOWN_H_
