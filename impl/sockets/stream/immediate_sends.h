#ifndef ESDP_IMPL_SOCKETS_STREAM_IMMEDIATE_SENDS_H_
#define ESDP_IMPL_SOCKETS_STREAM_IMMEDIATE_SENDS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/types/span.h"
#include "esdp/socket.h"
#include "impl/base/bytes.h"
#include "impl/sockets/stream/transfer_flags.h"

namespace esdp::sockets {

class ContextState;
class StreamState;

// Sends of a stream that are over within their call: small ones with nothing before them, that are
// copied. They take no place in the table of operations.
//
//   Owns:     nothing.
//   Threads:  any.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   none: what cannot be sent so goes the common way, which tells what is wrong with it.
class ImmediateSends {
 public:
  // Part of `stream`.
  ImmediateSends(StreamState& stream, ContextState& context, SocketId id)
      : stream_(stream), context_(context), id_(id) {}

  // From `zcopy_min` on bytes are not copied; up to `coalesce_max` they are small.
  void SetLimits(uint64_t zcopy_min, uint32_t coalesce_max);

  // Whether a send of so many bytes is to try.
  bool Tries(const TransferFlags& flags, uint64_t bytes);
  // Whether many are to, however the one before them went.
  bool TriesAll(const TransferFlags& flags) const;
  // Its name, once it has had its event; kNone where it has to go the common way.
  OpId TrySend(EventType type, ConstBytes bytes, const TransferFlags& flags, const OpArgs& args);
  // How many, the first of them, have had their events; the others have to go the common way.
  // Slices that are in order. `ids` is empty or takes their names.
  size_t TrySendAll(absl::Span<const Slice> slices, const OpArgs& args, absl::Span<OpId> ids);

  // Its bytes, where the processor reaches them; else nothing. Of a slice that is in order.
  static ConstBytes BytesOf(const Slice& slice);

 private:
  bool IsImmediate(ConstBytes bytes, const OpArgs& args) const;
  // In one message, as many as the queue has slots for.
  size_t TryMessage(EventType type, std::span<const ConstBytes> parts, bool tended,
                    const OpArgs& args, absl::Span<OpId> ids);

  StreamState& stream_;
  ContextState& context_;
  const SocketId id_;
  std::atomic<uint64_t> zcopy_min_{0};
  std::atomic<uint32_t> coalesce_max_{0};
  // Of the sends to come, those that need not try: one has just failed to.
  std::atomic<uint8_t> untried_{0};
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_STREAM_IMMEDIATE_SENDS_H_
