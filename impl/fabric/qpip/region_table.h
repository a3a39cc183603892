#ifndef ESDP_IMPL_FABRIC_QPIP_REGION_TABLE_H_
#define ESDP_IMPL_FABRIC_QPIP_REGION_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/bytes.h"
#include "impl/base/handle_table.h"
#include "impl/base/pooled_map.h"
#include "impl/base/secure_random.h"
#include "impl/fabric/registration.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::qpip {

// Why a peer's access was refused. Each has a Terminate code of its own, which depends on the layer
// that looks.
enum class TagError : uint8_t { kNone, kInvalid, kOtherStream, kBounds, kWraps, kRights };

// What a peer's access comes to: memory, or why not.
struct TagAccess {
  TagError error = TagError::kInvalid;
  std::byte* data = nullptr;
};

enum class TagRight : uint8_t { kRead, kWrite };

// The registrations of one fabric and the steering tags over them. A tag's address space begins at
// 0 with the first byte that it shows, so that no pointer of ours is ever sent.
//
//   Owns:     its entries; never the memory.
//   Threads:  not thread-safe.
//   Blocks:   never; Bind and Invalidate do not allocate once as many tags were alive before.
//   Units:    bytes.
//   Errors:   NotFound for unknown regions and tags, OutOfRange for bad ranges, FailedPrecondition
//             for missing rights and for regions in use.
class RegionTable {
 public:
  static constexpr uint64_t kRegionBytesMax = uint64_t{1} << 46;

  RegionTable() { tags_.Reserve(kTagsFirst); }

  // --- this side's regions ---
  absl::StatusOr<RegionId> Register(std::byte* base, uint64_t length, Access access);
  absl::Status Deregister(RegionId id);
  absl::StatusOr<RemoteRange> RegionKey(RegionId id) const;

  // Whether [entry.address, + entry.length) lies in its region, and whether we may write there.
  absl::Status CheckLocal(const ScatterEntry& entry, bool writes) const;
  // Posted work names the region; Deregister is refused until every Hold has had its Release.
  void Hold(RegionId id);
  void Release(RegionId id);

  // --- windows: tags that serve one queue pair ---
  absl::StatusOr<RemoteRange> Bind(QueuePairId queue_pair, RegionId id, std::byte* address,
                                   uint64_t length, Access access);
  // kNone: it was a live window of this queue pair and is no longer.
  TagError Invalidate(QueuePairId queue_pair, uint32_t key);
  bool IsWindow(QueuePairId queue_pair, uint32_t key) const;
  // As Fabric::Written; and what adds to it, of a write that Resolve has allowed.
  uint64_t Written(QueuePairId queue_pair, uint32_t key) const;
  void NoteWritten(uint32_t key, uint64_t offset, uint64_t length);
  void InvalidateAll(QueuePairId queue_pair);

  // --- what a peer asks for ---
  // The tag is looked up for each access: it may have been withdrawn since the last one.
  TagAccess Resolve(QueuePairId queue_pair, uint32_t key, uint64_t offset, uint64_t length,
                    TagRight right) const;

  // A number nobody can guess that is no live tag and was none of the last few hundred.
  absl::StatusOr<uint32_t> DrawTag();

  size_t tags() const { return tags_.size(); }

 private:
  struct Region : Registration {
    uint32_t key = 0;  // 0: no remote right, no tag
  };

  struct Tag {
    QueuePairId queue_pair = QueuePairId::kNone;  // kNone: a region's own key, for every queue pair
    RegionId region = RegionId::kNone;
    std::byte* base = nullptr;
    uint64_t length = 0;
    bool readable = false;
    bool writable = false;
    uint64_t written = 0;  // without a gap
  };

  static constexpr size_t kTagsFirst = 64;
  static constexpr size_t kWithdrawnKept = 512;

  const Region* Find(RegionId id) const { return regions_.Find(static_cast<uint64_t>(id)); }
  Region* Find(RegionId id) { return regions_.Find(static_cast<uint64_t>(id)); }
  bool WasWithdrawn(uint32_t key) const;
  void Withdraw(uint32_t key);

  HandleTable<Region> regions_;
  PooledMap<uint32_t, Tag> tags_;
  SecureRandom random_;
  std::array<uint32_t, kWithdrawnKept> withdrawn_{};  // the latest, overwritten in a circle
  size_t next_withdrawn_ = 0;
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_REGION_TABLE_H_
