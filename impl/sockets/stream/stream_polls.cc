#include "impl/sockets/stream/stream_polls.h"

#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/in_observer_call.h"
#include "impl/sockets/socket/socket_state.h"
#include "impl/sockets/stream/stream_state.h"

namespace esdp::sockets {

void StreamPolls::Watch() {
  if (!watches_.exchange(true)) stream_.AskForReadiness();
}

void StreamPolls::OnReadiness(const provider::Readiness& readiness) {
  {
    const std::lock_guard lock(mutex_);
    readiness_ = readiness;
  }
  TellChange();
}

void StreamPolls::OnEnd(bool in_order) {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    failed_ = !in_order;
    readiness_ = {.ended = true};
  }
  TellChange();
}

void StreamPolls::SetListener(std::shared_ptr<ReadinessListener> listener) {
  const std::lock_guard lock(mutex_);
  has_listener_ = true;
  listener_.swap(listener);  // what was there goes after the lock
}

void StreamPolls::ForgetListener(const ReadinessListener* listener) {
  std::shared_ptr<ReadinessListener> forgotten;  // goes after the lock
  const std::lock_guard lock(mutex_);
  if (listener_.get() != listener) return;
  has_listener_ = false;
  forgotten.swap(listener_);
}

std::shared_ptr<ReadinessListener> StreamPolls::Listener() const {
  if (!has_listener_.load(std::memory_order_relaxed)) return nullptr;
  const std::lock_guard lock(mutex_);
  return listener_;
}

uint32_t StreamPolls::Bits() const {
  const std::lock_guard lock(mutex_);
  const bool ended = readiness_.ended || over_;
  uint32_t bits = 0;
  if (readiness_.readable || ended) bits |= kPollReadable;
  if (readiness_.writable || over_) bits |= kPollWritable;  // a send fails without a wait
  if (readiness_.urgent) bits |= kPollUrgent;
  if (ended) bits |= kPollPeerEnded;
  if (failed_) bits |= kPollFailed;
  return bits;
}

absl::StatusOr<OpId> StreamPolls::Poll(uint32_t mask, const OpArgs& args) {
  absl::StatusOr<OpId> op = waiting_.Add(id_, mask, args);
  if (!op.ok()) return op;
  Watch();
  TellPolls();
  return op;
}

void StreamPolls::TellChange() {
  if (const auto listener = Listener(); listener != nullptr && listener->OnReadinessChange()) {
    ShowSoon(*listener);
  }
  TellPolls();
}

void StreamPolls::TellTransferEnded() {
  const auto listener = Listener();
  if (listener != nullptr && listener->OnTransferEnded()) ShowSoon(*listener);
}

void StreamPolls::ShowChange() {
  if (const auto listener = Listener()) listener->Show();
}

// Not with the shard lock: who is waked by it would only wait for that.
void StreamPolls::ShowSoon(ReadinessListener& listener) {
  const bool locked = InObserverCall::HeldByThisThread();
  if (!locked || !context_.ShowUnlocked(stream_.Self())) listener.Show();
}

void StreamPolls::TellPolls() {
  waiting_.Tell([this] { return Bits(); });
}

}  // namespace esdp::sockets
