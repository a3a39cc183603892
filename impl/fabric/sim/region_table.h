#ifndef ESDP_IMPL_FABRIC_SIM_REGION_TABLE_H_
#define ESDP_IMPL_FABRIC_SIM_REGION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "impl/fabric/registration.h"
#include "impl/fabric/sim/random.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::sim {

enum class Right : uint8_t { kRemoteRead, kRemoteWrite };

// The memory of one fabric: what is registered, which keys lead to it, and for whom.
//
//   Owns:     registrations and windows, never the memory.
//   Threads:  one.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   as CONTRACT.md states them, M and W.
class RegionTable {
 public:
  // Keys are drawn from `random`, the world's.
  explicit RegionTable(Random& random) : random_(random) {}

  absl::StatusOr<RegionId> Register(std::byte* base, uint64_t length, Access access);
  absl::Status Deregister(RegionId id);
  absl::StatusOr<RemoteRange> RegionKey(RegionId id) const;

  absl::StatusOr<RemoteRange> Bind(QueuePairId queue_pair, RegionId id, std::byte* address,
                                   uint64_t length, Access access);
  bool IsWindowOf(QueuePairId queue_pair, uint32_t key) const;
  // As Fabric::Written; and what adds to it, of a write that Resolve has allowed.
  uint64_t Written(QueuePairId queue_pair, uint32_t key) const;
  void NoteWritten(RemoteRange remote, uint64_t length);
  // Withdraws a window of `queue_pair`; false when the key is none.
  bool Withdraw(QueuePairId queue_pair, uint32_t key);
  void WithdrawAll(QueuePairId queue_pair);

  // Whether an entry of local work is good; with `placing`, whether bytes may be written to it.
  absl::Status CheckLocal(const ScatterEntry& entry, bool placing) const;
  // Posted work names these regions: they cannot be deregistered until it is retired.
  void Hold(absl::Span<const ScatterEntry> entries);
  void Release(absl::Span<const ScatterEntry> entries);

  size_t regions() const { return regions_.size(); }
  size_t windows() const { return windows_; }
  uint64_t registered_bytes() const { return registered_bytes_; }

  // Where the peer of `queue_pair` may read or write `length` bytes with this key; null when it may
  // not.
  std::byte* Resolve(QueuePairId queue_pair, RemoteRange remote, uint64_t length,
                     Right right) const;

 private:
  struct Region : Registration {
    uint32_t key = 0;  // 0 without remote rights
  };
  // What a key leads to: a whole region, or a window of one queue pair.
  struct Key {
    RegionId region = RegionId::kNone;
    QueuePairId queue_pair = QueuePairId::kNone;  // kNone: any
    std::byte* base = nullptr;
    uint64_t length = 0;
    uint64_t first_address = 0;  // of base, in the key's space
    Access access;
    uint64_t written = 0;  // without a gap
  };

  const Region* Find(RegionId id) const {
    const auto found = regions_.find(id);
    return found == regions_.end() ? nullptr : &found->second;
  }
  uint32_t DrawKey();

  Random& random_;
  uint64_t last_region_ = 0;
  size_t windows_ = 0;
  uint64_t registered_bytes_ = 0;
  std::map<RegionId, Region> regions_;
  std::map<uint32_t, Key> keys_;
};

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_REGION_TABLE_H_
