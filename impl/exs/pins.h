#ifndef ESDP_IMPL_EXS_PINS_H_
#define ESDP_IMPL_EXS_PINS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "esdp/context.h"
#include "impl/exs/transfer.h"

namespace esdp::exs {

// Pins registers memory for the time of one transfer, and knows how much of the process is
// registered so.
//
//   Owns:     nothing: the region is the caller's.
//   Threads:  any.
//   Blocks:   as long as the fabric takes.
//   Units:    bytes.
//   Errors:   those of Context::Register; ResourceExhausted beyond the limit.
class Pins {
 public:
  // The bytes that may be registered at a time. Without end as it is made.
  void SetLimit(uint64_t bytes) { limit_.store(bytes); }

  absl::StatusOr<Region> Take(Context& context, Way way, absl::Span<std::byte> memory);
  // The transfer has ended.
  void Return(uint64_t bytes) { now_.fetch_sub(bytes); }

  uint64_t now() const { return now_.load(); }
  // The most that ever was, since the last call.
  uint64_t TakeMost() { return most_.exchange(now_.load()); }

 private:
  std::atomic<uint64_t> limit_{UINT64_MAX};
  std::atomic<uint64_t> now_{0};
  std::atomic<uint64_t> most_{0};
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_PINS_H_
