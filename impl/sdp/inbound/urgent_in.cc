#include "impl/sdp/inbound/urgent_in.h"

namespace esdp::sdp {
namespace {

void Finish(OperationId operation, Outcome outcome, bool end_of_stream, Actions& actions) {
  FinishOperation finish;
  finish.operation = operation;
  finish.outcome = outcome;
  finish.end_of_stream = end_of_stream;
  finish.urgent = outcome == Outcome::kDone && !end_of_stream;
  actions.emplace_back(finish);
}

}  // namespace

const char* UrgentIn::OnMessage(uint8_t flags, bool is_data_with_payload, Actions& actions) {
  const bool pending = (flags & wire::kFlagOobPending) != 0;
  const bool present = (flags & wire::kFlagOobPresent) != 0;
  // [R10.4]
  if (present && !is_data_with_payload) return "OOB_PRES: the message carries no urgent byte";
  if (pending && announced_) return "OOB_PEND: an urgent byte is announced already";
  const bool news = pending || (present && !announced_);  // [R10.5, R10.7]
  announced_ = (announced_ || pending) && !present;
  if (!news) return nullptr;
  if (waiting_.empty()) {
    ++unheard_;
  } else {
    Finish(waiting_.TakeFront(), Outcome::kDone, /*end_of_stream=*/false, actions);
  }
  return nullptr;
}

void UrgentIn::Await(OperationId operation, Actions& actions) {
  if (unheard_ > 0) {
    --unheard_;
    Finish(operation, Outcome::kDone, /*end_of_stream=*/false, actions);
  } else if (ended_) {
    Finish(operation, Outcome::kDone, /*end_of_stream=*/true, actions);
  } else {
    waiting_.PushBack(operation);
  }
}

bool UrgentIn::Cancel(OperationId operation, Outcome outcome, Actions& actions) {
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (waiting_[i] != operation) continue;
    waiting_.EraseAt(i);
    Finish(operation, outcome, /*end_of_stream=*/false, actions);
    return true;
  }
  return false;
}

void UrgentIn::OnEndOfStream(Actions& actions) {
  ended_ = true;
  while (!waiting_.empty()) {
    Finish(waiting_.TakeFront(), Outcome::kDone, /*end_of_stream=*/true, actions);
  }
}

void UrgentIn::FinishAll(Outcome outcome, Actions& actions) {
  while (!waiting_.empty()) {
    Finish(waiting_.TakeFront(), outcome, /*end_of_stream=*/false, actions);
  }
}

void UrgentIn::AddTo(Digest& digest) const {
  digest.Add(announced_).Add(ended_).Add(unheard_).Add(waiting_.size());
  for (const OperationId operation : waiting_) digest.Add(static_cast<uint32_t>(operation));
}

}  // namespace esdp::sdp
