#ifndef ESDP_IMPL_FABRIC_VERBS_REGION_TABLE_H_
#define ESDP_IMPL_FABRIC_VERBS_REGION_TABLE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/handle_table.h"
#include "impl/base/ring.h"
#include "impl/fabric/registration.h"
#include "impl/fabric/types.h"
#include "impl/fabric/verbs/device.h"

namespace esdp::fabric::verbs {

// The registrations of one fabric and its memory windows of type 2.
//
//   Owns:     ibv_mr and ibv_mw; never the memory.
//   Threads:  not thread-safe.
//   Blocks:   as long as the system takes to pin or unpin memory.
//   Units:    bytes; addresses of keys are the process' own.
//   Errors:   those of the port; ResourceExhausted names the limit on locked memory.
class RegionTable {
 public:
  explicit RegionTable(Device& device) : device_(device) {}
  ~RegionTable();
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // --- this side's regions ---
  absl::StatusOr<RegionId> Register(std::byte* base, uint64_t length, Access access);
  absl::StatusOr<RegionId> RegisterDmaBuf(const DmaBuf& buffer, std::byte* base, uint64_t length,
                                          Access access);
  absl::Status Deregister(RegionId id);
  // Whether the processor reaches all of these entries.
  bool AreReachable(const ScatterEntry* entries, uint32_t count) const;
  absl::StatusOr<RemoteRange> RegionKey(RegionId id) const;
  // Whether [entry.address, + entry.length) lies in its region, and whether we may write there.
  absl::Status CheckLocal(const ScatterEntry& entry, bool writes) const;
  // Posted work names the region, in an entry that CheckLocal found good; Deregister is refused
  // until every Hold has had its Release. Returns the device's key.
  uint32_t Hold(RegionId id);
  void Release(RegionId id);

  // --- windows ---
  // What ibv_post_send is to be given; Bound once it was taken.
  struct Binding {
    ibv_mw* window = nullptr;
    uint32_t key = 0;
    ibv_mw_bind_info info{};
  };
  absl::StatusOr<Binding> PrepareBind(RegionId id, std::byte* address, uint64_t length,
                                      Access access);
  void Bound(QueuePairId queue_pair, const Binding& binding, RegionId id);
  void NotBound(const Binding& binding);
  bool IsWindow(QueuePairId queue_pair, uint32_t key) const;
  // The device has invalidated it. False: no live window of this queue pair.
  bool Invalidated(QueuePairId queue_pair, uint32_t key);
  // The queue pair is no longer connected: its windows are let go of one by one, or all.
  bool Drop(QueuePairId queue_pair, uint32_t key);
  void DropAll(QueuePairId queue_pair);

 private:
  struct Region : Registration {
    ibv_mr* memory = nullptr;
    bool reachable = true;  // by the processor
  };
  struct Window {
    ibv_mw* window = nullptr;
    QueuePairId queue_pair = QueuePairId::kNone;
    RegionId region = RegionId::kNone;
  };

  // Windows wait so long for their next use that a key does not come back soon.
  static constexpr size_t kRestingMin = 16;

  const Region* Find(RegionId id) const { return regions_.Find(static_cast<uint64_t>(id)); }
  Region* Find(RegionId id) { return regions_.Find(static_cast<uint64_t>(id)); }
  absl::StatusOr<RegionId> Keep(Region region);
  ibv_mw* TakeWindow();

  Device& device_;
  HandleTable<Region> regions_;
  uint32_t unreachable_ = 0;                    // regions
  absl::flat_hash_map<uint32_t, Window> live_;  // by key
  GrowingRing<ibv_mw*> resting_;
};

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_REGION_TABLE_H_
