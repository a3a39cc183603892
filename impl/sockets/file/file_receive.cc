#include "impl/sockets/file/file_receive.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/convert.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/socket/socket_state.h"

namespace esdp::sockets {
namespace {

constexpr size_t kBlock = 4096;  // of holes
// So much is written before it begins to go to the medium, while what follows is being written.
constexpr uint64_t kSyncStep = uint64_t{8} << 20;

bool IsZeroBlock(std::span<const std::byte> bytes) {
  if (bytes.size() < kBlock) return false;
  return bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, kBlock - 1) == 0;
}

// How many bytes lie before the first whole block of zeros.
size_t BytesBeforeHole(std::span<const std::byte> bytes, uint64_t offset) {
  size_t at = (kBlock - offset % kBlock) % kBlock;
  while (at < bytes.size() && !IsZeroBlock(bytes.subspan(at))) at += kBlock;
  return std::min(at, bytes.size());
}

}  // namespace

absl::Status FileReceive::Check(ContextState& context, const FileSink& sink) {
  if (sink.length == 0 || sink.offset > INT64_MAX || sink.length > INT64_MAX - sink.offset) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "FileSink: the length is 0, or its end lies behind 2^63 - 1");
  }
  if (sink.sync > SyncPolicy::kEvery || sink.on_short > OnShortFile::kStop ||
      (sink.sync == SyncPolicy::kEvery && sink.sync_every == 0)) {
    return MakeError(ErrorKind::kInvalidArgument, "FileSink: no such sync, sync_every or on_short");
  }
  if (sink.drop_behind && sink.sync == SyncPolicy::kNone) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "FileSink: drop_behind is for what is on the medium, so with kEnd or kEvery");
  }
  files::FileDetails details;
  if (const int error = context.files().calls->Describe(sink.fd, details);
      error != 0 || !details.regular || !details.writable) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "the descriptor " + std::to_string(sink.fd) +
                         " of a FileSink is not that of a regular file that can be written "
                         "anywhere: open it without O_APPEND and O_DIRECT");
  }
  return absl::OkStatus();
}

absl::Status FileReceive::Reserve(ContextState& context, const FileSink& sink) {
  if (!sink.reserve || sink.sparse) return absl::OkStatus();
  const int refused = context.files().calls->Reserve(sink.fd, sink.offset, sink.length);
  if (refused == 0) return absl::OkStatus();
  return MakeError(ErrorKind::kNoSpace, "the file system has no room for " +
                                            std::to_string(sink.length) + " bytes more");
}

FileReceive::FileReceive(std::shared_ptr<StreamState> stream, ContextState& context,
                         Operation& operation, const FileSink& sink)
    : FileOperation(std::move(stream), context, operation, sink.on_short),
      sink_(sink),
      descriptor_(calls().Duplicate(sink.fd)),
      makes_holes_(sink.sparse) {}

FileReceive::~FileReceive() {
  if (descriptor_ >= 0) calls().Close(descriptor_);
}

bool FileReceive::Step(Lock& lock) {
  if (EndWritten(lock) || EndErrand(lock)) return true;
  if (stopped() && CancelPosted(lock)) return true;
  return GiveIdleSlot(lock) || WriteNext(lock) || PostNext(lock) || SendErrand(lock);
}

bool FileReceive::IsOver() const {
  return IsAllWritten() && errand_.state == Errand::State::kNone && !IsSyncDue();
}

bool FileReceive::PostNext(Lock& lock) {
  if (stopped() || asked_ == sink_.length) return false;
  Lane& lane = LaneOf(posted_);
  if (lane.state != Lane::State::kIdle || !TakeSlot(lane)) return false;
  ++posted_;
  lane.length = std::min<uint64_t>(SlotPool::kSlotBytes, sink_.length - asked_);
  asked_ += lane.length;
  lane.piece = lane.slot->piece;
  lane.piece.length = lane.length;
  lane.transfer->pieces = {&lane.piece, 1};
  SubmitWire(lane, lock);
  return true;
}

// An urgent byte ends a receive early: the next ones take what comes behind it.
void FileReceive::OnWireEnded(Lane& lane, const provider::TransferResult& result) {
  asked_ -= lane.length - result.bytes;
  lane.length = result.bytes;
  lane.moved = 0;
  lane.error = 0;
  lane.state = Lane::State::kReady;  // also without a byte: writes come in order
  if (result.ending != provider::EndReason::kOk || !result.end_of_stream) return;
  if (bytes_ == sink_.length) return;
  Stop(OrNoMemory([&]() -> absl::Status {
    return MakeError(ErrorKind::kFile, "the stream ended after " + std::to_string(bytes_) + " of " +
                                           std::to_string(sink_.length) + " bytes");
  }));
}

bool FileReceive::WriteNext(Lock& lock) {
  if (writing_ || to_write_ == posted_) return false;
  Lane& lane = LaneOf(to_write_);
  if (lane.state != Lane::State::kReady) return false;
  // Behind a medium that has failed nothing is written: the prefix is what counts.
  if (lane.length == 0 || medium_failed_) {
    ++to_write_;
    lane.state = Lane::State::kIdle;
    return true;
  }
  lane.descriptor = descriptor_;
  lane.offset = sink_.offset + written_;
  writing_ = true;
  RunOnMedium(lane, lock);
  return true;
}

bool FileReceive::EndWritten(Lock& lock) {
  if (!writing_) return false;
  Lane& lane = LaneOf(to_write_);
  if (lane.state != Lane::State::kReady) return false;
  writing_ = false;
  ++to_write_;
  lane.state = Lane::State::kIdle;
  written_ += lane.moved;
  Count(counts().written, lane.moved);
  if (lane.error != 0) {
    medium_failed_ = true;
    StopForFile(lane.error, "the file", true, lock);
  }
  return true;
}

void FileReceive::MakeHole(Lane& lane) {
  const std::span<const std::byte> rest =
      lane.slot->memory.subspan(lane.moved, lane.length - lane.moved);
  size_t length = kBlock;
  while (IsZeroBlock(rest.subspan(length))) length += kBlock;
  // Whatever the reason of a refusal is: zeros can be written, or that tells why not.
  makes_holes_ = calls().MakeHole(lane.descriptor, lane.offset + lane.moved, length) == 0;
  if (makes_holes_) lane.moved += length;
}

// Of the thread that runs it alone: one chunk is on the medium at a time.
void FileReceive::MoveOnMedium(Lane& lane) {
  while (lane.moved < lane.length) {
    std::span<const std::byte> rest =
        lane.slot->memory.subspan(lane.moved, lane.length - lane.moved);
    if (makes_holes_) rest = rest.first(BytesBeforeHole(rest, lane.offset + lane.moved));
    if (rest.empty()) {
      MakeHole(lane);
      continue;
    }
    const int64_t answer = calls().Write(lane.descriptor, rest, lane.offset + lane.moved);
    if (answer <= 0) {
      lane.error = answer == 0 ? EIO : static_cast<int>(-answer);
      return;
    }
    lane.moved += static_cast<uint64_t>(answer);
  }
}

// Also of one that ends early: what its event tells to be in the file is on the medium then.
bool FileReceive::IsSyncDue() const {
  if (sink_.sync == SyncPolicy::kNone || sync_failed_ || synced_ == written_) return false;
  const bool is_full = sink_.sync == SyncPolicy::kEvery && written_ - synced_ >= sink_.sync_every;
  return is_full || IsAllWritten();
}

bool FileReceive::SendErrand(Lock& lock) {
  if (errand_.state != Errand::State::kNone) return false;
  if (IsSyncDue()) {
    started_ = written_;
    Send(Errand::Kind::kSync, descriptor_, sink_.offset, written_, lock);
    return true;
  }
  if (sink_.drop_behind && dropped_ < synced_) {
    // All before, each time: the page cache forgets no unit of which a part is asked for.
    dropped_ = synced_;
    Send(Errand::Kind::kDropCached, descriptor_, sink_.offset, synced_, lock);
    return true;
  }
  if (sink_.sync == SyncPolicy::kNone || written_ - started_ < kSyncStep) return false;
  const uint64_t from = std::exchange(started_, written_);
  Send(Errand::Kind::kStartSync, descriptor_, sink_.offset + from, written_ - from, lock);
  return true;
}

bool FileReceive::EndErrand(Lock& lock) {
  if (errand_.state != Errand::State::kBack) return false;
  errand_.state = Errand::State::kNone;
  if (errand_.kind != Errand::Kind::kSync) return true;
  if (errand_.error == 0) {
    synced_ = errand_.length;
    return true;
  }
  // What was written before may be lost: nothing is to be gone on behind.
  sync_failed_ = true;
  medium_failed_ = true;
  StopForFile(errand_.error, "the sync of the file", false, lock);
  return true;
}

// What waits for bytes that nobody will write, the newest first: none begins because an older one
// has made way.
bool FileReceive::CancelPosted(Lock& lock) {
  if (std::exchange(posted_cancelled_, true)) return false;
  for (uint64_t chunk = posted_; chunk > 0 && posted_ - chunk < kLanes; --chunk) {
    Lane& lane = LaneOf(chunk - 1);
    if (lane.state != Lane::State::kOnWire) continue;
    lock.unlock();
    stream_->CancelTransfer(*lane.transfer, operation_.id, ToProvider(cancel_mode_));
    lock.lock();
  }
  return true;
}

void FileReceive::Describe(Event& event) const {
  event.file_offset = sink_.offset + (sync_failed_ ? synced_ : written_);
}

}  // namespace esdp::sockets
