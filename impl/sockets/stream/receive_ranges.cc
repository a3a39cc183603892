#include "impl/sockets/stream/receive_ranges.h"

#include <algorithm>
#include <functional>

namespace esdp::sockets {

bool ReceiveRanges::Claim(OpId by, std::span<const std::byte> bytes) {
  if (bytes.empty()) return true;
  const Range range{by, bytes.data(), bytes.data() + bytes.size()};
  // Of memory that has nothing to do with one another, so not by the operator.
  constexpr std::less<const std::byte*> before;
  const std::lock_guard lock(mutex_);
  const bool taken = std::ranges::any_of(claimed_, [&](const Range& other) {
    return before(range.begin, other.end) && before(other.begin, range.end);
  });
  if (!taken) claimed_.push_back(range);
  return !taken;
}

void ReceiveRanges::Release(OpId by) {
  const std::lock_guard lock(mutex_);
  std::erase_if(claimed_, [&](const Range& range) { return range.by == by; });
}

}  // namespace esdp::sockets
