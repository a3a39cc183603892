#ifndef ESDP_IMPL_FABRIC_SOFT_REGION_TABLE_H_
#define ESDP_IMPL_FABRIC_SOFT_REGION_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/handle_table.h"
#include "impl/base/pooled_map.h"
#include "impl/fabric/registration.h"
#include "impl/fabric/soft/key_source.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::soft {

// Why a peer's access was refused. Protocols that tell the peer have a code for each.
enum class TagError : uint8_t { kNone, kInvalid, kOtherStream, kBounds, kWraps, kRights };

// What a peer's access comes to: memory, or why not.
struct TagAccess {
  TagError error = TagError::kInvalid;
  std::byte* data = nullptr;
};

enum class TagRight : uint8_t { kRead = 1, kWrite = 2 };

// The registrations of one fabric in software and the tags over them: what each key shows, and to
// whom. The addresses under a key are not those of the memory, so that no pointer of ours is ever
// sent: a window's begin at 0, a region's where the source of keys says.
//
//   Owns:     its entries and the source of its keys; never the memory.
//   Threads:  not thread-safe.
//   Blocks:   never; Bind and Invalidate do not allocate once as many tags were alive before.
//   Units:    bytes.
//   Errors:   those of CONTRACT.md, M and W; Unavailable where no key can be drawn. A call that
//             fails changes nothing.
class RegionTable {
 public:
  static constexpr uint64_t kRegionBytesMax = uint64_t{1} << 46;

  explicit RegionTable(std::unique_ptr<KeySource> keys = std::make_unique<SecureKeys>())
      : keys_(std::move(keys)) {
    tags_.Reserve(kTagsFirst);
  }

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
  void NoteWritten(uint32_t key, uint64_t address, uint64_t length);
  void InvalidateAll(QueuePairId queue_pair);

  // --- what a peer asks for ---
  // The tag is looked up for each access: it may have been withdrawn since the last one.
  TagAccess Resolve(QueuePairId queue_pair, uint32_t key, uint64_t address, uint64_t length,
                    TagRight right) const {
    const auto found = tags_.find(key);
    if (found == tags_.end()) return {TagError::kInvalid, nullptr};
    const Tag& tag = found->second;
    if (tag.queue_pair != QueuePairId::kNone && tag.queue_pair != queue_pair) {
      return {TagError::kOtherStream, nullptr};
    }
    if ((tag.rights & static_cast<uint8_t>(right)) == 0) return {TagError::kRights, nullptr};
    const uint64_t offset = address - tag.first_address;
    if (offset <= tag.length && length <= tag.length - offset) {
      return {TagError::kNone, tag.base + offset};
    }
    return {address + length < address ? TagError::kWraps : TagError::kBounds, nullptr};
  }

  // A key of the source that is no live tag and was none of the last few hundred.
  absl::StatusOr<uint32_t> DrawTag();

  size_t tags() const { return tags_.size(); }
  size_t regions() const { return regions_.size(); }
  size_t windows() const { return tags_.size() - region_keys_; }
  uint64_t registered_bytes() const { return registered_bytes_; }

 private:
  struct Region : Registration {
    uint32_t key = 0;  // 0: no remote right, no tag
  };

  struct Tag {
    QueuePairId queue_pair = QueuePairId::kNone;  // kNone: a region's own key, for every queue pair
    RegionId region = RegionId::kNone;
    std::byte* base = nullptr;
    uint64_t length = 0;
    uint64_t first_address = 0;  // of base, in the key's space
    uint8_t rights = 0;          // of TagRight
    uint64_t written = 0;        // without a gap
  };

  static constexpr size_t kTagsFirst = 64;
  static constexpr size_t kWithdrawnKept = 512;

  const Region* Find(RegionId id) const { return regions_.Find(static_cast<uint64_t>(id)); }
  Region* Find(RegionId id) { return regions_.Find(static_cast<uint64_t>(id)); }
  static uint8_t RightsOf(Access access);
  // Null for a key that is no live window of this queue pair.
  const Tag* FindWindow(QueuePairId queue_pair, uint32_t key) const;
  bool WasWithdrawn(uint32_t key) const;
  void Withdraw(uint32_t key);

  HandleTable<Region> regions_;
  PooledMap<uint32_t, Tag> tags_;
  std::unique_ptr<KeySource> keys_;
  size_t region_keys_ = 0;  // of tags_, those of whole regions
  uint64_t registered_bytes_ = 0;
  std::array<uint32_t, kWithdrawnKept> withdrawn_{};  // the latest, overwritten in a circle
  size_t next_withdrawn_ = 0;
};

}  // namespace esdp::fabric::soft

#endif  // ESDP_IMPL_FABRIC_SOFT_REGION_TABLE_H_
