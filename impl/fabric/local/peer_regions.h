#ifndef ESDP_IMPL_FABRIC_LOCAL_PEER_REGIONS_H_
#define ESDP_IMPL_FABRIC_LOCAL_PEER_REGIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "impl/base/bytes.h"
#include "impl/base/shared_memory.h"

namespace esdp::fabric::local {

// Files that the peer has passed, mapped to be read. A peer may change what stands in them at any
// time, and nothing else.
//
//   Owns:     the mappings.
//   Threads:  not thread-safe.
//   Blocks:   Find: for the pages that are there for the first time, a few at once.
//   Units:    bytes.
//   Errors:   what cannot be had is not found: then the peer is asked for its bytes.
class PeerRegions {
 public:
  // Of one peer. What goes beyond is not mapped.
  static constexpr size_t kRegionsMax = 1024;
  static constexpr uint64_t kBytesMax = uint64_t{16} << 30;

  // False: what was passed is no memory that nobody can cut short, or is there already.
  bool Add(uint64_t number, uint64_t length, const Descriptor& file);
  // False where there is none.
  bool Remove(uint64_t number);
  bool Has(uint64_t number) const { return IndexOf(number).has_value(); }
  // At most `most` bytes of it from `offset` on, which no touch fails to read; empty where there
  // are none.
  ConstBytes Find(uint64_t number, uint64_t offset, uint64_t most);

  size_t size() const { return regions_.size(); }

 private:
  static constexpr size_t kStep = size_t{1} << 20;  // that is made resident at once

  struct Region {
    uint64_t number = 0;
    Mapping mapping;  // empty: it is not to be had
    std::vector<bool> resident;
  };

  std::optional<size_t> IndexOf(uint64_t number) const;

  std::vector<Region> regions_;
  uint64_t bytes_ = 0;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_PEER_REGIONS_H_
