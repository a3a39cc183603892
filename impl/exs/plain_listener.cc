#include "impl/exs/plain_listener.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "impl/exs/convert.h"
#include "impl/exs/library.h"
#include "impl/exs/plain.h"
#include "impl/exs/socket.h"
#include "impl/exs/transfer.h"
#include "impl/switch/low_mark.h"
#include "impl/switch/mpa_request.h"

namespace esdp::exs {
namespace {

constexpr absl::Duration kBeginsWithin = absl::Seconds(1);  // the whole request of MPA
constexpr absl::Duration kSetUpWithin = absl::Seconds(10);  // what follows it
constexpr absl::Duration kAgain = absl::Milliseconds(100);  // where no descriptor is left
constexpr size_t kConnectionsMax = 256;                     // that no accept has taken

// A number for the program, as accept(2) makes it but for being close-on-exec.
int TellPlain(OwnedFd fd, exs_acceptaddr_t* addresses, exs_evt_accept_t* told) {
  libc::SetLowMark(fd.get(), 1);
  (void)fcntl(fd.get(), F_SETFL, 0);
  if (addresses != nullptr) {
    addresses->exs_aa_local_len = addresses->exs_aa_remote_len = sizeof(sockaddr_storage);
    auto* const local = reinterpret_cast<sockaddr*>(&addresses->exs_aa_local);
    auto* const remote = reinterpret_cast<sockaddr*>(&addresses->exs_aa_remote);
    (void)getsockname(fd.get(), local, &addresses->exs_aa_local_len);
    (void)getpeername(fd.get(), remote, &addresses->exs_aa_remote_len);
    told->exs_evt_addresses = addresses;
  }
  told->exs_evt_newfd = fd.Release();
  return 0;
}

}  // namespace

struct PlainListener::Candidate {
  OwnedFd fd = {};
  size_t seen = 0;    // bytes of it
  uint64_t name = 0;  // that the helper knows it by
  Socket below = {};  // takes it, once it is known to be SDP
  bool gone = false;
};

std::shared_ptr<PlainListener> PlainListener::Make(Library& library, int number) {
  struct stat status {};
  int family = 0;
  socklen_t len = sizeof(family);
  const int flags = fcntl(number, F_GETFL);
  if (flags < 0 || fcntl(number, F_SETFL, flags | O_NONBLOCK) != 0) return nullptr;
  if (fstat(number, &status) != 0) return nullptr;
  if (getsockopt(number, SOL_SOCKET, SO_DOMAIN, &family, &len) != 0) return nullptr;
  if (const int error = library.helper().Start(); error != 0) {
    errno = error;
    return nullptr;
  }
  std::shared_ptr<PlainListener> made(new PlainListener(library, number, family));
  made->device_ = status.st_dev;
  made->inode_ = status.st_ino;
  made->watch_name_ = library.helper().NewName();
  return made;
}

bool PlainListener::HoldsNumber() const {
  struct stat status {};
  return fstat(number_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

// --- accepts -------------------------------------------------------------------------------------

int PlainListener::Accept(std::shared_ptr<Queue> queue, const Operation& operation) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return EBADF;
    waiting_.push_back({std::move(queue), operation});
  }
  library_.helper().Run([self = shared_from_this()] { self->Step(); });
  return 0;
}

int PlainListener::Cancel(bool by_handle, exs_ahandle_t handle) {
  std::vector<std::shared_ptr<Queue>> told;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [&](Waiting& each) {
      if (by_handle && each.operation.handle != handle) return false;
      each.queue->Release(each.operation.accepts_left - 1);
      each.queue->Deliver(Finished(each.operation, ECANCELED, 0, 0));
      told.push_back(std::move(each.queue));
      return true;
    });
  }
  for (const auto& queue : told) queue->Announce();
  return static_cast<int>(told.size());
}

void PlainListener::Close() {
  End(ECANCELED);
  if (HoldsNumber()) library_.helper().Unwatch(number_, watch_name_);
}

void PlainListener::End(int error) {
  std::deque<Waiting> waited;
  {
    const std::lock_guard lock(mutex_);
    ended_ = ended_ || error == ECANCELED;
    waited.swap(waiting_);
    for (Waiting& each : waited) {
      each.queue->Release(each.operation.accepts_left - 1);
      each.queue->Deliver(Finished(each.operation, error, 0, 0));
    }
  }
  for (const Waiting& each : waited) each.queue->Announce();
  library_.helper().Run([self = shared_from_this()] { self->DropConnections(); });
}

// With the lock: for the accept that was posted first.
void PlainListener::Tell(const exs_event_t& event) {
  Waiting& first = waiting_.front();
  first.queue->Deliver(event);
  told_.push_back(first.queue);
  if (first.operation.addresses != nullptr) ++first.operation.addresses;
  if (--first.operation.accepts_left == 0) waiting_.pop_front();
}

void PlainListener::TellReady() {
  std::vector<std::shared_ptr<Queue>> told;
  {
    const std::lock_guard lock(mutex_);
    while (!ready_.empty() && !waiting_.empty()) {
      const Operation& first = waiting_.front().operation;
      exs_event_t event = Finished(first, 0, 0, 0);
      exs_evt_accept_t* const accepted = &event.exs_evt_union.exs_evt_accept;
      Ready ready = std::move(ready_.front());
      event.exs_evt_errno =
          ready.plain.valid()
              ? TellPlain(std::move(ready.plain), first.addresses, accepted)
              : TellAccepted(std::move(ready.sdp), family_, first.addresses, accepted);
      ready_.pop_front();
      Tell(event);
    }
    told.swap(told_);
  }
  for (const auto& queue : told) queue->Announce();
}

void PlainListener::TellError(int error) {
  std::vector<std::shared_ptr<Queue>> told;
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty()) Tell(Finished(waiting_.front().operation, error, 0, 0));
    told.swap(told_);
  }
  for (const auto& queue : told) queue->Announce();
}

bool PlainListener::Wanted() {
  const std::lock_guard lock(mutex_);
  return !ended_ && !waiting_.empty();
}

// --- the listening socket, on the helper's thread ------------------------------------------------

void PlainListener::Step() {
  TellReady();
  if (!ready_.empty()) library_.polls().TellReady(number_);
  if (!IsOpen()) return End(ECANCELED);
  if (Wanted() && AcceptSome()) WatchListener();
  CheckNumberLater();
}

// False once it was closed, also by close(2).
bool PlainListener::IsOpen() {
  const std::lock_guard lock(mutex_);
  return !ended_ && HoldsNumber();
}

// With the lock the number cannot become another's by exs_close.
int PlainListener::AcceptOne() {
  const std::lock_guard lock(mutex_);
  if (!ended_) return accept4(number_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  errno = EBADF;
  return -1;
}

// False when there is nothing to watch for now.
bool PlainListener::AcceptSome() {
  while (candidates_.size() + ready_.size() < kConnectionsMax) {
    OwnedFd taken(AcceptOne());
    if (taken.valid()) {
      const auto candidate = std::make_shared<Candidate>();
      candidate->fd = std::move(taken);
      candidate->name = library_.helper().NewName();
      candidates_.push_back(candidate);
      library_.helper().RunAt(library_.context().After(kBeginsWithin),
                              [self = shared_from_this(), late = std::weak_ptr(candidate)] {
                                const auto still = late.lock();
                                if (still != nullptr) self->TakePlain(still);
                              });
      Look(candidate);
      continue;
    }
    const int error = errno;
    if (error == EAGAIN) return true;
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
      TellError(error);  // the connection waits for the next accept
      library_.helper().RunAt(library_.context().After(kAgain),
                              [self = shared_from_this()] { self->Step(); });
      return false;
    }
    // shutdown(2) has ended it; any other is of a connection.
    if (error == EINVAL || error == EBADF || error == ENOTSOCK) {
      End(error == EINVAL ? EINVAL : ECANCELED);
      return false;
    }
  }
  return false;  // goes on when one of them has gone
}

void PlainListener::WatchListener() {
  if (watching_) return;
  int error = EBADF;
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) {
      library_.helper().Unwatch(number_, watch_name_);
      error = library_.helper().Watch(number_, EPOLLIN, watch_name_, [self = shared_from_this()] {
        self->watching_ = false;
        self->Step();
      });
    }
  }
  watching_ = error == 0;
  if (error != 0) End(error == EBADF ? ECANCELED : error);
}

// close(2) leaves nobody a word.
void PlainListener::CheckNumberLater() {
  if (!Wanted() && candidates_.empty() && ready_.empty()) return;
  if (std::exchange(checking_, true)) return;
  library_.helper().RunAt(library_.context().After(kCheckEach), [self = shared_from_this()] {
    self->checking_ = false;
    self->Step();
  });
}

// --- what comes in, on the helper's thread -------------------------------------------------------

void PlainListener::Look(const std::shared_ptr<Candidate>& candidate) {
  if (candidate->gone) return;
  std::array<unsigned char, libc::kMpaRequestMax> bytes;
  const int fd = candidate->fd.get();
  const ssize_t got = recv(fd, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return LookLater(candidate, 1);
  if (got < 0) return Drop(candidate);
  if (got == 0) return TakePlain(candidate);
  const auto seen = static_cast<size_t>(got);
  const size_t need = libc::JudgeMpaRequest(bytes.data(), seen);
  if (need == libc::kMpaWhole) return SetUp(candidate);
  // The same again: the peer has ended in the midst of it.
  if (need == libc::kMpaNone || seen == candidate->seen) return TakePlain(candidate);
  candidate->seen = seen;
  LookLater(candidate, need);
}

void PlainListener::LookLater(const std::shared_ptr<Candidate>& candidate, size_t need) {
  libc::SetLowMark(candidate->fd.get(), need);
  library_.helper().Unwatch(candidate->fd.get(), candidate->name);
  const int error =
      library_.helper().Watch(candidate->fd.get(), EPOLLIN, candidate->name,
                              [self = shared_from_this(), candidate] { self->Look(candidate); });
  if (error != 0) Drop(candidate);
}

// Nothing of it was read.
void PlainListener::TakePlain(const std::shared_ptr<Candidate>& candidate) {
  if (candidate->gone || !candidate->fd.valid()) return;
  library_.helper().Unwatch(candidate->fd.get(), candidate->name);
  ready_.push_back({.sdp = {}, .plain = std::move(candidate->fd)});
  Drop(candidate);
}

// The descriptor is duplicated below.
void PlainListener::SetUp(const std::shared_ptr<Candidate>& candidate) {
  library_.helper().Unwatch(candidate->fd.get(), candidate->name);
  libc::SetLowMark(candidate->fd.get(), 1);
  absl::StatusOr<Socket> below = library_.context().CreateSocket(Family::kIpv4);
  if (!below.ok() || !below->ListenOver(candidate->fd.get()).ok()) return Drop(candidate);
  candidate->fd = OwnedFd();
  candidate->below = *std::move(below);
  const absl::StatusOr<OpId> posted = library_.helper().Post(
      [&](const OpArgs& args) {
        OpArgs bounded = args;
        bounded.deadline = library_.context().After(kSetUpWithin);
        return candidate->below.Accept(1, bounded);
      },
      [self = shared_from_this(), candidate](const Event& event) {
        self->OnSetUp(candidate, event);
      });
  if (!posted.ok()) Drop(candidate);
}

void PlainListener::OnSetUp(const std::shared_ptr<Candidate>& candidate, const Event& event) {
  if (event.ok()) {
    absl::StatusOr<Socket> taken = library_.context().TakeAccepted(event.accepted);
    if (taken.ok() && !candidate->gone) ready_.push_back({.sdp = *std::move(taken), .plain = {}});
  }
  Drop(candidate);
}

void PlainListener::Drop(const std::shared_ptr<Candidate>& candidate) {
  if (std::exchange(candidate->gone, true)) return;
  if (candidate->fd.valid()) library_.helper().Unwatch(candidate->fd.get(), candidate->name);
  candidate->fd = OwnedFd();
  candidate->below = Socket();
  std::erase(candidates_, candidate);
  library_.helper().Run([self = shared_from_this()] { self->Step(); });
}

void PlainListener::DropConnections() {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) return;
  }
  library_.helper().Unwatch(-1, watch_name_);  // the number is closed
  for (const auto& candidate : std::vector(candidates_)) Drop(candidate);
  ready_.clear();
}

// --- those of the process ------------------------------------------------------------------------

std::shared_ptr<PlainListener> PlainListeners::Find(int number) {
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(number);
  if (found == listeners_.end() || found->second == nullptr) return nullptr;
  return found->second->HoldsNumber() ? found->second : nullptr;
}

std::shared_ptr<PlainListener> PlainListeners::FindOrMake(Library& library, int number) {
  std::shared_ptr<PlainListener> closed;  // goes without the lock
  const std::lock_guard lock(mutex_);
  std::shared_ptr<PlainListener>& place = listeners_[number];
  if (place == nullptr || !place->HoldsNumber()) {
    closed = std::exchange(place, PlainListener::Make(library, number));
  }
  if (closed != nullptr) closed->Close();
  return place;
}

void PlainListeners::Remove(int number) {
  std::shared_ptr<PlainListener> last;
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(number);
  if (found == listeners_.end()) return;
  last = std::move(found->second);
  listeners_.erase(found);
}

}  // namespace esdp::exs
