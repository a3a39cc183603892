#ifndef ESDP_IMPL_PROVIDER_TRANSPORT_TRANSPORT_H_
#define ESDP_IMPL_PROVIDER_TRANSPORT_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "impl/base/bytes.h"
#include "impl/fabric/port.h"
#include "impl/provider/transport/buffer_pool.h"
#include "impl/provider/transport/exposure.h"
#include "impl/provider/transport/failure.h"
#include "impl/provider/transport/queue_pair_phase.h"

namespace esdp::provider {

// What carries one session, whatever that makes of its messages: a queue pair of a fabric, private
// buffers, the keys that the peer was shown, and what the fabric said of the end.
//
//   Owns:     all of these. The queue pair may give way to another one, also of another fabric;
//             buffers stay.
//   Threads:  the holder of the shard lock.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   Open undoes what it did. What the fabric refuses later is noted in failure(), and the
//             session hears of the end by the fabric's event or by the answer of the call. The
//             queue pair is to be destroyed, and Release to have succeeded, before it goes.
class Transport {
 public:
  struct Shape {
    fabric::QueuePairOptions queue_pair;  // of every one that it gets, on whatever fabric
    BufferPool::Shape pool;
    bool remote_invalidate = false;  // the peer may invalidate any key that it is shown
    uint32_t invalidations_max = 1;  // in the send queue at once, beside what the core counts
  };

  // `place` is the fabric's among those of the shard. The spare mappings outlive it.
  absl::Status Open(fabric::Fabric& fabric, uint8_t place, const Shape& shape,
                    SpareMappings& spares);
  // FailedPrecondition while the fabric has work that names the buffers.
  absl::Status Release() { return pool_.Close(*fabric_); }

  fabric::Fabric& fabric() const { return *fabric_; }
  uint8_t place() const { return place_; }
  fabric::QueuePairId queue_pair() const { return queue_pair_; }
  const fabric::QueuePairOptions& options() const { return options_; }
  BufferPool& pool() { return pool_; }
  Exposures& exposures() { return exposures_; }
  TransportFailure& failure() { return failure_; }
  const TransportFailure& failure() const { return failure_; }

  QueuePairPhase phase() const { return phase_; }
  bool Note(QueuePairCue cue) { return Move(phase_, cue); }
  // Work may be posted, and what comes back counts.
  bool TakesWork() const { return provider::TakesWork(phase_); }
  bool may_connect() const { return phase_ != QueuePairPhase::kFailed; }

  // Where the header of a message goes that has no send buffer: the slots are used in turn.
  Bytes NextHeader(size_t bytes) { return pool_.HeaderSlot(next_header_++).first(bytes); }

  // A call of the set-up was refused: it will not connect.
  void Refuse(const absl::Status& why);
  // Ends without the fabric having said so; while it is set up it only will not connect.
  void Break(const absl::Status& why);
  // Asks for the end, which kDisconnected tells of. False: nothing will be heard of that, since
  // there is no queue pair or it has no peer. Drop is then what is left to do.
  bool End(bool orderly);
  // Destroys a queue pair that has no peer.
  void Drop();
  // The queue pair has left the ready state and all its work is back: takes every key back. Those
  // whose invalidation had been posted are appended to `withdrawn`.
  void Lose(std::vector<ExposureId>& withdrawn);
  // Breaks it off and destroys it, whatever its phase; takes every key back.
  void Destroy(std::vector<ExposureId>& withdrawn);
  void DestroyQueuePair() { (void)fabric_->DestroyQueuePair(queue_pair_); }
  // Another queue pair, which is not connected, of the fabric at `place`; none where that refuses
  // it, or the buffers.
  void Replace(fabric::Fabric& fabric, uint8_t place);

 private:
  friend class ReceiveGrowth;

  fabric::Fabric* fabric_ = nullptr;
  fabric::QueuePairId queue_pair_ = fabric::QueuePairId::kNone;
  uint8_t place_ = 0;
  QueuePairPhase phase_ = QueuePairPhase::kConnecting;
  uint64_t next_header_ = 0;
  BufferPool pool_;
  Exposures exposures_;
  fabric::QueuePairOptions options_;
  TransportFailure failure_;
  uint64_t growth_ = 0;  // of the receive buffers, as ReceiveGrowth counts it
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_TRANSPORT_TRANSPORT_H_
