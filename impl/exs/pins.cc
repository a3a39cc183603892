#include "impl/exs/pins.h"

#include <algorithm>

#include "absl/status/status.h"

namespace esdp::exs {

absl::StatusOr<Region> Pins::Take(Context& context, Way way, absl::Span<std::byte> memory) {
  const uint64_t bytes = memory.size();
  const uint64_t before = now_.fetch_add(bytes);
  const uint64_t limit = limit_.load();
  if (before > limit || bytes > limit - before) {
    Return(bytes);
    return absl::ResourceExhaustedError("the limit of what is registered for transfers");
  }
  absl::StatusOr<Region> region =
      way == Way::kSending ? context.RegisterReadOnly(memory) : context.Register(memory);
  if (!region.ok()) {
    Return(bytes);
    return region;
  }
  uint64_t most = most_.load();
  while (most < before + bytes && !most_.compare_exchange_weak(most, before + bytes)) continue;
  return region;
}

}  // namespace esdp::exs
