#include "impl/sockets/bounce_pool.h"

#include <algorithm>
#include <string>

#include "impl/sockets/context_state.h"
#include "impl/sockets/errors.h"

namespace esdp::sockets {
namespace {

constexpr uint32_t kInside = ~0u;

}  // namespace

// Untouched pages of the pool cost nothing, so it is neither cleared nor written here.
absl::Status BouncePool::Open(ContextState& context) {
  if (region_ != nullptr) return absl::OkStatus();
  const size_t bytes = blocks_.size() * kBlockBytes;
  OwnedMemory memory = MapMemory(bytes, Pages::kSmall);
  if (memory == nullptr) {
    return MakeError(ErrorKind::kMemory, "no memory for a bounce pool of " + std::to_string(bytes) +
                                             " bytes: lower bounce_pool_bytes");
  }
  auto region = context.shard().Register({memory.get(), bytes}, true, provider::Exposure::kNone);
  if (!region.ok()) return Adopt(region.status());
  region_ = *std::move(region);
  memory_ = std::move(memory);
  return absl::OkStatus();
}

absl::StatusOr<BouncePool::Range> BouncePool::Take(ContextState& context, size_t bytes) {
  const size_t count = std::max<size_t>(1, (bytes + kBlockBytes - 1) / kBlockBytes);
  const std::lock_guard lock(mutex_);
  if (count > blocks_.size()) {
    return MakeError(ErrorKind::kInvalidArgument,
                     std::to_string(bytes) + " bytes are more than the bounce pool of " +
                         std::to_string(blocks_.size() * kBlockBytes) +
                         ": register the memory, or enlarge bounce_pool_bytes");
  }
  if (absl::Status open = Open(context); !open.ok()) return open;
  const std::optional<size_t> run = FindRun(count);
  if (!run.has_value()) return MakeError(ErrorKind::kSocketWindow, "the bounce pool is in use");
  std::fill_n(blocks_.begin() + static_cast<std::ptrdiff_t>(*run), count, kInside);
  blocks_[*run] = static_cast<uint32_t>(count);
  used_ += count * kBlockBytes;
  const size_t offset = *run * kBlockBytes;
  return Range{
      static_cast<uint32_t>(*run), {memory_.get() + offset, bytes}, {region_.get(), offset, bytes}};
}

std::optional<size_t> BouncePool::FindRun(size_t count) const {
  size_t length = 0;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    length = blocks_[i] == 0 ? length + 1 : 0;
    if (length == count) return i + 1 - count;
  }
  return std::nullopt;
}

void BouncePool::Give(uint32_t block) {
  const std::lock_guard lock(mutex_);
  const uint32_t count = blocks_[block];
  std::fill_n(blocks_.begin() + block, count, 0u);
  used_ -= uint64_t{count} * kBlockBytes;
}

uint64_t BouncePool::in_use() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace esdp::sockets
