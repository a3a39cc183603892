#ifndef ESDP_IMPL_PROVIDER_TRANSPORT_SPARE_MAPPINGS_H_
#define ESDP_IMPL_PROVIDER_TRANSPORT_SPARE_MAPPINGS_H_

#include <algorithm>
#include <array>
#include <cstddef>

namespace esdp::provider {

// What connections that have ended leave of their private memory for the next ones. Where they are
// short, to map it, to touch it anew and to unmap it, which interrupts every processor that has a
// thread of the process, costs each of them more than its data does.
//
//   Owns:     a few mappings that nobody uses.
//   Threads:  the holder of the shard lock.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   Map: null, with errno.
class SpareMappings {
 public:
  // Beyond that what comes back is unmapped.
  static constexpr size_t kMappingsMax = 4;
  static constexpr size_t kBytesMax = size_t{2} << 20;

  explicit SpareMappings(size_t mappings_max = kMappingsMax)
      : mappings_max_(std::min(mappings_max, kMappingsMax)) {}
  ~SpareMappings() { Clear(); }
  SpareMappings(const SpareMappings&) = delete;
  SpareMappings& operator=(const SpareMappings&) = delete;

  // Of small pages, which are committed when they are first written. A spare one is not cleared.
  std::byte* Map(size_t bytes);
  // Nobody reads or writes it any more.
  void Give(std::byte* base, size_t bytes);
  void Clear();

 private:
  struct Mapping {
    std::byte* base = nullptr;
    size_t bytes = 0;
  };

  const size_t mappings_max_;
  std::array<Mapping, kMappingsMax> mappings_;
  size_t count_ = 0;
  size_t bytes_ = 0;
};

// The same of new memory alone.
std::byte* MapPrivate(size_t bytes);

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_TRANSPORT_SPARE_MAPPINGS_H_
