#ifndef ESDP_IMPL_SOCKETS_FILE_POST_ORDER_H_
#define ESDP_IMPL_SOCKETS_FILE_POST_ORDER_H_

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "impl/provider/observer.h"
#include "impl/sockets/stream/operation.h"

namespace esdp::sockets {

// The order of what is posted in one direction of a stream, where the transfers of a file are made
// one after the other: what is posted behind it waits here for its turn.
//
//   Owns:     nothing; operations are the Context's.
//   Threads:  any.
//   Blocks:   never beyond its own short lock. Allocates only where something has to wait.
//   Units:    –
//   Errors:   throws std::bad_alloc, and nothing has changed.
class PostOrder {
 public:
  // An operation, or the end of the direction: kShutdown or kClose.
  struct Turn {
    Operation* operation = nullptr;
    provider::Request::Kind kind = provider::Request::Kind::kTransfer;
    bool is_file() const { return operation != nullptr && operation->file != nullptr; }
  };

  // A file goes, and nothing else may.
  bool busy() const { return busy_.load(std::memory_order_acquire); }
  // True: it waits. False: there is nothing before it.
  bool Hold(const Turn& turn) {
    if (!busy()) return false;
    const std::lock_guard lock(mutex_);
    if (!busy()) return false;
    waiting_.push_back(turn);
    return true;
  }
  // Of a file: it waits for a file before it to be over, and what comes behind waits for it.
  bool HoldOrBegin(Operation& file) {
    const std::lock_guard lock(mutex_);
    const bool waits = busy() || file_goes_;
    // One that waits does not go: those before it may still have their turns to come.
    if (waits) waiting_.push_back({&file});
    if (!waits) file_goes_ = true;
    busy_.store(true, std::memory_order_release);
    return waits;
  }
  // All of a file has been submitted; or it is over, too. False: another thread is at the turns.
  bool BeginTurns(bool is_over) {
    const std::lock_guard lock(mutex_);
    if (is_over) file_goes_ = false;
    return !std::exchange(taking_turns_, true);
  }
  // Behind BeginTurns, until it answers a file or nothing: whose turn it is.
  std::optional<Turn> Next() {
    const std::lock_guard lock(mutex_);
    const bool is_file = !waiting_.empty() && waiting_.front().is_file();
    passing_ = OpId::kNone;
    if (waiting_.empty() || (is_file && file_goes_)) {
      taking_turns_ = false;
      if (waiting_.empty()) busy_.store(false, std::memory_order_release);
      return std::nullopt;
    }
    const Turn turn = waiting_.front();
    waiting_.pop_front();
    if (is_file) {
      file_goes_ = true;
      taking_turns_ = false;
    } else if (turn.operation != nullptr) {
      passing_ = turn.operation->id;
      late_cancel_.reset();
    }
    return turn;
  }
  // Of one that has its turn and may not be submitted yet, where nobody would find it: the cancel is
  // kept for then. False: it is submitted, or still waits.
  bool CancelPassing(OpId op, provider::CancelMode mode) {
    const std::lock_guard lock(mutex_);
    if (op == OpId::kNone || passing_ != op) return false;
    late_cancel_ = mode;
    return true;
  }
  // The last turn's operation has been submitted: how it was cancelled meanwhile.
  std::optional<provider::CancelMode> EndPassing() {
    const std::lock_guard lock(mutex_);
    passing_ = OpId::kNone;
    return std::exchange(late_cancel_, std::nullopt);
  }
  // It will have no turn. Null: it does not wait here.
  Operation* Take(OpId op) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(waiting_, [&](const Turn& turn) {
      return turn.operation != nullptr && turn.operation->id == op;
    });
    if (found == waiting_.end()) return nullptr;
    Operation* const operation = found->operation;
    waiting_.erase(found);
    return operation;
  }
  // All operations, which will have no turn.
  std::list<Turn> TakeOperations() {
    std::list<Turn> taken;
    const std::lock_guard lock(mutex_);
    for (auto turn = waiting_.begin(); turn != waiting_.end();) {
      const auto one = turn++;
      if (one->operation != nullptr) taken.splice(taken.end(), waiting_, one);
    }
    return taken;
  }

 private:
  std::atomic<bool> busy_{false};
  std::mutex mutex_;
  bool file_goes_ = false;  // has had its turn, and is not over
  bool taking_turns_ = false;
  OpId passing_ = OpId::kNone;
  std::optional<provider::CancelMode> late_cancel_;
  std::list<Turn> waiting_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_FILE_POST_ORDER_H_
