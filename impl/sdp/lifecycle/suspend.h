#ifndef ESDP_IMPL_SDP_LIFECYCLE_SUSPEND_H_
#define ESDP_IMPL_SDP_LIFECYCLE_SUSPEND_H_

#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/time.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/interface/input.h"
#include "impl/sdp/lifecycle/machines.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp {

// Moving the connection to a new queue pair [12]: who asked for it, what has been said, and how
// long to wait. The order of states is the table of phases.
//
//   initiator  asked by the application; sends SuspComm, then waits for SuspCommAck and for a Hello
//   responder  asked by the peer's SuspComm; answers SuspCommAck, then connects anew
//
// When both ask at once the connecting side of the queue pair answers, and asks again on the next.
class Suspend {
 public:
  // False: one is under way or waiting already.
  bool OnAsk(const AskSuspend& ask);
  // False: it is not this operation, or it can no longer be taken back.
  bool Cancel(OperationId operation, Outcome outcome, Actions& actions);
  bool pending() const { return wish_.has_value(); }
  bool Has(OperationId operation) const { return wish_ && wish_->operation == operation; }

  // Nothing new is to be begun: no payload, no advert, no read.
  bool freezes() const { return wish_.has_value() || role_ != Role::kNone; }
  // What leaves now is what the move needs, and nothing else. What is on its way may leave us two
  // receive buffers, but the next Hello has to announce three: a wish waits for a spare one. Unread
  // bytes may hold it for long, so nothing waits for the wish.
  bool GoesFirst(bool has_spare) const { return freezes() && (has_spare || !owes_susp_comm()); }
  bool initiator() const { return role_ == Role::kInitiator; }
  bool responder() const { return role_ == Role::kResponder; }

  // --- what is to be said ---
  bool owes_susp_comm() const { return wish_.has_value() && role_ == Role::kNone; }
  wire::SuspComm TakeSuspComm();
  bool owes_susp_comm_ack() const { return responder() && !acknowledged_; }
  void TakeSuspCommAck() { acknowledged_ = true; }
  bool awaited() const { return responder() && acknowledged_; }  // by the peer, on its port

  // --- what the peer says ---
  // Counts a move by the peer. False: `most` of them have not been followed by a second each.
  bool TakeMove(Time now, uint32_t most);
  struct Answer {
    const char* violation = nullptr;  // the peer broke the protocol: nothing else is valid
    bool responds = false;            // or ours goes first, and its own is disregarded
  };
  Answer OnSuspComm(const wire::SuspComm& message, bool connecting, Time until);
  // False: nobody asked for it [17].
  bool OnSuspCommAck();
  // The peer has said its last on this queue pair. Not so when its SuspComm is disregarded: it
  // answers ours, and finishes what is in process before that.
  bool peer_is_silent() const { return responder() || answered_; }
  // Why a silent peer may not say this, or nullptr.
  const char* CheckSilence(const MessageArrived& arrived) const;
  uint16_t peer_port() const { return peer_port_; }

  // The connection is on its new queue pair. A wish that had to stand back is still there.
  void OnResumed(Actions& actions);
  // It will not be.
  void Finish(Outcome outcome, Actions& actions);

  // --- waiting ---
  bool timer_set() const { return armed_ != kTimeInfinite; }
  bool TimerStands() const { return NextDeadline() == armed_; }
  // Not `alive`: it is not needed any more.
  void ArmTimer(bool alive, Actions& actions);
  // Ends a wish that is late and has not been told to the peer. What the connection waited for in
  // vain if it has to end, or nullptr.
  const char* OnTimer(Phase phase, Time now, Actions& actions);

  void AddTo(Digest& digest) const;

 private:
  enum class Role : uint8_t { kNone, kInitiator, kResponder };
  struct Wish {
    OperationId operation{};
    uint16_t port = 0;
    Time until = kTimeInfinite;
  };

  void FinishWish(Outcome outcome, Actions& actions);
  Time NextDeadline() const;

  std::optional<Wish> wish_;
  Role role_ = Role::kNone;
  bool peer_asked_ = false;    // and we disregard it
  bool answered_ = false;      // SuspCommAck is in
  bool acknowledged_ = false;  // SuspCommAck is out
  uint16_t peer_port_ = 0;
  Time until_ = kTimeInfinite;  // responder
  Time armed_ = kTimeInfinite;
  Time moves_paid_at_{};  // when as many seconds have passed as the peer has moved us
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_LIFECYCLE_SUSPEND_H_
