#ifndef ESDP_IMPL_EXS_SOCKET_H_
#define ESDP_IMPL_EXS_SOCKET_H_

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/event.h"
#include "esdp/socket.h"
#include "impl/exs/ahead.h"
#include "impl/exs/call_state.h"
#include "impl/exs/line.h"
#include "impl/exs/notice_option.h"
#include "impl/exs/operation.h"
#include "impl/exs/place.h"
#include "impl/exs/queue.h"
#include "impl/exs/told.h"
#include "impl/exs/transfer.h"

namespace esdp::exs {

struct CarriedEnd;

// An ExsSocket is a socket of api/esdp under a number of the process. While the library carries out
// a transfer in pieces, what is posted after it in the same direction is held here.
//
//   Owns:     the socket, and the descriptor that holds the number.
//   Threads:  any.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   an errno, 0 for none.
class ExsSocket : public std::enable_shared_from_this<ExsSocket> {
 public:
  // k..Now: or not at all, with EAGAIN. kLast: of sending, and of the socket.
  enum class Lane { kSending, kSendingNow, kReceivingNow, kLast, kOther };

  // Null when no descriptor is left.
  static std::shared_ptr<ExsSocket> Make(Socket socket, int family);
  // Under the number of another socket, which that gives up; its flags stay.
  static std::shared_ptr<ExsSocket> MakeOver(int number, Socket socket, int family);
  ~ExsSocket();
  ExsSocket(const ExsSocket&) = delete;
  ExsSocket& operator=(const ExsSocket&) = delete;

  int number() const { return place_->number(); }
  int family() const { return family_; }
  // Whether the number is still that of the descriptor: close(2) leaves nobody a word.
  bool HoldsNumber() const { return place_->Holds(); }
  // From now on it is noticed when the descriptor is closed by close(2). The helper runs.
  void WatchNumber();
  // The number is the process's again.
  void GiveUpNumber();
  CallState& calls() { return calls_; }

  // `filled` says what the event tells; its slot is reserved.
  template <typename Below>
  int Post(Lane lane, Queue& queue, const Operation& filled, const Below& below);
  // Files, and memory that nobody registered.
  int PostTransfer(Queue& queue, const Operation& filled, Transfer transfer);
  // What is being sent in pieces, and waits behind it, ends.
  void StopSending();
  // Ends without an event; false when it is being closed.
  bool Abandon(CloseMode mode);
  // The same for close(2): what was posted to be sent is not, other bytes leave.
  void AbandonAsClosed();
  // Asks those of the application with that handle, or all of its, to end; how many.
  int Cancel(bool by_handle, exs_ahandle_t handle);
  // Those that are posted on that queue.
  void CancelOn(const Queue& queue);
  // Takes it off the list; whether the socket is being closed.
  bool Remove(Operation& operation);

  bool listening() const;
  int Listen(int backlog);
  Socket& socket() { return socket_; }
  // Bytes that were read ahead and wait.
  size_t bytes_ahead() const { return ahead_.size(); }
  // Transfers that were copied since their memory could not be registered.
  uint64_t register_failures() const { return register_failures_.load(std::memory_order_relaxed); }

  void SetNotice(Way way, const NoticeOption& option);
  NoticeOption GetNotice(Way way) const;

 private:
  struct Notice {
    NoticeOption option;
    bool scheduled = false;
    bool spent = false;        // told once; not again before a post
    int outstanding = 0;       // operations of that direction
    absl::Time last_progress;  // when one ended, or the first one was posted
  };

  ExsSocket(Socket socket, int family, std::unique_ptr<Place> place);
  Operation& Prepare(Queue& queue, const Operation& filled);
  void OnNumberClosed();
  void Add(Operation& operation);
  void Unlink(Operation& operation);
  using Meant = std::function<bool(const Operation&)>;
  int Cancel(const Meant& meant);
  std::vector<Told> CancelHeld(const Meant& meant);
  void ReturnPins(Operation& operation);
  Line& LineOf(Way way) { return lines_[static_cast<size_t>(way)]; }
  // Null: nothing has to end before what is posted in that lane.
  Line* Before(Lane lane);
  bool NotNow(Lane lane, const Line* before) const;
  bool ClosesByHelper(Lane lane);
  int CloseByHelper(Operation& operation, const PostBelow& below);
  int StartBelow(Operation& operation, const PostBelow& below);
  int StartTransfer(Operation& operation, Transfer transfer);
  bool PostWhole(Operation& operation, Transfer& transfer, int* error);
  bool Pin(Operation& operation, const Transfer& transfer, std::vector<Region>* regions,
           std::vector<Slice>* slices);
  int Carry(Operation& operation, Transfer transfer);
  int Start(Held held);
  void OnCarriedEnded(Operation& operation, Way way, const CarriedEnd& ended);
  Notice* NoticeOf(const Operation& operation);
  const Operation* Oldest(const Notice& notice);
  void Schedule(Notice& notice);
  void CheckNotice(Way way);
  bool TellNotice(Way way, Notice& notice, std::shared_ptr<Queue>* told);

  const int family_;
  const std::unique_ptr<Place> place_;
  Socket socket_;
  CallState calls_;

  mutable std::mutex mutex_;
  Operation* operations_ = nullptr;  // the newest first
  std::array<Line, 2> lines_;
  std::optional<CloseMode> abandoned_;  // behind what is being sent
  std::atomic<uint64_t> register_failures_{0};
  Ahead ahead_;
  std::array<Notice, 2> notices_;
  bool listening_ = false;
  bool closing_ = false;
  bool aborts_ = false;  // nothing more is sent
};

// The event of an operation that has ended below, or of a connection that an accept has got.
exs_event_t Conclude(Queue& queue, Operation& operation, const Event& event) noexcept;

// A connection that an accept has got: its number, and its addresses where `addresses` is not null.
int TellAccepted(Socket taken, int family, exs_acceptaddr_t* addresses,
                 exs_evt_accept_t* told) noexcept;

int ErrnoOfPost(const absl::Status& status);

template <typename Below>
int ExsSocket::Post(Lane lane, Queue& queue, const Operation& filled, const Below& below) {
  Operation& operation = Prepare(queue, filled);
  int error = EBADF;
  {
    const std::lock_guard lock(mutex_);
    if (!closing_) {
      Add(operation);
      Line* const line = Before(lane);
      if (NotNow(lane, line)) {
        error = EAGAIN;
      } else if (line != nullptr) {
        line->held.push_back({&operation, below, {}});
        error = 0;
      } else if (ClosesByHelper(lane)) {
        error = CloseByHelper(operation, below);
      } else {
        const absl::StatusOr<OpId> posted = below(socket_, queue.Args(operation));
        error = posted.ok() ? 0 : ErrnoOfPost(posted.status());
        // Its event may be there already: it waits for the lock.
        if (posted.ok()) operation.op = *posted;
      }
      if (error != 0) Unlink(operation);
      closing_ = error == 0 && lane == Lane::kLast;
    }
  }
  if (error != 0) queue.Recycle(operation);
  if (error == 0 && !filled.inner) calls_.readiness().Refresh(false);  // calls do it themselves
  return error;
}

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_SOCKET_H_
