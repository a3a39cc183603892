#include "impl/sockets/stream/immediate_sends.h"

#include <array>
#include <memory>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/queue/event_queue_state.h"
#include "impl/sockets/stream/stream_state.h"

namespace esdp::sockets {
namespace {

// Sends that follow each other closely share messages: of them only the first has nothing before
// it, so after one that failed to be over at once so many do not try.
constexpr uint8_t kUntried = 15;

constexpr size_t kPartsMax = 64;  // of one message

}  // namespace

void ImmediateSends::SetLimits(uint64_t zcopy_min, uint32_t coalesce_max) {
  zcopy_min_ = zcopy_min;
  coalesce_max_ = coalesce_max;
}

ConstBytes ImmediateSends::BytesOf(const Slice& slice) {
  const std::byte* const base =
      provider::Shard::Describe(*SliceAccess::StateOf(slice)->memory()).base;
  if (base == nullptr) return {};
  return {base + slice.offset(), slice.length()};
}

bool ImmediateSends::TriesAll(const TransferFlags& flags) const {
  return flags.is_send && !flags.urgent && flags.unknown == 0 &&
         !stream_.behind_files().IsBusy(/*sends=*/true);
}

bool ImmediateSends::Tries(const TransferFlags& flags, uint64_t bytes) {
  if (!TriesAll(flags)) return false;
  if (bytes > coalesce_max_.load(std::memory_order_relaxed)) return false;
  const uint8_t untried = untried_.load(std::memory_order_relaxed);
  if (untried > 0) untried_.store(untried - 1, std::memory_order_relaxed);
  return untried == 0;
}

bool ImmediateSends::IsImmediate(ConstBytes bytes, const OpArgs& args) const {
  return !bytes.empty() && args.deadline == absl::InfiniteFuture() &&
         args.complete_at == CompleteAt::kReusable && args.path <= Path::kCopy &&
         (args.path == Path::kCopy || bytes.size() < zcopy_min_);
}

size_t ImmediateSends::TryMessage(EventType type, std::span<const ConstBytes> parts, bool tended,
                                  const OpArgs& args, absl::Span<OpId> ids) {
  const std::shared_ptr<QueueState>& queue = QueueAccess::StateOf(args.queue);
  if (queue == nullptr || &queue->context() != &context_ ||
      !stream_.CanTransfer(/*is_send=*/true).ok()) {
    return 0;
  }
  const uint32_t slots = queue->ReserveUpTo(static_cast<uint32_t>(parts.size()));
  if (slots == 0) return 0;
  ImmediateSend send;
  send.parts = parts.first(slots);
  for (const ConstBytes bytes : send.parts) send.length += bytes.size();
  send.type = type;
  send.ids = ids;
  send.socket = id_;
  send.cookie = args.cookie;
  send.queue = queue.get();
  send.tended = tended;
  // The socket, the queue and the bytes are the caller's during the call, and the socket's last
  // event comes under the shard lock as this send's does: nothing has to be held.
  if (context_.shard().TrySendImmediate(stream_.connection(), send)) return slots;
  queue->Unreserve(slots);
  untried_.store(kUntried, std::memory_order_relaxed);
  return 0;
}

OpId ImmediateSends::TrySend(EventType type, ConstBytes bytes, const TransferFlags& flags,
                             const OpArgs& args) {
  if (!IsImmediate(bytes, args)) return OpId::kNone;
  OpId id = OpId::kNone;
  (void)TryMessage(type, {&bytes, 1}, flags.tended, args, absl::MakeSpan(&id, 1));
  return id;
}

size_t ImmediateSends::TrySendAll(absl::Span<const Slice> slices, const OpArgs& args,
                                  absl::Span<OpId> ids) {
  const uint64_t most = coalesce_max_.load(std::memory_order_relaxed);
  size_t done = 0;
  while (done < slices.size()) {
    std::array<ConstBytes, kPartsMax> parts;
    size_t count = 0;
    for (uint64_t length = 0; count < parts.size() && done + count < slices.size(); ++count) {
      const ConstBytes bytes = BytesOf(slices[done + count]);
      length += bytes.size();
      if (!IsImmediate(bytes, args) || length > most) break;
      parts[count] = bytes;
    }
    if (count == 0) break;
    const size_t sent =
        TryMessage(EventType::kSend, std::span(parts).first(count), /*tended=*/false, args,
                   ids.empty() ? ids : ids.subspan(done, count));
    done += sent;
    if (sent < count) break;
  }
  return done;
}

}  // namespace esdp::sockets
