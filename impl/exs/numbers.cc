#include "impl/exs/numbers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "impl/exs/library.h"
#include "impl/switch/taker.h"

namespace esdp::exs {

int Numbers::Find(int number, std::shared_ptr<ExsSocket>* socket) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = sockets_.find(number);
    if (found != sockets_.end()) *socket = found->second;
  }
  if (*socket != nullptr && (*socket)->HoldsNumber()) return 0;
  if (*socket != nullptr) {
    RemoveSocket(number, socket->get());
    (*socket)->Abandon(CloseMode::kAbort);
    socket->reset();
  }
  struct stat status {};
  if (fstat(number, &status) != 0 || Library::IsParents(number)) return EBADF;
  return S_ISSOCK(status.st_mode) ? EOPNOTSUPP : ENOTSOCK;
}

int Numbers::Find(exs_qhandle_t number, std::shared_ptr<Queue>* queue) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(number);
  if (found == queues_.end()) return EBADF;
  *queue = found->second;
  return 0;
}

// With the lock.
void Numbers::LoseQueue(int number) {
  const auto found = queues_.find(number);
  if (found == queues_.end()) return;
  found->second->LoseNumber();
  lost_.push_back(std::move(found->second));
  queues_.erase(found);
}

void Numbers::LoseQueue(const std::shared_ptr<Queue>& queue) {
  const bool ended = queue->Close() == 0;
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(queue->number());
  if (found == queues_.end() || found->second != queue) return;
  LoseQueue(found->first);
  if (ended) lost_.pop_back();  // the caller has it still
}

void Numbers::Add(std::shared_ptr<ExsSocket> socket) {
  {
    const std::lock_guard lock(mutex_);
    const int number = socket->number();
    LoseQueue(number);
    std::swap(sockets_[number], socket);
    libc::taken_numbers.Add(number);
  }
  if (socket != nullptr) socket->Abandon(CloseMode::kAbort);
}

void Numbers::Add(std::shared_ptr<Queue> queue) {
  std::shared_ptr<ExsSocket> closed;
  {
    const std::lock_guard lock(mutex_);
    const int number = queue->number();
    if (const auto found = sockets_.find(number); found != sockets_.end()) {
      closed = std::move(found->second);
      sockets_.erase(found);
      libc::taken_numbers.Remove(number);
    }
    LoseQueue(number);
    queues_[number] = std::move(queue);
  }
  if (closed != nullptr) closed->Abandon(CloseMode::kAbort);
}

void Numbers::RemoveSocket(int number, const ExsSocket* socket) {
  std::shared_ptr<ExsSocket> last;
  const std::lock_guard lock(mutex_);
  const auto found = sockets_.find(number);
  if (found == sockets_.end() || found->second.get() != socket) return;
  last = std::move(found->second);
  sockets_.erase(found);
  libc::taken_numbers.Remove(number);
}

void Numbers::RemoveQueue(exs_qhandle_t number) {
  std::shared_ptr<Queue> last;
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(number);
  if (found == queues_.end()) return;
  last = std::move(found->second);
  queues_.erase(found);
}

bool Numbers::Has(int number) {
  const std::lock_guard lock(mutex_);
  const auto found = sockets_.find(number);
  return found != sockets_.end() && found->second->HoldsNumber();
}

}  // namespace esdp::exs
