#include "impl/sockets/memory/bounce_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"

namespace esdp::sockets {
namespace {

constexpr uint32_t kInside = ~0u;
constexpr size_t kShareBlocks = BouncePool::kShareBytes / BouncePool::kBlockBytes;
constexpr size_t kExtentBlocks = 16 * kShareBlocks;  // of what is registered beside the pool

size_t BlocksOf(size_t bytes) {
  return std::max<size_t>(1, (bytes + BouncePool::kBlockBytes - 1) / BouncePool::kBlockBytes);
}

}  // namespace

// One after the other: they may be many.
BouncePool::~BouncePool() {
  while (pool_.next != nullptr) pool_.next = std::exchange(pool_.next->next, nullptr);
}

// Untouched pages cost nothing, so the memory is neither cleared nor written here. Not under the
// lock: registering waits for the shard lock, and whoever has that gives blocks back.
absl::Status BouncePool::Register(ContextState& context, Extent& extent) {
  const size_t bytes = extent.blocks.size() * kBlockBytes;
  OwnedMemory memory = MapMemory(bytes, Pages::kSmall);
  if (memory == nullptr) {
    return MakeError(ErrorKind::kMemory, "no memory for a bounce pool of " + std::to_string(bytes) +
                                             " bytes: lower bounce_pool_bytes");
  }
  auto region = context.shard().Register({memory.get(), bytes}, true, provider::Exposure::kNone);
  if (!region.ok()) return Adopt(region.status());
  extent.region = *std::move(region);
  extent.memory = std::move(memory);
  return absl::OkStatus();
}

absl::StatusOr<BouncePool::Range> BouncePool::Take(ContextState& context, Share& share,
                                                   size_t bytes) {
  const size_t count = BlocksOf(bytes);
  for (;;) {
    bool opened = false;
    {
      const std::lock_guard lock(mutex_);
      if (count > pool_.blocks.size()) {
        return MakeError(ErrorKind::kInvalidArgument,
                         std::to_string(bytes) + " bytes are more than the bounce pool of " +
                             std::to_string(pool_.blocks.size() * kBlockBytes) +
                             ": register the memory, or enlarge bounce_pool_bytes");
      }
      opened = pool_.region != nullptr;
      const bool is_own = share.blocks_ + count <= std::min(kShareBlocks, pool_.blocks.size());
      for (Extent* at = opened ? &pool_ : nullptr; at != nullptr;
           at = is_own ? at->next.get() : nullptr) {
        if (std::optional<Range> range = TakeFrom(*at, share, bytes)) return *range;
      }
      if (opened && !is_own) return Refusal(share);
    }
    if (absl::Status more = opened ? Grow(context) : Open(context); !more.ok()) return more;
  }
}

absl::Status BouncePool::Open(ContextState& context) {
  Extent first(pool_.blocks.size(), 0);
  if (absl::Status done = Register(context, first); !done.ok()) return done;
  {
    const std::lock_guard lock(mutex_);
    if (pool_.region == nullptr) {
      pool_.region = std::move(first.region);
      pool_.memory = std::move(first.memory);
      return absl::OkStatus();
    }
  }
  // Another thread was first.
  context.left_regions().Add(context, {std::move(first.region), std::move(first.memory)});
  return absl::OkStatus();
}

absl::Status BouncePool::Grow(ContextState& context) {
  auto extent = std::make_unique<Extent>(kExtentBlocks, 0);
  if (absl::Status done = Register(context, *extent); !done.ok()) return done;
  const std::lock_guard lock(mutex_);
  extent->first = newest_->first + static_cast<uint32_t>(newest_->blocks.size());
  newest_->next = std::move(extent);
  newest_ = newest_->next.get();
  return absl::OkStatus();
}

std::optional<BouncePool::Range> BouncePool::TakeFrom(Extent& extent, Share& share, size_t bytes) {
  const size_t count = BlocksOf(bytes);
  const std::optional<size_t> run = FindRun(extent, count);
  if (!run.has_value()) return std::nullopt;
  std::fill_n(extent.blocks.begin() + static_cast<std::ptrdiff_t>(*run), count, kInside);
  extent.blocks[*run] = static_cast<uint32_t>(count);
  used_ += count * kBlockBytes;
  share.blocks_ += count;
  share.copies_.fetch_add(1, std::memory_order_relaxed);
  share.copied_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  const size_t offset = *run * kBlockBytes;
  return Range{extent.first + static_cast<uint32_t>(*run),
               {extent.memory.get() + offset, bytes},
               {extent.region.get(), offset, bytes}};
}

std::optional<size_t> BouncePool::FindRun(const Extent& extent, size_t count) {
  size_t length = 0;
  for (size_t i = 0; i < extent.blocks.size(); ++i) {
    length = extent.blocks[i] == 0 ? length + 1 : 0;
    if (length == count) return i + 1 - count;
  }
  return std::nullopt;
}

absl::Status BouncePool::Refusal(const Share& share) const {
  return MakeError(ErrorKind::kSocketWindow, "the bounce pool is in use: this socket holds " +
                                                 std::to_string(share.blocks_ * kBlockBytes) +
                                                 " bytes, all together " + std::to_string(used_));
}

void BouncePool::Give(uint32_t block, Share& share) {
  const std::lock_guard lock(mutex_);
  Extent* extent = &pool_;
  while (block - extent->first >= extent->blocks.size()) extent = extent->next.get();
  const auto first = extent->blocks.begin() + (block - extent->first);
  const uint32_t count = *first;
  std::fill_n(first, count, 0u);
  used_ -= uint64_t{count} * kBlockBytes;
  share.blocks_ -= count;
}

uint64_t BouncePool::in_use() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace esdp::sockets
