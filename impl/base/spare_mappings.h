#ifndef ESDP_IMPL_BASE_SPARE_MAPPINGS_H_
#define ESDP_IMPL_BASE_SPARE_MAPPINGS_H_

#include <algorithm>
#include <array>
#include <cstddef>

namespace esdp {

// What those that have ended leave of their private memory for the next ones. Where they are short,
// to map it, to touch it anew and to unmap it, which interrupts every processor that has a thread of
// the process, costs each of them more than its data does.
//
//   Owns:     a few mappings that nobody uses.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   none.
class SpareMappings {
 public:
  static constexpr size_t kMappingsMost = 8;

  // `mappings_max`: no more than kMappingsMost count.
  SpareMappings(size_t mappings_max, size_t bytes_max)
      : mappings_max_(std::min(mappings_max, kMappingsMost)), bytes_max_(bytes_max) {}
  ~SpareMappings() { Clear(); }
  SpareMappings(const SpareMappings&) = delete;
  SpareMappings& operator=(const SpareMappings&) = delete;

  // The caller's from now on, as it was left. Null: there is none of this size.
  std::byte* Take(size_t bytes);
  // Nobody reads or writes it any more. False: there is no room, and it stays the caller's.
  bool Keep(std::byte* base, size_t bytes);
  void Clear();

 private:
  struct Mapping {
    std::byte* base = nullptr;
    size_t bytes = 0;
  };

  const size_t mappings_max_, bytes_max_;
  std::array<Mapping, kMappingsMost> mappings_;
  size_t count_ = 0;
  size_t bytes_ = 0;
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_SPARE_MAPPINGS_H_
