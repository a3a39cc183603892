#include "impl/sockets/file/file_send.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/socket/socket_state.h"

namespace esdp::sockets {
namespace {

// Of offsets, lengths and memory, for reads past the page cache.
constexpr uint64_t kDirectUnit = 4096;
constexpr int kReadsAtOnce = 2;  // of one transfer: the medium is everybody's
// The page cache has units as large as 2 MiB, and forgets none of which a part is asked for.
constexpr uint64_t kDropStep = uint64_t{8} << 20;

absl::Status CheckRange(ContextState& context, const FileRange& range) {
  if (range.offset > INT64_MAX || range.length > INT64_MAX - range.offset) {
    return MakeError(ErrorKind::kInvalidArgument, "a range of a file ends behind 2^63 - 1");
  }
  files::FileDetails details;
  if (const int error = context.files().calls->Describe(range.fd, details); error != 0) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "the descriptor " + std::to_string(range.fd) + " of a range is not open");
  }
  if (!details.regular || !details.readable) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "the descriptor " + std::to_string(range.fd) +
                         " of a range is not that of a regular file that can be read");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FileSend::Check(ContextState& context, const FilePlan& plan) {
  if (plan.strategy > FileStrategy::kSpliced || plan.on_short > OnShortFile::kStop) {
    return MakeError(ErrorKind::kInvalidArgument, "FilePlan: no such strategy or on_short");
  }
  // A region whose bytes vanish with a file that is cut off kills whoever copies from it.
  if (plan.strategy > FileStrategy::kDirect) {
    return MakeError(
        ErrorKind::kUnsupported,
        plan.strategy == FileStrategy::kMapped
            ? "FilePlan: kMapped: no fabric has regions whose bytes may vanish with a "
              "file that is cut off; take kPipelined, or kDirect for what is cold"
            : "FilePlan: kSpliced: no fabric has regions that are parts of files; take "
              "kPipelined");
  }
  uint64_t length = 0;
  for (const FileRange& range : plan.ranges) {
    if (absl::Status legal = CheckRange(context, range); !legal.ok()) return legal;
    length |= range.length;
  }
  if (length == 0 && plan.header.empty() && plan.trailer.empty()) {
    return MakeError(ErrorKind::kInvalidArgument, "FilePlan: there is nothing to send");
  }
  return absl::OkStatus();
}

FileSend::FileSend(std::shared_ptr<StreamState> stream, ContextState& context, Operation& operation,
                   const FilePlan& plan)
    : FileOperation(std::move(stream), context, operation, plan.on_short),
      drop_behind_(plan.drop_behind) {
  if (plan.strategy == FileStrategy::kPlain) lanes_used_ = 1;
  parts_.reserve(plan.ranges.size() + 2);
  if (!plan.header.empty()) parts_.push_back({.pieces = plan.header.size()});
  for (size_t i = 0; i < plan.ranges.size(); ++i) {
    if (plan.ranges[i].length == 0) continue;
    Part& part = parts_.emplace_back();
    part.range = plan.ranges[i];
    part.range_index = static_cast<uint32_t>(i);
    part.file = &Own(plan.ranges[i].fd);
    if (part.file->own < 0) return;
    if (plan.strategy == FileStrategy::kDirect) part.direct = calls().OpenDirect(part.file->own);
  }
  opened_ = true;
  if (!plan.trailer.empty()) {
    parts_.push_back({.first_piece = plan.header.size(), .pieces = plan.trailer.size()});
  }
}

FileSend::~FileSend() {
  for (const Part& part : parts_) {
    if (part.direct >= 0) calls().Close(part.direct);
  }
  for (const OwnedFile& file : files_) {
    if (file.sequential >= 0) calls().Close(file.sequential);
    if (file.own >= 0) calls().Close(file.own);
  }
}

FileSend::OwnedFile& FileSend::Own(int descriptor) {
  const auto found =
      std::ranges::find_if(files_, [&](const auto& each) { return each.callers == descriptor; });
  if (found != files_.end()) return *found;
  OwnedFile& file = files_.emplace_back(descriptor);
  file.own = calls().Duplicate(descriptor);
  return file;
}

bool FileSend::Step(Lock& lock) {
  if (stopped()) DropUnshipped();
  if (GiveIdleSlot(lock) || ShipNext(lock)) return true;
  if (stopped()) return false;
  if (BeginChunk(lock)) return true;
  return AllShipped() && LetOthersGo(lock);
}

bool FileSend::IsOver() const { return AllIdle() && (stopped() || AllShipped()); }

// What is still being read comes back first.
void FileSend::DropUnshipped() {
  for (Lane& lane : lanes_) {
    if (lane.state == Lane::State::kReady) lane.state = Lane::State::kIdle;
  }
}

bool FileSend::ShipNext(Lock& lock) {
  if (stopped() || shipped_ == begun_chunks_) return false;
  Lane& lane = LaneOf(shipped_);
  if (lane.state != Lane::State::kReady) return false;
  ++shipped_;
  const bool is_whole = lane.moved == lane.length;
  const int error = lane.error;
  const bool goes = is_whole || (lane.moved > 0 && on_short_ == OnShortFile::kStop);
  if (!goes) lane.state = Lane::State::kIdle;
  // First: what goes may have gone, and be the last, before SubmitWire returns.
  if (!is_whole) {
    lane.piece.length = lane.moved;
    lane.length = lane.moved;
    StopForFile(error, error == 0 ? "the file ends before the range does" : "the file", false,
                lock);
  }
  if (goes) SubmitWire(lane, lock);
  return true;
}

bool FileSend::BeginChunk(Lock& lock) {
  if (part_ == parts_.size()) return false;
  Lane& lane = LaneOf(begun_chunks_);
  if (lane.state != Lane::State::kIdle) return false;
  if (parts_[part_].is_memory()) {
    BeginMemory(lane);
    return true;
  }
  const auto reading = std::ranges::count_if(
      lanes_, [](const Lane& each) { return each.state == Lane::State::kOnMedium; });
  if (reading >= kReadsAtOnce || !TakeSlot(lane)) return false;
  BeginRange(lane, lock);
  return true;
}

void FileSend::BeginMemory(Lane& lane) {
  const Part& part = parts_[part_++];
  ++begun_chunks_;
  const std::span<const provider::Piece> all(operation_.memory);
  lane.transfer->pieces = all.subspan(part.first_piece, part.pieces);
  lane.descriptor = -1;
  lane.error = 0;
  lane.moved = lane.length;
  lane.state = Lane::State::kReady;
}

void FileSend::BeginRange(Lane& lane, Lock& lock) {
  Part& part = parts_[part_];
  ++begun_chunks_;
  OwnedFile& file = *part.file;
  const int sequential = file.sequential.load(std::memory_order_acquire);
  lane.descriptor = sequential >= 0 ? sequential : file.own;
  lane.direct = -1;
  lane.part = part_;
  lane.range = part.range_index;
  lane.offset = part.range.offset + done_of_part_;
  uint64_t most = SlotPool::kSlotBytes;
  // The first chunk ends where the others are whole units of the medium.
  if (part.direct >= 0) most -= lane.offset % kDirectUnit;
  lane.length = std::min<uint64_t>(most, part.range.length - done_of_part_);
  if (lane.offset % kDirectUnit == 0 && lane.length % kDirectUnit == 0) lane.direct = part.direct;
  lane.moved = 0;
  lane.error = 0;
  lane.piece = lane.slot->piece;
  lane.piece.length = lane.length;
  lane.transfer->pieces = {&lane.piece, 1};
  done_of_part_ += lane.length;
  const bool is_step = done_of_part_ / kDropStep != (done_of_part_ - lane.length) / kDropStep;
  const bool drops = drop_behind_ && (is_step || done_of_part_ == part.range.length);
  lane.drops = drops ? done_of_part_ : 0;
  if (done_of_part_ == part.range.length) {
    ++part_;
    done_of_part_ = 0;
  }
  lane.state = Lane::State::kOnMedium;
  // Slot after slot of a long range would hold up what else the Context carries.
  if (!part.is_long() && Looks(lane) && MayMoveHere()) {
    lock.unlock();
    ReadCached(lane);
    lock.lock();
  }
  if (lane.moved == lane.length) {
    lane.state = Lane::State::kReady;
    return;
  }
  RunOnMedium(lane, lock);
}

bool FileSend::Looks(const Lane& lane) const {
  return lane.direct < 0 && !drop_behind_ && parts_[lane.part].file->tells_cached;
}

// What is in memory needs no wait.
void FileSend::ReadCached(Lane& lane) {
  const int64_t cached =
      calls().ReadCached(lane.descriptor, lane.slot->memory.first(lane.length), lane.offset);
  if (cached > 0) {
    lane.moved = static_cast<uint64_t>(cached);
    Count(counts().cached, lane.moved);
  }
  if (cached == -EOPNOTSUPP) parts_[lane.part].file->tells_cached = false;
}

// To open may wait, too.
void FileSend::OpenSequential(Lane& lane) {
  const int opened = calls().OpenSequential(lane.descriptor);
  if (opened < 0) return;  // as well as the caller's does it
  parts_[lane.part].file->sequential.store(opened, std::memory_order_release);
  lane.descriptor = opened;
}

void FileSend::MoveOnMedium(Lane& lane) {
  const Part& part = parts_[lane.part];
  if (part.is_long() && !part.file->opens_sequential && Looks(lane)) ReadCached(lane);
  if (lane.moved < lane.length) {
    const bool opens = part.is_long() && part.direct < 0;
    if (opens && !part.file->opens_sequential.exchange(true)) OpenSequential(lane);
    ReadOnMedium(lane);
  }
  const uint64_t end = lane.offset + lane.length;
  if (lane.drops > 0) calls().DropCached(lane.descriptor, end - lane.drops, lane.drops);
}

void FileSend::ReadOnMedium(Lane& lane) {
  int descriptor = lane.direct >= 0 ? lane.direct : lane.descriptor;
  while (lane.moved < lane.length) {
    const std::span<std::byte> rest =
        lane.slot->memory.subspan(lane.moved, lane.length - lane.moved);
    const int64_t answer = calls().Read(descriptor, rest, lane.offset + lane.moved);
    if (answer > 0) {
      lane.moved += static_cast<uint64_t>(answer);
      Count(counts().read, static_cast<uint64_t>(answer));
    }
    const bool is_direct = descriptor != lane.descriptor;
    // Ends of files, and media that refuse it.
    if (is_direct && (answer <= 0 || lane.moved % kDirectUnit != 0)) {
      descriptor = lane.descriptor;
    } else if (answer <= 0) {
      lane.error = static_cast<int>(-answer);
      return;
    }
  }
}

void FileSend::OnWireEnded(Lane& lane, const provider::TransferResult& result) {
  if (lane.descriptor < 0 || result.bytes == 0) return;
  range_ = lane.range;
  file_offset_ = lane.offset + result.bytes;
}

void FileSend::Describe(Event& event) const {
  event.file_range = range_;
  event.file_offset = file_offset_;
}

}  // namespace esdp::sockets
