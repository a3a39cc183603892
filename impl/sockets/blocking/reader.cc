#include "impl/sockets/blocking/reader.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "impl/base/bytes.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/memory/owned_memory.h"
#include "impl/sockets/memory/registration.h"
#include "impl/sockets/stream/stream_state.h"
#include "impl/sockets/stream/transfer_flags.h"

namespace esdp::sockets {
namespace {

constexpr size_t kAheadBytes = 256 * 1024;
constexpr uint32_t kDepth = 1;  // one receive at a time

// Of a receive that the peer is not told of. Who does not wait wakes nobody for it.
TransferFlags Hidden(bool wait_all, bool waits) {
  return {.wait_all = wait_all, .shown = false, .tended = !waits};
}

}  // namespace

BlockingReader::BlockingReader(std::shared_ptr<ContextState> context, StreamState& stream,
                               BlockingUsage& usage)
    : context_(std::move(context)),
      stream_(stream),
      usage_(usage),
      lane_(context_, kDepth),
      urgent_(context_, stream) {}

absl::StatusOr<size_t> BlockingReader::Read(Pieces pieces, const ReadArgs& args,
                                            const BlockingOptions& options) {
  const bool waits = args.wait && args.min > 0;
  const Lane::Turn turn(lane_, waits ? args.deadline : absl::InfinitePast());
  if (!turn.status().ok()) return turn.status();
  size_t room = 0;
  for (const auto& piece : pieces) room += piece.size();
  if (room == 0 && args.min <= 1) return size_t{0};
  if (args.min > room) {
    return MakeError(ErrorKind::kInvalidArgument, "min is more than there is room for");
  }
  Call call{args, options};
  call.min = args.wait ? args.min : 0;
  apart_ = options.urgent == UrgentBytes::kApart;
  if (args.peek) {
    Peek(pieces, call);
  } else {
    for (const auto& piece : pieces) {
      if (!call.done()) Fill({piece.data(), piece.size()}, call);
    }
    if (urgent_.any()) [[unlikely]]
      ForgetUrgent(call);
  }
  if (call.moved > 0) return call.moved;
  if (!call.status.ok()) return call.status;
  if (!call.eof) return MakeError(ErrorKind::kWouldBlock, "there is nothing to read");
  return size_t{0};
}

void BlockingReader::Fill(std::span<std::byte> memory, Call& call) {
  while (!memory.empty() && !call.done()) {
    if (IsAtMark()) [[unlikely]] {
      PassMark(call);
      continue;
    }
    const size_t before = call.moved;
    const size_t taken = TakeAhead(memory, /*keep=*/false);
    call.moved += taken;
    if (taken == 0) {
      if (call.dry && call.moved > 0 && call.moved >= call.min) {
        call.ended = true;
        return;
      }
      Receive(memory, call);
      call.dry = call.moved - before < memory.size() && !shown_;
    }
    memory = memory.subspan(std::min(memory.size(), call.moved - before));
  }
}

void BlockingReader::Receive(std::span<std::byte> memory, Call& call) {
  if (shown_) {
    if (memory.size() >= call.options.zero_copy_from && ReceiveDirect(memory, call)) return;
    return ReadAhead(call, call.min - std::min(call.min, call.moved));
  }
  const size_t missing = call.min - std::min(call.min, call.moved);
  TransferFlags flags;
  flags.wait_all = missing >= memory.size();
  flags.until_advert = true;
  flags.tended = !call.args.wait;
  const size_t came = Await(stream_.PostRecvCopy(memory, flags, {.queue = lane_.queue()}), call);
  call.moved += call.urgent ? KeepUrgent(memory.first(came), call) : came;
}

bool BlockingReader::ReceiveDirect(std::span<std::byte> memory, Call& call) {
  const size_t most = call.options.chunk_bytes * call.options.chunks_max;
  memory = memory.first(std::min(memory.size(), most));
  absl::StatusOr<Region> region =
      Register(context_, absl::MakeSpan(memory.data(), memory.size()), {});
  if (!region.ok()) {
    usage_.register_failures.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  usage_.OnRegistered(memory.size());
  const size_t missing = call.min - std::min(call.min, call.moved);
  const Slice slice = region->slice();
  const size_t came = Await(stream_.Post(EventType::kRecv, absl::MakeConstSpan(&slice, 1),
                                         Hidden(missing >= memory.size(), call.args.wait),
                                         {.queue = lane_.queue(), .path = Path::kZeroCopy}),
                            call);
  call.moved += call.urgent ? KeepUrgent(memory.first(came), call) : came;
  usage_.OnDeregistered(memory.size());
  return true;
}

// --- ahead ---------------------------------------------------------------------------------------

absl::Status BlockingReader::OpenAhead() {
  if (!memory_.empty()) return absl::OkStatus();
  OwnedMemory owned = context_->left_regions().spare_memory().Take(kAheadBytes);
  if (owned == nullptr) return NoMemory();
  const std::span<std::byte> memory(owned.get(), kAheadBytes);
  absl::StatusOr<Region> region =
      Register(context_, absl::MakeSpan(memory.data(), memory.size()), {}, std::move(owned));
  if (!region.ok()) return region.status();
  region_ = *std::move(region);
  memory_ = memory;
  return absl::OkStatus();
}

void BlockingReader::SetAhead(size_t begin, size_t end) {
  begin_ = begin == end ? 0 : begin;
  end_ = begin == end ? 0 : end;
  size_t readable = end_ - begin_;
  if (mark_ != kNoMark) [[unlikely]] {
    if (begin == end) mark_ = kNoMark;
    if (mark_ != kNoMark && mark_ > begin_) readable = mark_ - begin_;
    if (IsAtMark() && apart_) --readable;
    mark_ahead_.store(mark_ != kNoMark && mark_ > begin_, std::memory_order_relaxed);
    at_mark_.store(IsAtMark(), std::memory_order_relaxed);
  }
  ahead_.store(readable, std::memory_order_relaxed);
}

// No further than the mark.
size_t BlockingReader::TakeAhead(std::span<std::byte> memory, bool keep, size_t offset) {
  const size_t end = mark_ > begin_ ? std::min(mark_, end_) : end_;
  const size_t length = std::min(memory.size(), end - std::min(end, begin_ + offset));
  if (length == 0) return 0;
  CopyBytes(memory.first(length), memory_.subspan(begin_ + offset, length));
  usage_.OnCopied(length);
  if (!keep) SetAhead(begin_ + length, end_);
  return length;
}

// Behind what is there; at least `wanted` bytes, where it waits.
void BlockingReader::ReadAhead(Call& call, size_t wanted) {
  if (call.status = OpenAhead(); !call.status.ok()) return;
  const absl::StatusOr<Slice> slice = region_.slice(end_, memory_.size() - end_);
  if (!slice.ok()) {
    call.status = slice.status();
    return;
  }
  const size_t bytes = Await(stream_.Post(EventType::kRecv, absl::MakeConstSpan(&*slice, 1),
                                          Hidden(wanted >= slice->length(), call.args.wait),
                                          {.queue = lane_.queue(), .path = Path::kZeroCopy}),
                             call);
  usage_.read_ahead_bytes.fetch_add(bytes, std::memory_order_relaxed);
  SetAhead(begin_, end_ + bytes);
  if (call.urgent && bytes > 0) SetMark(end_ - 1);
}

void BlockingReader::MakeRoomAhead() {
  if (begin_ == 0) return;
  std::copy(memory_.begin() + static_cast<ptrdiff_t>(begin_),
            memory_.begin() + static_cast<ptrdiff_t>(end_), memory_.begin());
  if (mark_ != kNoMark) mark_ -= begin_;
  SetAhead(0, end_ - begin_);
}

void BlockingReader::Peek(Pieces pieces, Call& call) {
  const size_t min = std::min(call.min, kAheadBytes);
  while (ahead() < std::max<size_t>(min, 1) && !mark_ahead() && !call.done()) {
    MakeRoomAhead();
    ReadAhead(call, min - std::min(min, ahead()));
  }
  const size_t first = IsAtMark() && apart_ ? 1 : 0;
  for (const auto& piece : pieces) {
    call.moved += TakeAhead({piece.data(), piece.size()}, /*keep=*/true, first + call.moved);
  }
}

// --- waiting -------------------------------------------------------------------------------------

size_t BlockingReader::Await(const absl::StatusOr<OpId>& op, Call& call) {
  if (!op.ok()) {
    call.status = op.status();
    return 0;
  }
  call.urgent = false;
  const bool waits = call.args.wait && call.moved < call.min;
  absl::StatusOr<Event> event = waits ? lane_.Next(call.args.deadline, call.options.on_signal)
                                      : lane_.Next(absl::InfinitePast(), OnSignal::kGoesOn);
  if (!event.ok()) {
    const absl::Status why = event.status();
    // Shown to nobody it ends at once, unless bytes are being read into it.
    stream_.EndShort(*op);
    event = waits ? lane_.Next(absl::InfiniteFuture(), OnSignal::kGoesOn) : lane_.NextOfOthers();
    if (!event.ok()) {
      call.status = event.status();
      return 0;
    }
    if (event->kind == ErrorKind::kCancelled) {
      shown_ = false;
      call.ended = true;
      if (waits) call.status = why;
      return event->bytes;
    }
  }
  shown_ = event->ok() && event->bytes == 0 && !event->eof();
  call.ended = call.eof = event->eof();
  call.urgent = (event->flags & kUrgent) != 0 && call.options.urgent != UrgentBytes::kAmongOthers;
  if (!event->ok()) call.status = event->status();
  return event->bytes;
}

}  // namespace esdp::sockets
