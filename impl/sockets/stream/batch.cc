#include <algorithm>
#include <array>
#include <string>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/stream/stream_state.h"

// Many sends or receives in one turn.

namespace esdp::sockets {
namespace {

constexpr size_t kRequestsMax = 64;  // of one turn of the shard

}  // namespace

// Those that can be posted, in one turn. Why there are not more of them, where there are not.
absl::Status StreamState::PostTogether(EventType type, absl::Span<const Slice> slices,
                                       const TransferFlags& flags, const OpArgs& args,
                                       absl::Span<OpId> ids, size_t& posted) {
  std::array<provider::Request, kRequestsMax> requests;
  size_t count = 0;
  absl::Status refusal;
  for (posted = 0; posted < slices.size(); ++posted) {
    const absl::StatusOr<Operation*> operation = NewTransfer(type, flags, args);
    if (refusal = operation.status(); !refusal.ok()) break;
    if (!ids.empty()) ids[posted] = (*operation)->id;
    absl::StatusOr<bool> submits = OrNoMemory([&]() -> absl::StatusOr<bool> {
      if (absl::Status added = AddPiece(**operation, slices[posted], flags.is_send); !added.ok()) {
        return added;
      }
      return IsForShard(**operation);
    });
    if (refusal = submits.status(); !refusal.ok()) {
      context_.Discard(**operation);
      break;
    }
    if (*submits) {
      requests[count++] = {.kind = provider::Request::Kind::kTransfer,
                           .connection = connection_,
                           .transfer = &(*operation)->transfer};
    }
  }
  context_.shard().SubmitAll(std::span(requests).first(count));
  return refusal;
}

absl::StatusOr<size_t> StreamState::PostBatch(EventType type, absl::Span<const Slice> slices,
                                              const TransferFlags& flags, const OpArgs& args,
                                              absl::Span<OpId> ids) {
  const ContextCall call(&context_);
  if (!call.ok()) return call.status();
  if (slices.empty()) return MakeError(ErrorKind::kInvalidArgument, "a batch is empty");
  if (!ids.empty() && ids.size() != slices.size()) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "there is room for " + std::to_string(ids.size()) + " names of " +
                         std::to_string(slices.size()) + " operations: for all, or for none");
  }
  for (const Slice& slice : slices) {
    if (absl::Status legal = CheckSlice(slice, flags.is_send); !legal.ok()) return legal;
    if (absl::Status legal = flags.CheckLength(slice.length()); !legal.ok()) return legal;
  }
  size_t done = 0;
  if (immediate_.TriesAll(flags)) done = immediate_.TrySendAll(slices, args, ids);
  while (done < slices.size()) {
    const size_t count = std::min(slices.size() - done, kRequestsMax);
    size_t posted = 0;
    const absl::Status refusal = PostTogether(type, slices.subspan(done, count), flags, args,
                                              ids.empty() ? ids : ids.subspan(done, count), posted);
    done += posted;
    if (refusal.ok()) continue;
    if (done == 0) return refusal;
    break;
  }
  return done;
}

}  // namespace esdp::sockets
