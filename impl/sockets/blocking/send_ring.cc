#include "impl/sockets/blocking/send_ring.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "impl/base/bytes.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/memory/owned_memory.h"
#include "impl/sockets/memory/registration.h"

namespace esdp::sockets {
namespace {

// Of one send: its room is free again as a whole.
constexpr size_t kRunMax = 64 * 1024;

}  // namespace

absl::Status SendRing::Open(const std::shared_ptr<ContextState>& context, size_t bytes) {
  if (memory_.size() == bytes || !empty()) return absl::OkStatus();
  OwnedMemory owned = context->left_regions().spare_memory().Take(bytes);
  if (owned == nullptr) return NoMemory();
  const std::span<std::byte> memory(owned.get(), bytes);
  RegisterOptions options;
  options.local_write = false;
  absl::StatusOr<Region> region =
      Register(context, absl::MakeSpan(memory.data(), bytes), options, std::move(owned));
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  memory_ = memory;
  head_ = 0;
  return absl::OkStatus();
}

size_t SendRing::Stage(std::span<const std::byte> bytes) {
  if (empty()) head_ = 0;  // the pages that are touched already
  if (staged_ == 0 && head_ == memory_.size()) head_ = 0;
  const size_t begin = head_ + staged_;
  const size_t room =
      std::min({memory_.size() - used_ - staged_, memory_.size() - begin, kRunMax - staged_});
  const size_t length = std::min(bytes.size(), room);
  if (length == 0) return 0;
  CopyBytes(memory_.subspan(begin, length), bytes.first(length));
  staged_ += length;
  return length;
}

// It lies inside the region.
Slice SendRing::staged_slice() const { return region_.slice(head_, staged_).value_or(Slice()); }

void SendRing::OnPosted(OpId op) {
  posted_.PushBack() = {op, staged_};
  used_ += staged_;
  head_ += staged_;
  staged_ = 0;
}

bool SendRing::OnEnded(OpId op) {
  if (posted_.empty() || posted_.front().op != op) return false;
  used_ -= posted_.front().bytes;
  posted_.PopFront();
  return true;
}

}  // namespace esdp::sockets
