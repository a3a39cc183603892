#ifndef ESDP_IMPL_SOCKETS_FILE_FILE_OPERATION_H_
#define ESDP_IMPL_SOCKETS_FILE_FILE_OPERATION_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "esdp/event.h"
#include "esdp/file.h"
#include "esdp/operation.h"
#include "impl/files/file_calls.h"
#include "impl/files/io_threads.h"
#include "impl/sockets/file/file_service.h"
#include "impl/sockets/file/lane_transfers.h"
#include "impl/sockets/file/slot_pool.h"
#include "impl/sockets/stream/operation.h"

namespace esdp::sockets {

class ContextState;
class StreamState;

// A SendFile or RecvFile from its turn to its terminal event: chunks of the file pass through lanes,
// of which each has one slot at a time, and are on the medium and on the wire side by side.
//
//   Owns:     its lanes, and the slots that these have.
//   Threads:  any: whoever brings news also does what follows from it (Advance). Under its lock
//             nobody is called but the pool, for a slot: neither shard, medium nor stream.
//   Blocks:   never; without threads for files, as long as their medium takes.
//   Units:    bytes.
//   Errors:   the first one ends it; see Event and file.h.
class FileOperation : public SlotPool::Waiter, public std::enable_shared_from_this<FileOperation> {
 public:
  FileOperation(std::shared_ptr<StreamState> stream, ContextState& context, Operation& operation,
                OnShortFile on_short);
  ~FileOperation() override;

  void HoldSlots() { holds_slots_ = true; }  // SlotPool::Prepare was for this one
  // Its turn has come. `by_caller`: in the call that posts it, which may do work of its own.
  void Begin(bool by_caller);
  // Somebody asks it to end with this status: at once, where no byte has moved.
  void Cancel(const absl::Status& status, CancelMode mode);
  // From the shard.
  void OnTransferFinished(provider::Transfer& transfer, const provider::TransferResult& result);

 protected:
  // One chunk after the other.
  struct Lane : files::IoThreads::Job {
    enum class State : uint8_t { kIdle, kOnMedium, kReady, kOnWire };
    void RunIo() override;

    FileOperation* file = nullptr;
    std::shared_ptr<FileOperation> keep;  // while it is on the medium
    LaneTransfer* transfer = nullptr;
    std::optional<SlotPool::Slot> slot;
    provider::Piece piece;
    State state = State::kIdle;
    int descriptor = -1;
    int direct = -1;      // the same file past the page cache
    size_t part = 0;      // of a SendFile
    uint32_t range = 0;   // of the plan
    uint64_t offset = 0;  // in the file
    uint64_t length = 0;
    uint64_t moved = 0;  // by the medium
    // The page cache forgets so much before the end of the chunk, once that is read.
    uint64_t drops = 0;
    int error = 0;  // of it
  };
  // What a thread for files does beside the chunks, to all that these have left behind: one thing at
  // a time.
  struct Errand : files::IoThreads::Job {
    enum class Kind : uint8_t { kStartSync, kSync, kDropCached };
    enum class State : uint8_t { kNone, kOut, kBack };
    void RunIo() override;

    FileOperation* file = nullptr;
    std::shared_ptr<FileOperation> keep;  // while it is out
    State state = State::kNone;
    Kind kind = Kind::kSync;
    int descriptor = -1;
    uint64_t offset = 0;  // in the file, as is the length
    uint64_t length = 0;
    int error = 0;
  };
  using Lock = std::unique_lock<std::mutex>;

  // --- what the directions differ in ---
  // Does one thing that can be done now, without the lock where it calls somebody. False: nothing.
  virtual bool Step(Lock& lock) = 0;
  // The whole of a chunk, on a thread for files: moved and error of the lane.
  virtual void MoveOnMedium(Lane& lane) = 0;
  virtual void OnWireEnded(Lane& lane, const provider::TransferResult& result) = 0;  // locked
  virtual bool CancelsBegun() const = 0;  // a cancel ends it also where bytes have moved
  virtual bool IsOver() const = 0;        // locked: nothing is left to be done but to tell
  virtual void Describe(Event& event) const = 0;

  static constexpr uint64_t kLanes = SlotPool::kSlotsOfTransfer;
  Lane& LaneOf(uint64_t chunk) { return lanes_[chunk % lanes_used_]; }
  bool AllIdle() const;
  // A slot for this lane; false: it comes to it later, and everything goes on then.
  bool TakeSlot(Lane& lane);
  void RunOnMedium(Lane& lane, Lock& lock);
  void Send(Errand::Kind kind, int descriptor, uint64_t offset, uint64_t length, Lock& lock);
  void SubmitWire(Lane& lane, Lock& lock);
  // The first status is kept.
  void Stop(absl::Status status);
  void StopForFile(int error, const char* what, bool may_be_full, Lock& lock);
  bool stopped() const { return !status_.ok(); }
  // Whether this thread may move a chunk itself, where that waits for nothing: one at a time, where
  // the Context's other traffic waits for it.
  bool MayMoveHere() { return by_caller_ || !std::exchange(has_moved_here_, true); }
  // What waits behind it in its direction goes on. False: it does already.
  bool LetOthersGo(Lock& lock);
  // Of a lane that has nothing to do. False: none has a slot.
  bool GiveIdleSlot(Lock& lock);
  files::FileCalls& calls() const;
  static void Count(std::atomic<uint64_t>& counter, uint64_t bytes) {
    counter.fetch_add(bytes, std::memory_order_relaxed);
  }
  FileCounts& counts() const;

  const std::shared_ptr<StreamState> stream_;
  const std::shared_ptr<ContextState> context_;
  Operation& operation_;
  LaneTransfers* const transfers_;
  const OnShortFile on_short_;
  const bool is_send_;
  std::array<Lane, kLanes> lanes_;
  uint64_t lanes_used_ = kLanes;
  Errand errand_;
  uint64_t bytes_ = 0;  // moved on the wire
  uint64_t bytes_zero_copy_ = 0;
  std::optional<uint64_t> stream_offset_;
  uint32_t flags_ = 0;
  int sys_errno_ = 0;
  CancelMode cancel_mode_ = CancelMode::kIfNotStarted;  // of what asks it to end

 private:
  void OnSlot(const SlotPool::Slot& slot) override;
  void Advance();
  void Finish(Lock& lock);
  friend struct Lane;
  friend struct Errand;

  std::mutex mutex_;
  std::optional<SlotPool::Slot> granted_;  // has been waited for
  absl::Status status_;
  bool holds_slots_ = false;
  bool by_caller_ = false;
  bool advancing_ = false;
  bool has_moved_here_ = false;  // since this thread began to advance it
  bool again_ = false;
  bool begun_ = false;
  bool released_ = false;
  bool finished_ = false;
  bool file_failed_ = false;
  bool asked_to_end_ = false;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_FILE_FILE_OPERATION_H_
