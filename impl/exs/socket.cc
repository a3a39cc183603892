#include "impl/exs/socket.h"

#include <cerrno>
#include <utility>
#include <vector>

#include "esdp/status.h"
#include "impl/exs/carried.h"
#include "impl/exs/convert.h"
#include "impl/exs/library.h"

namespace esdp::exs {

// --- operations ----------------------------------------------------------------------------------

int ErrnoOfPost(const absl::Status& status) { return ErrnoOf(status); }

Operation& ExsSocket::Prepare(Queue& queue, const Operation& filled) {
  Operation& operation = queue.NewOperation();
  operation = filled;
  operation.number = number();
  operation.queue = &queue;
  operation.socket = shared_from_this();
  return operation;
}

// With the lock.
void ExsSocket::Add(Operation& operation) {
  operation.previous = nullptr;
  operation.next = operations_;
  if (operations_ != nullptr) operations_->previous = &operation;
  operations_ = &operation;
  Notice* notice = NoticeOf(operation);
  if (notice == nullptr) return;
  ++notice->outstanding;
  const bool told = std::exchange(notice->spent, false);
  if (notice->outstanding > 1 && !told) return;
  if (notice->option.period == absl::ZeroDuration()) return;
  notice->last_progress = Library::Current()->context().Now();
  Schedule(*notice);
}

// With the lock.
void ExsSocket::Unlink(Operation& operation) {
  Operation*& before = operation.previous != nullptr ? operation.previous->next : operations_;
  before = operation.next;
  if (operation.next != nullptr) operation.next->previous = operation.previous;
  ReturnPins(operation);
  Notice* notice = NoticeOf(operation);
  if (notice == nullptr) return;
  --notice->outstanding;
  if (notice->option.period > absl::ZeroDuration()) {
    notice->last_progress = Library::Current()->context().Now();
  }
}

bool ExsSocket::Remove(Operation& operation) {
  const std::lock_guard lock(mutex_);
  Unlink(operation);
  return closing_;
}

bool ExsSocket::Abandon(CloseMode mode) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(closing_, true)) return false;
  if (const Line& sending = LineOf(Way::kSending); sending.carried != nullptr) {
    aborts_ = mode == CloseMode::kAbort;
    if (aborts_) sending.carried->Stop(true);
    abandoned_ = mode;
  } else {
    Library::Current()->CloseInBackground(socket_, mode);
  }
  return true;
}

// With the lock: ends what is held and meant.
std::vector<Told> ExsSocket::CancelHeld(const Meant& meant) {
  std::vector<Told> cancelled;
  for (Line& line : lines_) {
    const auto drop = [&](const Held& held) {
      Operation& each = *held.operation;
      if (!meant(each) || each.type == EXS_EVT_CLOSE) return false;
      Unlink(each);
      cancelled.emplace_back(each, Finished(each, ECANCELED, 0, 0));
      return true;
    };
    std::erase_if(line.held, drop);
  }
  return cancelled;
}

int ExsSocket::Cancel(bool by_handle, exs_ahandle_t handle) {
  return Cancel(
      [&](const Operation& each) { return !each.inner && (!by_handle || each.handle == handle); });
}

void ExsSocket::CancelOn(const Queue& queue) {
  (void)Cancel([&](const Operation& each) { return each.queue == &queue; });
}

int ExsSocket::Cancel(const Meant& meant) {
  std::vector<Told> cancelled;
  int asked = 0;
  {
    const std::lock_guard lock(mutex_);
    cancelled = CancelHeld(meant);
    asked = static_cast<int>(cancelled.size());
    for (Operation* each = operations_; each != nullptr; each = each->next) {
      if (!meant(*each)) continue;
      if (each->op != OpId::kNone) {
        if (socket_.Cancel(each->op).ok()) ++asked;
        continue;
      }
      for (const Line& line : lines_) {
        if (line.of != each) continue;
        line.carried->Stop(false);
        ++asked;
      }
    }
  }
  for (const Told& each : cancelled) each.Announce();
  return asked;
}

// --- listening -----------------------------------------------------------------------------------

int ExsSocket::Listen(int backlog) {
  const std::lock_guard lock(mutex_);
  if (const absl::Status status = socket_.Listen(backlog); !status.ok()) return ErrnoOf(status);
  listening_ = true;
  return 0;
}

bool ExsSocket::listening() const {
  const std::lock_guard lock(mutex_);
  return listening_;
}

// --- events --------------------------------------------------------------------------------------

int TellAccepted(Socket taken, int family, exs_acceptaddr_t* addresses,
                 exs_evt_accept_t* told) noexcept {
  try {
    if (addresses != nullptr) {
      addresses->exs_aa_local_len = FromAddress(taken.local(), &addresses->exs_aa_local);
      addresses->exs_aa_remote_len = FromAddress(taken.peer(), &addresses->exs_aa_remote);
      told->exs_evt_addresses = addresses;
    }
    const std::shared_ptr<ExsSocket> socket = ExsSocket::Make(std::move(taken), family);
    if (socket == nullptr) return errno;
    socket->WatchNumber();
    Library::Current()->numbers().Add(socket);
    told->exs_evt_newfd = socket->number();
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOBUFS;
  }
}

namespace {

exs_event_t ConcludeAccept(Queue& queue, Operation& operation, const Event& event) {
  exs_event_t out = Finished(operation, ErrnoOf(event, false), 0, 0);
  if (event.ok()) {
    absl::StatusOr<Socket> taken = Library::Current()->context().TakeAccepted(event.accepted);
    out.exs_evt_errno = taken.ok()
                            ? TellAccepted(*std::move(taken), operation.socket->family(),
                                           operation.addresses, &out.exs_evt_union.exs_evt_accept)
                            : ErrnoOf(taken.status());
  }
  if (operation.addresses != nullptr) ++operation.addresses;
  --operation.accepts_left;
  if (!event.terminal()) return out;
  if (operation.accepts_left > 0) queue.Release(operation.accepts_left);
  if (operation.socket->Remove(operation) && !event.ok()) out.exs_evt_errno = ECANCELED;
  const std::shared_ptr<ExsSocket> listener = operation.socket;
  queue.Recycle(operation);
  listener->calls().readiness().Refresh(false);
  return out;
}

}  // namespace

exs_event_t Conclude(Queue& queue, Operation& operation, const Event& event) noexcept {
  if (operation.type == EXS_EVT_ACCEPT) return ConcludeAccept(queue, operation, event);
  const std::shared_ptr<ExsSocket> socket = operation.socket;
  const bool inner = operation.inner;
  const bool closing = socket->Remove(operation);
  const exs_event_t out = Finished(operation, ErrnoOf(event, closing), event.bytes, FlagsOf(event));
  if (operation.type == EXS_EVT_CLOSE) {
    Library::Current()->numbers().RemoveSocket(socket->number(), socket.get());
    socket->GiveUpNumber();
  }
  queue.Recycle(operation);
  if (!inner) socket->calls().readiness().Refresh(false);
  return out;
}

}  // namespace esdp::exs
