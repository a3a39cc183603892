#include "impl/exs/plain_stream.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "impl/exs/library.h"
#include "impl/exs/plain.h"
#include "impl/switch/libc_calls.h"
#include "impl/switch/taker.h"

namespace esdp::exs {

std::shared_ptr<PlainStream> PlainStream::Make(Library& library, int number) {
  if (PlainKindOf(number) != PlainKind::kConnected) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  struct stat status {};
  if (fstat(number, &status) != 0) return nullptr;
  if (const int error = library.helper().Start(); error != 0) {
    errno = error;
    return nullptr;
  }
  std::shared_ptr<PlainStream> made(new PlainStream(library, number));
  made->device_ = status.st_dev;
  made->inode_ = status.st_ino;
  for (Lane& lane : made->lanes_) lane.name = library.helper().NewName();
  return made;
}

bool PlainStream::HoldsNumber() const {
  struct stat status {};
  return fstat(number_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

// --- posts ---------------------------------------------------------------------------------------

int PlainStream::Post(std::shared_ptr<Queue> queue, const Operation& operation, Transfer transfer) {
  const Way way = transfer.way;
  std::erase_if(transfer.parts, [](const Part& part) { return part.length == 0; });
  return Add(way, {std::move(queue), operation, std::move(transfer)});
}

int PlainStream::Shutdown(std::shared_ptr<Queue> queue, const Operation& operation) {
  return Add(Way::kSending, {std::move(queue), operation});
}

int PlainStream::Add(Way way, Waiting waiting) {
  int error = 0;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return EBADF;
    error = failed_;
    if (error == 0) {
      LaneOf(way).waiting.push_back(std::move(waiting));
      if (LaneOf(way).waiting.size() == 1) Step(way);
    }
  }
  Announce();
  return error;
}

int PlainStream::Close(std::shared_ptr<Queue> queue, const Operation& operation, bool aborts) {
  int error = 0;
  {
    const std::lock_guard lock(mutex_);
    error = BeginClose(aborts);
    if (error == 0) {
      Lane& lane = LaneOf(Way::kSending);
      lane.waiting.push_back({std::move(queue), operation});
      if (lane.waiting.size() == 1) Step(Way::kSending);
    }
  }
  Announce();
  return error;
}

int PlainStream::CloseUnheard(bool aborts) {
  int error = 0;
  {
    const std::lock_guard lock(mutex_);
    error = BeginClose(aborts);
    if (error == 0) FreeNumber();
  }
  Announce();
  return error;
}

// With the lock.
int PlainStream::BeginClose(bool aborts) {
  if (std::exchange(closing_, true)) return EBADF;
  EndAll(Way::kReceiving, ECANCELED);
  if (!aborts) return 0;
  EndAll(Way::kSending, ECANCELED);
  const linger resets{1, 0};
  (void)libc::real.setsockopt.get()(number_, SOL_SOCKET, SO_LINGER, &resets, sizeof(resets));
  return 0;
}

// With the lock. What is still being sent has a duplicate.
void PlainStream::FreeNumber() {
  if (std::exchange(freed_, true)) return;
  library_.streams().Remove(*this);
  if (HoldsNumber()) (void)libc::real.close.get()(number_);
}

void PlainStream::OnClose() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = freed_ = true;
    for (const Way way : {Way::kSending, Way::kReceiving}) EndAll(way, ECANCELED);
  }
  Announce();
}

int PlainStream::Cancel(bool by_handle, exs_ahandle_t handle) {
  int cancelled = 0;
  {
    const std::lock_guard lock(mutex_);
    for (Lane& lane : lanes_) {
      std::erase_if(lane.waiting, [&](Waiting& each) {
        if (each.operation.type == EXS_EVT_CLOSE) return false;
        if (by_handle && each.operation.handle != handle) return false;
        Tell(each, ECANCELED);
        ++cancelled;
        return true;
      });
    }
    for (const Way way : {Way::kSending, Way::kReceiving}) Step(way);
  }
  Announce();
  return cancelled;
}

// With the lock.
void PlainStream::EndAll(Way way, int error) {
  Lane& lane = LaneOf(way);
  for (Waiting& each : lane.waiting) Tell(each, error);
  lane.waiting.clear();
  Unwatch(way);
}

// With the lock.
void PlainStream::Tell(Waiting& waiting, int error) {
  told_.push_back(waiting.queue);
  waiting.queue->Deliver(Finished(waiting.operation, error, waiting.moved, waiting.flags));
}

void PlainStream::Announce() {
  std::vector<std::shared_ptr<Queue>> told;
  {
    const std::lock_guard lock(mutex_);
    told.swap(told_);
  }
  for (const auto& queue : told) queue->Announce();
}

// --- what waits ----------------------------------------------------------------------------------

// With the lock.
void PlainStream::Step(Way way) {
  Lane& lane = LaneOf(way);
  while (!lane.waiting.empty()) {
    Waiting& front = lane.waiting.front();
    const int fd = lane.fd.valid() ? lane.fd.get() : number_;
    const bool closes = front.operation.type == EXS_EVT_CLOSE;
    int error = failed_ != 0 && !closes ? failed_ : Attempt(way, fd, front);
    if (error == kWait && Watch(way)) return;
    if (error == kWait) error = errno;
    // These tell nothing of the connection.
    const bool of_it_alone = error == EPIPE || error == EFAULT || error == EIO || error == EMFILE;
    if (error != 0 && !of_it_alone) failed_ = error;
    Tell(front, error);
    lane.waiting.pop_front();
  }
  Unwatch(way);
}

void PlainStream::OnReady(Way way) {
  {
    const std::lock_guard lock(mutex_);
    LaneOf(way).watched = false;
    if (freed_ || HoldsNumber()) {
      Step(way);
    } else {
      closing_ = freed_ = true;
      for (const Way each : {Way::kSending, Way::kReceiving}) EndAll(each, ECANCELED);
    }
  }
  Announce();
}

// With the lock. False with errno.
bool PlainStream::Watch(Way way) {
  Lane& lane = LaneOf(way);
  if (!lane.fd.valid()) lane.fd = OwnedFd(fcntl(number_, F_DUPFD_CLOEXEC, 0));
  if (!lane.fd.valid()) return false;
  if (std::exchange(lane.watched, true)) return true;
  library_.helper().Unwatch(lane.fd.get(), lane.name);
  const uint32_t events = way == Way::kSending ? EPOLLOUT : EPOLLIN;
  const int error = library_.helper().Watch(
      lane.fd.get(), events, lane.name, [self = shared_from_this(), way] { self->OnReady(way); });
  CheckNumberLater();
  errno = error;
  return error == 0;
}

// With the lock.
void PlainStream::Unwatch(Way way) {
  Lane& lane = LaneOf(way);
  if (!lane.fd.valid()) return;
  library_.helper().Unwatch(lane.fd.get(), lane.name);
  lane.watched = false;
  lane.fd = OwnedFd();
}

// With the lock: what closes the number without close(2) leaves nobody a word.
void PlainStream::CheckNumberLater() {
  if (std::exchange(checking_, true)) return;
  library_.helper().RunAt(library_.context().After(kCheckEach), [self = shared_from_this()] {
    {
      const std::lock_guard lock(self->mutex_);
      self->checking_ = false;
      if (self->freed_) return;
      const bool waits =
          std::ranges::any_of(self->lanes_, [](const Lane& lane) { return !lane.waiting.empty(); });
      if (waits && self->HoldsNumber()) return self->CheckNumberLater();
      if (!waits) return;
    }
    self->OnClose();
  });
}

// --- moving bytes --------------------------------------------------------------------------------

// With the lock.
int PlainStream::Attempt(Way way, int fd, Waiting& front) {
  if (way == Way::kReceiving) return ReceiveParts(fd, front);
  if (front.operation.type == EXS_EVT_SHUTDOWN) {
    return libc::real.shutdown.get()(fd, SHUT_WR) == 0 ? 0 : errno;
  }
  if (front.operation.type == EXS_EVT_CLOSE) {
    FreeNumber();
    return 0;
  }
  return SendParts(fd, front);
}

int PlainStream::SendParts(int fd, Waiting& front) {
  std::vector<Part>& parts = front.transfer.parts;
  if (front.next < parts.size()) front.flags |= EXSX_EVF_COPIED;
  while (front.next < parts.size()) {
    Part& part = parts[front.next];
    if (const int error = SendSome(fd, front, part); error != 0) return error;
    if (part.length == 0) ++front.next;
  }
  return 0;
}

int PlainStream::SendSome(int fd, Waiting& front, Part& part) {
  std::array<std::byte, 64 * 1024> read;
  const std::byte* from = nullptr;
  size_t length = part.length;
  if (part.file.valid()) {
    length = std::min<size_t>(length, read.size());
    const ssize_t got =
        pread(part.file.get(), read.data(), length, static_cast<off_t>(part.offset));
    if (got < 0) return errno;
    if (got == 0) return EIO;  // it is shorter than it was said to be
    from = read.data();
    length = static_cast<size_t>(got);
  } else {
    from = MemoryOf(part).data();
  }
  const bool last = front.next + 1 == front.transfer.parts.size() && length == part.length;
  const bool has_urgent = last && front.transfer.urgent;
  const int urgent = has_urgent && length == 1 ? MSG_OOB : 0;
  if (has_urgent && length > 1) --length;  // which is sent alone
  const ssize_t sent =
      libc::real.send.get()(fd, from, length, MSG_DONTWAIT | MSG_NOSIGNAL | urgent);
  if (sent < 0) return errno == EAGAIN ? kWait : errno;
  part.offset += static_cast<uint64_t>(sent);
  part.length -= static_cast<uint64_t>(sent);
  front.moved += static_cast<uint64_t>(sent);
  return 0;
}

int PlainStream::ReceiveParts(int fd, Waiting& front) {
  if (front.transfer.peeks) return Peek(fd, front);
  std::vector<Part>& parts = front.transfer.parts;
  while (front.next < parts.size()) {
    Part& part = parts[front.next];
    const ssize_t got = libc::real.recv.get()(fd, MemoryOf(part).data(), part.length, MSG_DONTWAIT);
    if (got < 0 && errno != EAGAIN) return errno;
    if (got < 0) return front.moved > 0 && !front.transfer.wait_all ? 0 : kWait;
    if (got == 0) {
      front.flags |= EXSX_EVF_EOF;
      return 0;
    }
    front.flags |= EXSX_EVF_COPIED;
    front.moved += static_cast<uint64_t>(got);
    part.offset += static_cast<uint64_t>(got);
    part.length -= static_cast<uint64_t>(got);
    if (part.length == 0) ++front.next;
  }
  return 0;
}

int PlainStream::Peek(int fd, Waiting& front) {
  std::vector<iovec> pieces;
  for (const Part& part : front.transfer.parts) {
    pieces.push_back({MemoryOf(part).data(), part.length});
  }
  if (pieces.empty()) return 0;
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  const ssize_t got = libc::real.recvmsg.get()(fd, &message, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN ? kWait : errno;
  front.flags |= got == 0 ? EXSX_EVF_EOF : EXSX_EVF_COPIED;
  front.moved = static_cast<uint64_t>(got);
  return 0;
}

// --- those of the process ------------------------------------------------------------------------

std::shared_ptr<PlainStream> PlainStreams::Find(int number) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(number);
  if (found == streams_.end()) return nullptr;
  return found->second->HoldsNumber() ? found->second : nullptr;
}

std::shared_ptr<PlainStream> PlainStreams::FindOrMake(Library& library, int number) {
  std::shared_ptr<PlainStream> made;
  std::shared_ptr<PlainStream> closed;
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(number);
    if (found != streams_.end() && found->second->HoldsNumber()) return found->second;
    made = PlainStream::Make(library, number);
    if (found != streams_.end()) {
      closed = std::move(found->second);
      streams_.erase(found);
    }
    if (made != nullptr) {
      streams_[number] = made;
      libc::taken_numbers.Add(number);  // so that close(2) tells
    }
  }
  const int error = errno;
  if (closed != nullptr) closed->OnClose();
  errno = error;
  return made;
}

void PlainStreams::Remove(const PlainStream& stream) {
  std::shared_ptr<PlainStream> last;
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream.number());
  if (found == streams_.end() || found->second.get() != &stream) return;
  last = std::move(found->second);
  streams_.erase(found);
  if (stream.HoldsNumber()) libc::taken_numbers.Remove(stream.number());
}

}  // namespace esdp::exs
