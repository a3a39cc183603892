#include "impl/exs/readiness.h"

#include <utility>

#include "esdp/operation.h"
#include "impl/exs/library.h"
#include "impl/exs/socket.h"
#include "impl/switch/taker.h"

namespace esdp::exs {

Readiness::~Readiness() {
  if (full_) Library::Current()->inner().EndInterest();
}

void Readiness::Show() {
  if (!shows_.exchange(true)) Refresh(false);
}

void Readiness::Refresh(bool arrived) {
  if (!shows_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  if (place_.pair().has_ended() || !place_.Holds()) return;
  const libc::ToLibc with_the_pair;
  if (socket_.calls().connecting()) return ShowRoom(false);
  const absl::StatusOr<uint32_t> bits = Library::Current()->prober().Ask(socket_.socket());
  // Not connected yet, or closed.
  if (!bits.ok()) return ShowRoom(false);
  Update(*bits, arrived);
}

// With the lock.
void Readiness::Update(uint32_t bits, bool arrived) {
  const CallState& calls = socket_.calls();
  const bool readable = (bits & kPollReadable) != 0 || socket_.bytes_ahead() > 0;
  const bool urgent = (bits & kPollUrgent) != 0;
  const bool peer_ended = (bits & kPollPeerEnded) != 0;
  const bool failed = (bits & kPollFailed) != 0;
  if (failed) return End(true);
  if (peer_ended) place_.pair().ShowPeerEnd();
  place_.pair().ShowInput(readable, urgent, arrived);
  ShowRoom(!socket_.listening() && calls.has_room() && !calls.send_shut());
  if (peer_ended && calls.send_shut()) return End(false);
  uint32_t mask = kPollFailed;
  if (!readable) mask |= kPollReadable;
  if (!urgent) mask |= kPollUrgent;
  if (!peer_ended) mask |= kPollPeerEnded;
  Ask(mask);
}

// With the lock. While it is full somebody has to hear of the end of a send.
void Readiness::ShowRoom(bool room) {
  place_.pair().ShowRoom(room);
  if (std::exchange(full_, !room) == !room) return;
  InnerQueue& inner = Library::Current()->inner();
  room ? inner.EndInterest() : inner.BeginInterest();
}

// With the lock. Nothing changes any more, and nobody hears of a close(2) from here on.
void Readiness::End(bool failed) {
  place_.StopWatching();
  place_.pair().ShowEnd(failed);
}

// With the lock: what is not shown yet.
void Readiness::Ask(uint32_t mask) {
  if (asked_ != OpId::kNone) {
    // Its end asks anew.
    if ((mask & ~asked_for_) != 0) (void)socket_.socket().Cancel(asked_);
    return;
  }
  const absl::StatusOr<OpId> posted = Library::Current()->helper().Post(
      [&](const OpArgs& args) { return socket_.socket().Poll(mask, args); },
      [socket = socket_.weak_from_this()](const Event&) {
        if (const auto self = socket.lock(); self != nullptr) self->calls().readiness().OnAsked();
      });
  if (!posted.ok()) return;
  asked_ = *posted;
  asked_for_ = mask;
}

// On the helper's thread.
void Readiness::OnAsked() {
  {
    const std::lock_guard lock(mutex_);
    asked_ = OpId::kNone;
  }
  Refresh(true);
}

}  // namespace esdp::exs
