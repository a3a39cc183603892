#include "impl/sdp/lifecycle/teardown.h"

namespace esdp::sdp {
namespace {

void Finish(OperationId operation, Outcome outcome, Actions& actions) {
  FinishOperation finish;
  finish.operation = operation;
  finish.outcome = outcome;
  actions.emplace_back(finish);
}

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

void Teardown::FinishShutdowns(Outcome outcome, Actions& actions) {
  while (!shutdowns_.empty()) Finish(shutdowns_.TakeFront(), outcome, actions);
}

void Teardown::FinishCloses(Outcome outcome, Actions& actions) {
  while (!closes_.empty()) {
    const Close close = closes_.TakeFront();
    Finish(close.operation, close.abort ? Outcome::kDone : outcome, actions);
  }
}

void Teardown::AddTo(Digest& digest) const {
  digest.Add(shut_).Add(closing_).Add(sent_).Add(left_).Add(peer_sent_);
  digest.Add(Ticks(linger_until_)).Add(Ticks(wait_until_));
  digest.Add(shutdowns_.size());
  for (const OperationId operation : shutdowns_) digest.Add(static_cast<uint32_t>(operation));
  for (const Close& close : closes_) {
    digest.Add(static_cast<uint32_t>(close.operation)).Add(close.abort);
  }
}

}  // namespace esdp::sdp
