#include "esdp/region.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/memory/region_state.h"

namespace esdp {
namespace sockets {

RegionState::RegionState(std::shared_ptr<ContextState> context,
                         std::shared_ptr<provider::MemoryRegion> memory,
                         const RegisterOptions& options, uint64_t length, OwnedMemory owned)
    : context_(std::move(context)),
      memory_(std::move(memory)),
      options_(options),
      length_(length),
      owned_(std::move(owned)),
      anchor_(RegionAnchor::Take(this, &number_)) {
  context_->CountRegion(1, static_cast<int64_t>(length_));
}

RegionState::~RegionState() {
  anchor_->Leave();
  context_->CountRegion(-1, -static_cast<int64_t>(length_));
  // In a child of fork something of its own may lie there.
  if (context_->is_of_parent() && !owned_.get_deleter().forks) (void)owned_.release();
  if (open()) context_->left_regions().Add(*context_, {std::move(memory_), std::move(owned_)});
}

RegionInfo RegionState::Describe() const {
  const provider::RegionDetails details = provider::Shard::Describe(*memory_);
  RegionInfo info;
  info.base = details.base;
  info.length = details.length;
  info.chunks = details.chunks;
  info.operations = details.operations;
  info.exposure = options_.exposure;
  info.local_write = options_.local_write;
  info.registration_time = absl::Nanoseconds(details.registration_time.count());
  return info;
}

absl::Status RegionState::Close() {
  const ContextCall call(context_.get());
  if (!call.ok()) return call.status();
  if (!open()) return MakeError(ErrorKind::kBadHandle, "the region has been closed");
  const absl::Status done = context_->shard().Deregister(*memory_);
  if (done.ok()) open_.store(false, std::memory_order_release);
  return Adopt(done);
}

}  // namespace sockets

Slice Region::slice() const {
  Slice slice;
  if (state_ == nullptr) return slice;
  slice.anchor_ = state_->anchor();
  slice.number_ = state_->number();
  slice.length_ = state_->length();
  return slice;
}

absl::StatusOr<Slice> Region::slice(uint64_t offset, uint64_t length) const {
  return sockets::OrNoMemory([&]() -> absl::StatusOr<Slice> {
    using sockets::MakeError;
    if (state_ == nullptr) return MakeError(ErrorKind::kBadHandle, "the region handle is empty");
    if (!state_->open()) return MakeError(ErrorKind::kWrongState, "the region has been closed");
    if (offset > state_->length() || length > state_->length() - offset) {
      return MakeError(ErrorKind::kBadRange, std::to_string(length) + " bytes from " +
                                                 std::to_string(offset) +
                                                 " on leave the region of " +
                                                 std::to_string(state_->length()) + " bytes");
    }
    Slice slice = this->slice();
    slice.offset_ = offset;
    slice.length_ = length;
    return slice;
  });
}

RegionInfo Region::info() const { return state_ == nullptr ? RegionInfo{} : state_->Describe(); }

absl::Status Region::Close() {
  return sockets::OrNoMemory([&]() -> absl::Status {
    if (state_ == nullptr) {
      return sockets::MakeError(ErrorKind::kBadHandle, "the region handle is empty");
    }
    return state_->Close();
  });
}

absl::Status Region::Close(absl::Time deadline) {
  return sockets::OrNoMemory([&]() -> absl::Status {
    absl::Status done = Close();
    if (KindOf(done) != ErrorKind::kBusy) return done;
    sockets::ContextState& context = state_->its_context();
    const sockets::ContextCall call(&context);
    if (!call.ok()) return call.status();
    // From here on only the time that passes counts, whatever becomes of the wall clock.
    const Time last = context.ToShardTime(deadline);
    for (;; done = Close()) {
      if (KindOf(done) != ErrorKind::kBusy) return done;
      if (!context.Pause(last)) {
        return sockets::MakeError(ErrorKind::kDeadlineExceeded,
                                  "operations still use the region at the deadline");
      }
    }
  });
}

}  // namespace esdp
