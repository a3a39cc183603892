#include "impl/sdp/lifecycle/suspend.h"

#include <algorithm>
#include <chrono>
#include <variant>

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
  if (peer_is_silent() || peer_asked_ || port == 0) {
    return {"SuspComm: a second one, or for port 0", false};
  }
  if (initiator() && !connecting) {
    peer_asked_ = true;
    return {nullptr, false};
  }
  role_ = Role::kResponder;
  peer_port_ = port;
  until_ = until;
  return {nullptr, true};
}

// [R12.2] Behind SuspComm the peer says no more than this.
const char* Suspend::CheckSilence(const MessageArrived& arrived) const {
  if (!peer_is_silent()) return nullptr;
  const wire::Body& body = arrived.message.body;
  const bool bare = std::holds_alternative<wire::Data>(body) && arrived.payload_length == 0;
  const bool allowed = bare || std::holds_alternative<wire::SuspComm>(body) ||
                       std::holds_alternative<wire::SuspCommAck>(body) ||
                       std::holds_alternative<wire::AbortConn>(body);
  return allowed ? nullptr : "a message behind SuspComm";
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
  FinishNow(wish_->operation, outcome, actions);
  wish_.reset();
}

Time Suspend::NextDeadline() const {
  if (responder()) return until_;
  return wish_ ? wish_->until : kTimeInfinite;
}

void Suspend::ArmTimer(bool alive, Actions& actions) {
  sdp::ArmTimer(Timer::kSuspend, alive ? NextDeadline() : kTimeInfinite, armed_, actions);
}

const char* Suspend::OnTimer(Phase phase, Time now, Actions& actions) {
  armed_ = kTimeInfinite;
  if (now < NextDeadline()) return nullptr;
  if (owes_susp_comm()) {
    FinishWish(Outcome::kDeadlineExceeded, actions);
    return nullptr;
  }
  if (role_ == Role::kNone) return nullptr;
  return phase == Phase::kResuming    ? "the peer did not come back in time"
         : phase == Phase::kSuspended ? "the old queue pair did not end in time"
         : initiator()                ? "SuspComm was not answered in time"
                                      : "SuspCommAck could not be sent in time";
}

void Suspend::AddTo(Digest& digest) const {
  digest.Add(static_cast<uint8_t>(role_)).Add(peer_asked_).Add(answered_).Add(acknowledged_);
  digest.Add(peer_port_)
      .Add(Ticks(until_))
      .Add(Ticks(armed_))
      .Add(Ticks(moves_paid_at_))
      .Add(wish_.has_value());
  if (!wish_) return;
  digest.Add(static_cast<uint32_t>(wish_->operation)).Add(wish_->port).Add(Ticks(wish_->until));
}

}  // namespace esdp::sdp
