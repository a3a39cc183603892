#ifndef ESDP_IMPL_SDP_LIFECYCLE_TEARDOWN_H_
#define ESDP_IMPL_SDP_LIFECYCLE_TEARDOWN_H_

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/base/time.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/interface/input.h"

namespace esdp::sdp {

// The end of a connection [13]: what was asked, which DisConn is where, how long to wait, and the
// operations that wait for it. The order of states is the table of phases.
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

  // --- the two waits, on one timer ---
  void WaitForPeer(Time until) { wait_until_ = until; }
  bool WaitEnded(Time now) const { return now >= wait_until_; }
  bool LingerEnded(Time now) const { return now >= linger_until_; }
  Time NextDeadline() const { return linger_until_ < wait_until_ ? linger_until_ : wait_until_; }
  void StopWaiting() { linger_until_ = wait_until_ = kTimeInfinite; }

  // --- their operations ---
  void FinishShutdowns(Outcome outcome, Actions& actions);
  // An abort that was asked for is done whatever else went wrong.
  void FinishCloses(Outcome outcome, Actions& actions);

  void AddTo(Digest& digest) const;

 private:
  struct Close {
    OperationId operation{};
    bool abort = false;
  };

  bool shut_ = false;
  bool closing_ = false;
  bool sent_ = false;
  bool left_ = false;
  bool peer_sent_ = false;
  Time linger_until_ = kTimeInfinite;
  Time wait_until_ = kTimeInfinite;
  GrowingRing<OperationId> shutdowns_;
  GrowingRing<Close> closes_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_LIFECYCLE_TEARDOWN_H_
