#include "impl/provider/transport/transport.h"

#include "impl/base/undo.h"

namespace esdp::provider {

absl::Status Transport::Open(fabric::Fabric& fabric, uint8_t place, const Shape& shape,
                             SpareMappings& spares) {
  fabric_ = &fabric;
  place_ = place;
  options_ = shape.queue_pair;
  const auto queue_pair = fabric.CreateQueuePair(options_);
  if (!queue_pair.ok()) return queue_pair.status();
  queue_pair_ = *queue_pair;
  Undo undo([&] { DestroyQueuePair(); });
  exposures_.Configure(queue_pair_, shape.remote_invalidate, shape.invalidations_max);
  absl::Status opened = pool_.Open(fabric, shape.pool, spares);
  if (opened.ok()) undo.Cancel();
  return opened;
}

void Transport::Refuse(const absl::Status& why) {
  Note(QueuePairCue::kFailed);
  failure_.NoteRefusal(why);
}

void Transport::Break(const absl::Status& why) {
  if (!TakesWork()) return;
  if (IsSettingUp(phase_)) return Refuse(why);
  // Once the end has begun its kDisconnected brings the cause, and `why` is but a sequel. What
  // still leaves before an orderly end is not cut short for it.
  if (phase_ == QueuePairPhase::kEnding) return;
  if (fabric_->Disconnect(queue_pair_, /*orderly=*/false).ok()) failure_.NoteRefusal(why);
}

bool Transport::End(bool orderly) {
  Note(QueuePairCue::kEndAsked);
  if (!TakesWork()) return false;
  if (fabric_->Disconnect(queue_pair_, orderly).ok()) return true;
  return phase_ == QueuePairPhase::kEnding;  // it has begun already
}

void Transport::Drop() {
  if (!TakesWork()) return;
  DestroyQueuePair();
  Note(QueuePairCue::kLost);
}

void Transport::Lose(std::vector<ExposureId>& withdrawn) {
  Note(QueuePairCue::kLost);
  exposures_.ReleaseAll(*fabric_, withdrawn);
}

void Transport::Destroy(std::vector<ExposureId>& withdrawn) {
  (void)fabric_->Disconnect(queue_pair_, /*orderly=*/false);
  DestroyQueuePair();
  exposures_.ReleaseAll(*fabric_, withdrawn);
}

void Transport::Replace(fabric::Fabric& fabric, uint8_t place) {
  DestroyQueuePair();
  failure_ = {};
  Note(QueuePairCue::kReplaced);
  queue_pair_ = fabric::QueuePairId::kNone;
  absl::Status moved = &fabric == fabric_ ? absl::OkStatus() : pool_.Move(*fabric_, fabric);
  if (moved.ok()) {
    fabric_ = &fabric;
    place_ = place;
    const auto queue_pair = fabric.CreateQueuePair(options_);
    moved = queue_pair.status();
    queue_pair_ = queue_pair.value_or(fabric::QueuePairId::kNone);
  }
  if (!moved.ok()) Refuse(moved);
  exposures_.Move(queue_pair_);
}

}  // namespace esdp::provider
