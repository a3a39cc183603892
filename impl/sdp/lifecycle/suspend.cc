#include "impl/sdp/lifecycle/suspend.h"

#include <algorithm>
#include <chrono>

namespace esdp::sdp {
namespace {

constexpr uint64_t kServiceIdOfSdp = 0x10000;  // [2.1]
constexpr Duration kBetweenMoves = std::chrono::seconds(1);

uint64_t Ticks(Time time) { return static_cast<uint64_t>(time.time_since_epoch().count()); }

}  // namespace

bool Suspend::OnAsk(const AskSuspend& ask) {
  if (wish_) return false;
  wish_ = Wish{ask.operation, ask.port, ask.until};
  return true;
}

bool Suspend::Cancel(OperationId operation, Outcome outcome, Actions& actions) {
  if (!wish_ || wish_->operation != operation || initiator()) return false;
  FinishWish(outcome, actions);
  return true;
}

wire::SuspComm Suspend::TakeSuspComm() {
  role_ = Role::kInitiator;
  return wire::SuspComm{kServiceIdOfSdp | wish_->port};
}

// [R12.12]
bool Suspend::TakeMove(Time now, uint32_t most) {
  if (most == ~uint32_t{0}) return true;
  const Time paid_at = std::max(moves_paid_at_, now);
  if (paid_at - now > (most - 1) * kBetweenMoves) return false;
  moves_paid_at_ = paid_at + kBetweenMoves;
  return true;
}

// [R12.8]
Suspend::Answer Suspend::OnSuspComm(const wire::SuspComm& message, bool connecting, Time until) {
  const auto port = static_cast<uint16_t>(message.service_id & 0xffff);  // [3.9]
  if (peer_is_silent() || peer_asked_ || port == 0) return Answer::kViolation;
  if (initiator() && !connecting) {
    peer_asked_ = true;
    return Answer::kDisregard;
  }
  role_ = Role::kResponder;
  peer_port_ = port;
  until_ = until;
  return Answer::kRespond;
}

// [R12.9]
bool Suspend::OnSuspCommAck() {
  if (!initiator()) return false;
  answered_ = true;
  return true;
}

void Suspend::OnResumed(Actions& actions) {
  if (initiator() && wish_) FinishWish(Outcome::kDone, actions);
  role_ = Role::kNone;
  peer_asked_ = answered_ = acknowledged_ = false;
  peer_port_ = 0;
  until_ = kTimeInfinite;
}

void Suspend::Finish(Outcome outcome, Actions& actions) {
  if (wish_) FinishWish(outcome, actions);
  OnResumed(actions);
}

void Suspend::FinishWish(Outcome outcome, Actions& actions) {
  FinishOperation finish;
  finish.operation = wish_->operation;
  finish.outcome = outcome;
  actions.emplace_back(finish);
  wish_.reset();
}

Time Suspend::NextDeadline() const {
  if (responder()) return until_;
  return wish_ ? wish_->until : kTimeInfinite;
}

bool Suspend::DropLateWish(Time now, Actions& actions) {
  if (!owes_susp_comm() || now < wish_->until) return false;
  FinishWish(Outcome::kDeadlineExceeded, actions);
  return true;
}

void Suspend::AddTo(Digest& digest) const {
  digest.Add(static_cast<uint8_t>(role_)).Add(peer_asked_).Add(answered_).Add(acknowledged_);
  digest.Add(peer_port_).Add(Ticks(until_)).Add(Ticks(moves_paid_at_)).Add(wish_.has_value());
  if (!wish_) return;
  digest.Add(static_cast<uint32_t>(wish_->operation)).Add(wish_->port).Add(Ticks(wish_->until));
}

}  // namespace esdp::sdp
