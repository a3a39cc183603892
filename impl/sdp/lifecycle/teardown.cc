#include "impl/sdp/lifecycle/teardown.h"

namespace esdp::sdp {
namespace {

uint64_t Ticks(Time time) { return static_cast<uint64_t>(time.time_since_epoch().count()); }

}  // namespace

void Teardown::OnAskShutdown(const AskShutdown& ask) {
  shutdowns_.PushBack(ask.operation);
  shut_ = true;
}

void Teardown::OnAskClose(const AskClose& ask, Time linger_until) {
  closes_.PushBack({ask.operation, ask.abort});
  shut_ = true;
  closing_ = true;
  if (linger_until_ == kTimeInfinite) linger_until_ = linger_until;
}

void Teardown::SetCause(Outcome cause, const char* reason) {
  if (cause_ != Outcome::kDone) return;
  cause_ = cause;
  reason_ = reason;
}

void Teardown::ArmTimer(bool over, Actions& actions) {
  sdp::ArmTimer(Timer::kClose, over ? kTimeInfinite : NextDeadline(), armed_, actions);
}

void Teardown::Disconnect(Actions& actions) {
  if (disconnect_asked_) return;
  disconnect_asked_ = true;
  actions.emplace_back(sdp::Disconnect{true, Outcome::kDone, ""});
}

void Teardown::Abort(Actions& actions) const {
  actions.emplace_back(sdp::Disconnect{false, cause_, reason_});
}

void Teardown::FinishShutdowns(Outcome outcome, Actions& actions) {
  while (!shutdowns_.empty()) FinishNow(shutdowns_.TakeFront(), outcome, actions);
}

// An abort that was asked for is done whatever else went wrong.
void Teardown::Report(Actions& actions) {
  while (!closes_.empty()) {
    const Close close = closes_.TakeFront();
    FinishNow(close.operation, close.abort ? Outcome::kDone : cause_, actions);
  }
  actions.emplace_back(ReportClosed{cause_, reason_});
  reported_ = true;
}

void Teardown::AddTo(Digest& digest) const {
  digest.Add(shut_).Add(closing_).Add(sent_).Add(left_).Add(peer_sent_);
  digest.Add(static_cast<uint8_t>(cause_)).Add(input_kept_).Add(disconnect_asked_).Add(reported_);
  digest.Add(Ticks(linger_until_)).Add(Ticks(wait_until_)).Add(Ticks(armed_));
  digest.Add(shutdowns_.size());
  for (const OperationId operation : shutdowns_) digest.Add(static_cast<uint32_t>(operation));
  for (const Close& close : closes_) {
    digest.Add(static_cast<uint32_t>(close.operation)).Add(close.abort);
  }
}

}  // namespace esdp::sdp
