#ifndef ESDP_IMPL_FABRIC_HALF_OPEN_H_
#define ESDP_IMPL_FABRIC_HALF_OPEN_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "impl/base/handle_table.h"
#include "impl/base/time.h"
#include "impl/fabric/address_key.h"
#include "impl/fabric/types.h"

namespace esdp::fabric {

// Set-ups that strangers have begun and not ended, and which of them goes first where there is no
// room for more.
//
//   Owns:     nothing.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    instants of the fabric's clock.
//   Errors:   Add: std::bad_alloc, with nothing changed.
class HalfOpen {
 public:
  // Nobody goes who had less, unless its address has more than its share.
  static constexpr Duration kTimeToSpeak = std::chrono::seconds(1);

  // The name it has here.
  uint64_t Add(uint64_t owner, const Address& peer, Time now);
  void SetOwner(uint64_t name, uint64_t owner) { entries_.Find(name)->owner = owner; }
  // It has come about, or is gone.
  void Remove(uint64_t name);
  size_t size() const { return entries_.size(); }
  // The oldest of the address that has most of them; an owner. Nothing where each of them may stay
  // for now.
  std::optional<uint64_t> Choose(Time now) const;

 private:
  struct Entry {
    uint64_t owner = 0;
    AddressKey address{};
    Time since{};
    uint64_t before = kNoHandle;  // the next older one
    uint64_t after = kNoHandle;
  };
  // So many quarters of all may be of one address while others are there.
  static constexpr size_t kShareInQuarters = 3;
  bool IsBeyondShare(size_t of_address) const {
    return of_address < size() && 4 * of_address > kShareInQuarters * size();
  }

  HandleTable<Entry> entries_;
  uint64_t oldest_ = kNoHandle;
  uint64_t youngest_ = kNoHandle;
  std::unordered_map<AddressKey, size_t, AddressKeyHash> of_address_;
};

}  // namespace esdp::fabric

#endif  // ESDP_IMPL_FABRIC_HALF_OPEN_H_
