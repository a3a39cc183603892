#ifndef ESDP_IMPL_EXS_AHEAD_H_
#define ESDP_IMPL_EXS_AHEAD_H_

#include <atomic>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace esdp::exs {

// Bytes of a stream that were read ahead, for a receive that looks and takes nothing.
//
//   Owns:     memory for them, from its first use on.
//   Threads:  size any; the rest is whoever carries out a receive, one at a time.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   -
class Ahead {
 public:
  static constexpr size_t kBytes = 64 * 1024;

  size_t size() const { return size_.load(std::memory_order_acquire); }
  // Its last byte is urgent, and nothing behind it is read ahead.
  bool urgent() const { return urgent_; }
  // Where more is to be put; Add says how much was.
  absl::Span<std::byte> Room();
  void Add(size_t bytes, bool urgent);
  size_t Copy(absl::Span<std::byte> to, size_t offset) const;
  void Drop(size_t bytes);

 private:
  std::vector<std::byte> memory_;
  size_t begin_ = 0;
  std::atomic<size_t> size_{0};
  bool urgent_ = false;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_AHEAD_H_
