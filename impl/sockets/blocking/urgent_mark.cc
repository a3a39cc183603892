#include "impl/sockets/blocking/urgent_mark.h"

#include "absl/time/time.h"
#include "esdp/operation.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/stream/stream_state.h"

namespace esdp::sockets {

void UrgentMark::Hear() {
  const std::lock_guard lock(mutex_);
  stream_.polls().Watch();
  while ((stream_.polls().Bits() & kPollUrgent) != 0) {
    if (lane_ == nullptr) lane_ = std::make_unique<Lane>(context_, 1);
    const absl::StatusOr<OpId> op = stream_.AwaitUrgent({.queue = lane_->queue()});
    if (!op.ok()) return;
    absl::StatusOr<Event> event = lane_->Next(absl::InfinitePast(), OnSignal::kGoesOn);
    if (!event.ok()) {
      stream_.EndShort(*op);  // another one has heard of it
      event = lane_->NextOfOthers();
    }
    if (!event.ok() || !event->ok() || event->eof()) return;
    ++heard_;
  }
}

bool UrgentMark::awaited() const {
  return heard_.load() + ((stream_.polls().Bits() & kPollUrgent) != 0 ? 1 : 0) > 0;
}

void UrgentMark::Meet(std::byte byte) {
  --heard_;
  state_.store(kHere | std::to_integer<uint32_t>(byte));
}

absl::StatusOr<std::byte> UrgentMark::Take(bool keep) {
  uint32_t now = state_.load();
  do {
    if (awaited()) return MakeError(ErrorKind::kWouldBlock, "the urgent byte has not come yet");
    if ((now & (kHere | kTaken)) != kHere) {
      return MakeError(ErrorKind::kInvalidArgument, "there is no urgent byte");
    }
  } while (!keep && !state_.compare_exchange_weak(now, now | kTaken));
  return std::byte(now & kByte);
}

}  // namespace esdp::sockets
