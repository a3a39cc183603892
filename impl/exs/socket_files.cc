#include <cerrno>
#include <utility>

#include "impl/exs/convert.h"
#include "impl/exs/file_send.h"
#include "impl/exs/library.h"
#include "impl/exs/socket.h"

// Files that a socket sends, and what waits behind them.

namespace esdp::exs {

int ExsSocket::PostFile(Queue& queue, const Operation& filled, std::vector<FilePart> parts) {
  Operation& operation = Prepare(queue, filled);
  int error = EBADF;
  {
    const std::lock_guard lock(mutex_);
    if (!closing_) {
      Add(operation);
      error = 0;
      if (file_ != nullptr) {
        held_.push_back({&operation, nullptr, std::move(parts)});
      } else {
        error = StartFile(operation, std::move(parts));
      }
      if (error != 0) Unlink(operation);
    }
  }
  if (error != 0) queue.Recycle(operation);
  return error;
}

// With the lock.
int ExsSocket::StartFile(Operation& operation, std::vector<FilePart> parts) {
  auto file = std::make_shared<FileSend>(*Library::Current(), socket_, std::move(parts),
                                         [this, &operation](int error, uint64_t bytes) {
                                           const std::shared_ptr<ExsSocket> self =
                                               operation.socket;  // stays until this has ended
                                           OnFileEnded(operation, error, bytes);
                                         });
  const int error = file->Begin();
  if (error == 0) file_ = std::move(file);
  return error;
}

// With the lock.
int ExsSocket::Start(Held held) {
  Operation& operation = *held.operation;
  if (held.below == nullptr) return StartFile(operation, std::move(held.parts));
  const absl::StatusOr<OpId> posted = held.below(socket_, operation.queue->Args(operation));
  if (!posted.ok()) return ErrnoOf(posted.status());
  operation.op = *posted;
  return 0;
}

void ExsSocket::OnFileEnded(Operation& operation, int error, uint64_t bytes) {
  std::vector<Operation*> ended;
  const auto end = [&](Operation& each, const exs_event_t& event) {
    Unlink(each);
    each.queue->Deliver(event);
    ended.push_back(&each);
  };
  std::shared_ptr<FileSend> last;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(file_);
    const bool dropped = closing_ && error == ECONNABORTED;
    end(operation, Finished(operation, dropped ? ECANCELED : error, bytes, 0));
    while (!held_.empty() && file_ == nullptr) {
      Held next = std::move(held_.front());
      held_.pop_front();
      Operation& started = *next.operation;
      const int failed = Start(std::move(next));
      if (failed != 0) end(started, Finished(started, failed, 0, 0));
    }
    if (file_ == nullptr && abandoned_.has_value()) {
      Library::Current()->CloseInBackground(socket_, *abandoned_);
    }
  }
  for (Operation* each : ended) {
    const std::shared_ptr<Queue> queue = each->queue->shared_from_this();
    queue->Recycle(*each);
    queue->Announce();
  }
}

void ExsSocket::StopFiles() {
  const std::lock_guard lock(mutex_);
  if (file_ != nullptr) file_->Stop(true);
}

}  // namespace esdp::exs
