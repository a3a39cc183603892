#include "impl/sockets/file/file_operation.h"

#include <algorithm>
#include <cerrno>
#include <list>
#include <string>
#include <system_error>
#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/socket/socket_state.h"

namespace esdp::sockets {

FileOperation::FileOperation(std::shared_ptr<StreamState> stream, ContextState& context,
                             Operation& operation, OnShortFile on_short)
    : stream_(std::move(stream)),
      context_(context.shared_from_this()),
      operation_(operation),
      transfers_(context.files().transfers.Take()),
      on_short_(on_short),
      is_send_(operation.transfer.is_send) {
  errand_.file = this;
  const OperationTransfer& wanted = operation.transfer;
  for (size_t i = 0; i < kLanes; ++i) {
    lanes_[i].file = this;
    lanes_[i].transfer = &transfers_->at(i);
    provider::Transfer& transfer = *lanes_[i].transfer;
    transfers_->at(i).operation = &operation;
    transfers_->at(i).lane = i;
    transfer.is_send = is_send_;
    transfer.wait_all = !is_send_;
    transfer.shown = wanted.shown;
    transfer.path = wanted.path;
    transfer.complete_at = wanted.complete_at;
    transfer.adaptive = wanted.adaptive;
    transfer.zcopy_min = wanted.zcopy_min;
    transfer.tag.store(static_cast<uint64_t>(operation.id), std::memory_order_relaxed);
  }
}

FileOperation::~FileOperation() {
  context_->files().transfers.Give(transfers_);
  if (holds_slots_) context_->files().slots.EndTransfer();
}

// --- news ----------------------------------------------------------------------------------------

void FileOperation::Begin(bool by_caller) {
  const auto self = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    begun_ = true;
    by_caller_ = by_caller;
  }
  Advance();
  const std::lock_guard lock(mutex_);
  by_caller_ = false;
}

void FileOperation::Cancel(const absl::Status& status, CancelMode mode) {
  bool aborts = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopped() || finished_) return;
    const bool begun = bytes_ > 0 || std::ranges::any_of(lanes_, [&](const Lane& lane) {
                         return is_send_ && lane.state == Lane::State::kOnWire;
                       });
    aborts = begun && mode == CancelMode::kAbortConnection;
    if (!aborts && (!begun || CancelsBegun())) {
      asked_to_end_ = true;
      cancel_mode_ = mode;
      Stop(status);
    }
  }
  if (aborts) return stream_->Abort();
  Advance();
}

void FileOperation::OnTransferFinished(provider::Transfer& transfer,
                                       const provider::TransferResult& told) {
  Lane& lane = lanes_[static_cast<LaneTransfer&>(transfer).lane];
  const auto self = shared_from_this();
  provider::TransferResult result = told;
  absl::Status ended;
  if (result.ending == provider::EndReason::kTooLate && stream_->AtEndOfStream(is_send_)) {
    result.ending = provider::EndReason::kOk;
    result.end_of_stream = true;
  } else if (result.ending == provider::EndReason::kTooLate) {
    ended = stream_->EndedStatus();
  } else if (result.ending != provider::EndReason::kOk) {
    ended = result.failure != nullptr ? StatusOf(*result.failure)
                                      : MakeError(KindOfEnding(result.ending), "");
  }
  {
    const std::lock_guard lock(mutex_);
    if (!stream_offset_ && result.bytes > 0) stream_offset_ = result.stream_offset;
    bytes_ += result.bytes;
    bytes_zero_copy_ += result.bytes_zero_copy;
    if (result.bytes_zero_copy > 0) flags_ |= kZeroCopy;
    if (result.bytes > result.bytes_zero_copy) flags_ |= kCopied;
    if (result.end_of_stream) flags_ |= kEof;
    if (result.written) flags_ |= kWritten;
    lane.state = Lane::State::kIdle;
    Stop(std::move(ended));
    OnWireEnded(lane, result);
  }
  Advance();
}

void FileOperation::Lane::RunIo() {
  file->MoveOnMedium(*this);
  const std::shared_ptr<FileOperation> kept = std::move(keep);
  {
    const std::lock_guard lock(kept->mutex_);
    state = State::kReady;
  }
  kept->Advance();
}

void FileOperation::Errand::RunIo() {
  files::FileCalls& calls = file->calls();
  if (kind == Kind::kStartSync) calls.StartSync(descriptor, offset, length);
  if (kind == Kind::kSync) error = calls.Sync(descriptor);
  if (kind == Kind::kDropCached) calls.DropCached(descriptor, offset, length);
  const std::shared_ptr<FileOperation> kept = std::move(keep);
  {
    const std::lock_guard lock(kept->mutex_);
    state = State::kBack;
  }
  kept->Advance();
}

void FileOperation::OnSlot(const SlotPool::Slot& slot) {
  bool late = false;
  {
    const std::lock_guard lock(mutex_);
    late = finished_;
    if (!late) granted_ = slot;
  }
  if (late) return context_->files().slots.Give(slot);
  Advance();
}

// --- what follows --------------------------------------------------------------------------------

// One thread at a time: what is submitted keeps its order.
void FileOperation::Advance() {
  const auto self = shared_from_this();
  const ContextCall call(context_.get());
  if (!call.ok()) return;  // the end of the Context ends its operations
  Lock lock(mutex_);
  again_ = true;
  if (!begun_) return;
  // Also while another thread is at it: what the shard tells next must not come first.
  if (!finished_ && IsOver()) Finish(lock);
  if (advancing_) return;
  advancing_ = true;
  has_moved_here_ = false;
  while (std::exchange(again_, false)) {
    while (!finished_ && Step(lock)) continue;
    if (!finished_ && IsOver()) Finish(lock);
  }
  advancing_ = false;
}

bool FileOperation::AllIdle() const {
  return std::ranges::all_of(lanes_,
                             [](const Lane& lane) { return lane.state == Lane::State::kIdle; });
}

bool FileOperation::TakeSlot(Lane& lane) {
  if (!lane.slot) lane.slot = std::exchange(granted_, std::nullopt);
  if (!lane.slot) lane.slot = context_->files().slots.Take(shared_from_this());
  return lane.slot.has_value();
}

bool FileOperation::GiveIdleSlot(Lock& lock) {
  const auto found = std::ranges::find_if(lanes_, [](const Lane& lane) {
    return lane.state == Lane::State::kIdle && lane.slot.has_value();
  });
  if (found == lanes_.end()) return false;
  const SlotPool::Slot slot = *std::exchange(found->slot, std::nullopt);
  lock.unlock();
  context_->files().slots.Give(slot);
  lock.lock();
  return true;
}

files::FileCalls& FileOperation::calls() const { return *context_->files().calls; }

FileCounts& FileOperation::counts() const { return context_->files().counts; }

void FileOperation::RunOnMedium(Lane& lane, Lock& lock) {
  lane.state = Lane::State::kOnMedium;
  lane.keep = shared_from_this();
  lock.unlock();
  context_->files().threads.Run(lane);
  lock.lock();
}

void FileOperation::Send(Errand::Kind kind, int descriptor, uint64_t offset, uint64_t length,
                         Lock& lock) {
  errand_.keep = shared_from_this();
  errand_.state = Errand::State::kOut;
  errand_.kind = kind;
  errand_.descriptor = descriptor;
  errand_.offset = offset;
  errand_.length = length;
  errand_.error = 0;
  lock.unlock();
  context_->files().threads.Run(errand_);
  lock.lock();
}

void FileOperation::SubmitWire(Lane& lane, Lock& lock) {
  lane.state = Lane::State::kOnWire;
  lock.unlock();
  stream_->SubmitTransfer(*lane.transfer);
  lock.lock();
}

// --- the end -------------------------------------------------------------------------------------

void FileOperation::Stop(absl::Status status) {
  if (!stopped()) status_ = std::move(status);
}

void FileOperation::StopForFile(int error, const char* what, bool may_be_full, Lock& lock) {
  if (sys_errno_ == 0) sys_errno_ = error;
  if (stopped()) return;
  file_failed_ = true;
  const bool full = may_be_full && (error == ENOSPC || error == EDQUOT || error == EFBIG);
  Stop(OrNoMemory([&]() -> absl::Status {
    return MakeError(
        full ? ErrorKind::kNoSpace : ErrorKind::kFile,
        error == 0 ? std::string(what) : what + (": " + std::generic_category().message(error)));
  }));
  if (on_short_ != OnShortFile::kAbort) return;
  lock.unlock();
  stream_->Abort();
  lock.lock();
}

bool FileOperation::LetOthersGo(Lock& lock) {
  if (std::exchange(released_, true)) return false;
  lock.unlock();
  stream_->behind_files().GoOn(is_send_, /*is_over=*/false);
  lock.lock();
  return true;
}

// The event comes before those of what waits behind it.
void FileOperation::Finish(Lock& lock) {
  finished_ = true;
  Event event;
  event.bytes = bytes_;
  event.bytes_zero_copy = bytes_zero_copy_;
  event.stream_offset = stream_offset_.value_or(0);
  event.flags = flags_;
  event.sys_errno = sys_errno_;
  Describe(event);
  const absl::Status status = status_;
  // Where the connection has failed, all end by its cause.
  const bool cuts_stream =
      (file_failed_ && on_short_ == OnShortFile::kStop) || (asked_to_end_ && bytes_ > 0);
  std::array<std::optional<SlotPool::Slot>, kLanes + 1> unused;
  for (size_t i = 0; i < kLanes; ++i) unused[i] = std::exchange(lanes_[i].slot, std::nullopt);
  unused[kLanes] = std::exchange(granted_, std::nullopt);
  lock.unlock();
  context_->files().slots.Forget(*this);
  for (const auto& slot : unused) {
    if (slot) context_->files().slots.Give(*slot);
  }
  // Before the event: what the application posts behind that is not meant.
  BehindFiles& behind = stream_->behind_files();
  std::list<PostOrder::Turn> cancelled;
  if (cuts_stream && !released_) cancelled = behind.TakeOperations(is_send_);
  context_->Finish(operation_, status, event);
  behind.Cancel(cancelled);
  behind.GoOn(is_send_, /*is_over=*/true);
  lock.lock();
}

}  // namespace esdp::sockets
