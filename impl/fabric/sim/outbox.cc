#include "impl/fabric/sim/outbox.h"

#include <algorithm>
#include <utility>

namespace esdp::fabric::sim {

void Outbox::Complete(const Completion& completion) {
  Account& account = accounts_[completion.queue_pair];
  ++account.untaken;
  if (account.establishing && completion.opcode == Opcode::kReceive) {
    account.held.push_back(completion);
  } else {
    completions_.push_back(completion);
    if (IsSend(completion)) ++sends_;
  }
  ShowReadable();
}

void Outbox::Tell(const RendezvousEvent& event) {
  if (event.type == RendezvousType::kDisconnected) {
    accounts_[event.queue_pair].last = event;
    MaybeCloseAccount(event.queue_pair);
  } else {
    if (event.type == RendezvousType::kEstablished) {
      accounts_[event.queue_pair].establishing = true;
    }
    events_.push_back(event);
  }
  ShowReadable();
}

template <typename Predicate>
void Outbox::EraseEvents(Predicate predicate) {
  std::erase_if(events_, predicate);
  ShowReadable();
}

void Outbox::ForgetRequest(RequestId request) {
  EraseEvents([&](const RendezvousEvent& event) {
    return event.type == RendezvousType::kConnectRequest && event.request == request;
  });
}

void Outbox::ForgetListener(ListenerId listener) {
  EraseEvents([&](const RendezvousEvent& event) {
    return event.type == RendezvousType::kConnectRequest && event.listener == listener;
  });
}

void Outbox::ForgetQueuePair(QueuePairId queue_pair) {
  LetGo(queue_pair);
  accounts_[queue_pair].last.reset();
  accounts_[queue_pair].forgotten = true;
  MaybeCloseAccount(queue_pair);
  EraseEvents([&](const RendezvousEvent& event) {
    return event.type != RendezvousType::kConnectRequest && event.queue_pair == queue_pair;
  });
}

size_t Outbox::TakeCompletions(absl::Span<Completion> completions) {
  const size_t count = std::min(completions.size(), completions_.size());
  for (size_t i = 0; i < count; ++i) {
    completions[i] = completions_.front();
    completions_.pop_front();
    if (IsSend(completions[i])) --sends_;
    --accounts_[completions[i].queue_pair].untaken;
    MaybeCloseAccount(completions[i].queue_pair);
  }
  ShowReadable();
  return count;
}

bool Outbox::TakeEvent(RendezvousEvent& event) {
  if (events_.empty()) return false;
  event = std::move(events_.front());
  events_.pop_front();
  if (event.type == RendezvousType::kEstablished) LetGo(event.queue_pair);
  ShowReadable();
  return true;
}

void Outbox::LetGo(QueuePairId queue_pair) {
  Account& account = accounts_[queue_pair];
  account.establishing = false;
  completions_.insert(completions_.end(), account.held.begin(), account.held.end());
  account.held.clear();
}

void Outbox::MaybeCloseAccount(QueuePairId queue_pair) {
  Account& account = accounts_[queue_pair];
  if (account.untaken != 0) return;
  if (account.last.has_value()) events_.push_back(*std::move(account.last));
  account.last.reset();
  if (account.forgotten) accounts_.erase(queue_pair);
}

}  // namespace esdp::fabric::sim
