#ifndef ESDP_IMPL_PROVIDER_TRANSPORT_EXPOSURE_H_
#define ESDP_IMPL_PROVIDER_TRANSPORT_EXPOSURE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "impl/fabric/port.h"
#include "impl/provider/regions.h"

namespace esdp::provider {

// The session's name of what it shows.
enum class ExposureId : uint32_t {};
enum class PeerMay : uint8_t { kRead, kWrite };

// The keys that one connection has shown to its peer, one for each name, and how each is taken
// back.
//
//   kPerOperation  a window over exactly the range that is shown; where the fabric has none, a
//   registration of that range. kRegionKey     the region's own key, unless the peer may invalidate
//   any key of this connection: then a window. kNone          nothing.
//
//   Owns:     the windows and short registrations, until Withdraw, Invalidated or ReleaseAll.
//   Threads:  the holder of the shard lock.
//   Blocks:   never; allocates only while more are shown than ever before.
//   Units:    bytes.
//   Errors:   what cannot be exposed is answered with nothing: the bytes are then copied.
class Exposures {
 public:
  // `remote_invalidate`: our Hello has promised that a Send may invalidate any key of ours.
  // So many invalidations may be in the send queue at once.
  void Configure(fabric::QueuePairId queue_pair, bool remote_invalidate,
                 uint32_t invalidations_max) {
    queue_pair_ = queue_pair;
    remote_invalidate_ = remote_invalidate;
    invalidations_max_ = invalidations_max;
  }

  // To another queue pair; nothing is shown on the old one any more.
  void Move(fabric::QueuePairId queue_pair) { queue_pair_ = queue_pair; }

  std::optional<fabric::RemoteRange> Expose(fabric::Fabric& fabric, ExposureId id,
                                            const ResolvedRange& range, PeerMay peer_may);

  // It is not to be shown any more. True: its key waits to be invalidated. False: that is dead already.
  bool Withdraw(fabric::Fabric& fabric, ExposureId id);
  struct Invalidation {
    ExposureId id{};
    uint32_t key = 0;
  };
  // What is to be invalidated on the queue pair now, the oldest first, to be followed by Withdrawn when
  // that has completed; nothing while none waits, or the send queue has no room for another one.
  std::optional<Invalidation> NextInvalidation();
  void Withdrawn(ExposureId id);
  // The peer's Send has invalidated this key. One that we withdraw is no more the peer's to name: who
  // does that loses its connection.
  void Invalidated(uint32_t key);

  // After the queue pair has left the ready state: takes every key back. Those that were not to be
  // shown any more are appended to `withdrawn`.
  void ReleaseAll(fabric::Fabric& fabric, std::vector<ExposureId>& withdrawn);

  size_t size() const { return entries_.size(); }

 private:
  enum class Means : uint8_t { kWindow, kRegistration, kRegionKey };
  // What is of the entry: the peer may use it, its invalidation waits for room, or is posted.
  enum class Stage : uint8_t { kShown, kWaits, kPosted };
  struct Entry {
    ExposureId id{};
    Means means = Means::kWindow;
    Stage stage = Stage::kShown;
    uint32_t key = 0;
    fabric::RegionId registration = fabric::RegionId::kNone;
  };

  std::optional<fabric::RemoteRange> ShowWindow(fabric::Fabric& fabric, Entry& entry,
                                                const ResolvedRange& range, fabric::Access access);
  std::optional<fabric::RemoteRange> ShowRegistration(fabric::Fabric& fabric, Entry& entry,
                                                      const ResolvedRange& range,
                                                      fabric::Access access);
  std::optional<fabric::RemoteRange> ShowRegionKey(fabric::Fabric& fabric, Entry& entry,
                                                   const ResolvedRange& range);
  Entry* Find(ExposureId id);
  void Erase(Entry& entry);

  fabric::QueuePairId queue_pair_ = fabric::QueuePairId::kNone;
  bool remote_invalidate_ = false;
  uint32_t invalidations_max_ = 1;
  uint32_t waiting_ = 0, posted_ = 0;          // entries at these stages
  static constexpr size_t kEntriesFirst = 64;  // of both directions, and those on their way out

  std::vector<Entry> entries_;  // few: as many as may be shown at once
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_TRANSPORT_EXPOSURE_H_
