#include "impl/exs/queue.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <utility>

#include "esdp/status.h"
#include "impl/exs/convert.h"
#include "impl/exs/futex.h"
#include "impl/exs/library.h"
#include "impl/exs/socket.h"

namespace esdp::exs {
namespace {

// What posts do not ask for is asked for here: several events of one Accept, and room to spare.
constexpr uint32_t kSpare = 16;
constexpr uint32_t kLeads = ~0u;

void AddTo(int set, int fd) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.fd = fd;
  epoll_ctl(set, EPOLL_CTL_ADD, fd, &wanted);
}

}  // namespace

Queue::Queue(Library& library) : library_(library), context_(library.context()) {}

absl::StatusOr<std::shared_ptr<Queue>> Queue::Open(Library& library, int depth) {
  std::shared_ptr<Queue> queue(new Queue(library));
  absl::StatusOr<EventQueue> below = queue->OpenBelow(depth, EXS_WAIT_ADAPTIVE);
  if (!below.ok()) return below.status();
  queue->below_ = *std::move(below);
  queue->ring_.resize(static_cast<size_t>(depth));
  if (!queue->OpenDescriptors()) return absl::ErrnoToStatus(EMFILE, "no descriptor is left");
  return queue;
}

bool Queue::OpenDescriptors() {
  ready_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  number_ = epoll_create1(EPOLL_CLOEXEC);
  if (ready_fd_ < 0 || number_ < 0) return false;
  AddTo(number_, ready_fd_);
  AddTo(number_, below_.fd());
  struct stat status {};
  fstat(number_, &status);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  return true;
}

bool Queue::HoldsNumber() const {
  struct stat status {};
  return fstat(number_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

absl::StatusOr<EventQueue> Queue::OpenBelow(int depth, int wait) {
  QueueOptions options;
  options.depth = static_cast<uint32_t>(depth) + kSpare;
  options.wait = wait == EXS_WAIT_NOTIFY      ? WaitMode::kNotify
                 : wait == EXS_WAIT_BUSY_POLL ? WaitMode::kBusyPoll
                                              : WaitMode::kAdaptive;
  options.restart_as_handler_says = true;
  return context_.CreateQueue(options);
}

Queue::~Queue() {
  if (ready_fd_ >= 0) close(ready_fd_);
  if (number_ >= 0) close(number_);
}

// --- slots and operations ------------------------------------------------------------------------

bool Queue::Reserve(int slots) {
  const std::lock_guard lock(mutex_);
  const auto wanted = static_cast<size_t>(slots);
  if (closed_ || wanted > ring_.size() - used_) return false;
  used_ += wanted;
  return true;
}

void Queue::Release(int slots) {
  const std::lock_guard lock(mutex_);
  used_ -= static_cast<size_t>(slots);
}

Operation& Queue::NewOperation() {
  const std::lock_guard lock(mutex_);
  if (unused_ == nullptr) return operations_.emplace_back();
  Operation& operation = *unused_;
  unused_ = operation.next;
  operation = Operation{};
  return operation;
}

void Queue::Recycle(Operation& operation) {
  std::shared_ptr<ExsSocket> last;  // goes without the lock
  const std::lock_guard lock(mutex_);
  last = std::move(operation.socket);
  operation.next = std::exchange(unused_, &operation);
}

OpArgs Queue::Args(Operation& operation) {
  return {.queue = below_, .cookie = std::bit_cast<uint64_t>(&operation)};
}

// --- events --------------------------------------------------------------------------------------

// With the lock.
void Queue::Push(const exs_event_t& event) {
  const size_t place = head_ + waiting_;
  ring_[place < ring_.size() ? place : place - ring_.size()] = event;
  ++waiting_;
}

// With the lock: those before which nothing is left below.
void Queue::PushDelivered() {
  while (!delivered_.empty() && delivered_.front().behind <= arrived_) {
    Push(delivered_.front().event);
    delivered_.pop_front();
  }
}

// With the lock.
void Queue::WakeFollowers() {
  if (followers_ == 0) return;
  sequence_.fetch_add(1);
  FutexWakeAll(&sequence_);
}

// With the lock.
void Queue::ShowReadiness() {
  if (shown_ == (waiting_ > 0)) return;
  shown_ = !shown_;
  uint64_t count = 1;
  if (shown_) {
    (void)!write(ready_fd_, &count, sizeof(count));
  } else {
    (void)!read(ready_fd_, &count, sizeof(count));
  }
}

void Queue::Deliver(const exs_event_t& event) {
  const uint64_t behind = below_.Stats().events;
  const std::lock_guard lock(mutex_);
  delivered_.push_back({event, behind});
}

void Queue::Announce() {
  bool wakes = false;
  {
    const std::lock_guard lock(mutex_);
    wakes = leader_blocked_;
  }
  if (wakes) below_.Wake();
  Look();
}

bool Queue::Take(std::span<exs_event_t> out, size_t need, size_t* taken) {
  const std::lock_guard lock(mutex_);
  const bool enough = waiting_ >= need;
  if (enough) {
    *taken = std::min(out.size(), waiting_);
    for (size_t i = 0; i < *taken; ++i) {
      out[i] = ring_[head_];
      head_ = head_ + 1 == ring_.size() ? 0 : head_ + 1;
    }
    waiting_ -= *taken;
    used_ -= *taken;
  }
  ShowReadiness();
  return enough;
}

int Queue::Dequeue(std::span<exs_event_t> out, size_t need, absl::Time deadline, size_t* taken) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return EBADF;
    ++visitors_;
  }
  int error = 0;
  for (;;) {
    if (Take(out, need, taken)) break;
    const Waited waited = WaitForMore(need, deadline);
    if (waited == Waited::kMore) continue;
    if (Take(out, need, taken)) break;
    error = waited == Waited::kSignal ? EINTR : waited == Waited::kTimeout ? ETIMEDOUT : EBADF;
    break;
  }
  const std::lock_guard lock(mutex_);
  --visitors_;
  return error;
}

void Queue::Look() {
  while (BeginLead()) {
    const size_t arrived = below_.TryDequeue(std::span(batch_)).value_or(0);
    EndLead(std::span(batch_).first(arrived));
    if (arrived < kBatch) break;
  }
  const std::lock_guard lock(mutex_);
  ShowReadiness();
}

// --- waiting -------------------------------------------------------------------------------------

Queue::Waited Queue::WaitForMore(size_t need, absl::Time deadline) {
  if (deadline == absl::InfinitePast()) {
    Look();
    return Waited::kTimeout;
  }
  uint32_t seen = 0;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_ >= need) return Waited::kMore;
    if (leader_) {
      ++followers_;
      seen = sequence_.load();
    } else {
      leader_ = leader_blocked_ = true;
      seen = kLeads;
    }
  }
  return seen == kLeads ? Lead(deadline) : Follow(seen, deadline);
}

absl::StatusOr<size_t> Queue::TakeBelow(absl::Time deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (!delivered_.empty()) return below_.TryDequeue(std::span(batch_));
  }
  return below_.Dequeue(std::span(batch_), {1, deadline});
}

Queue::Waited Queue::Lead(absl::Time deadline) {
  const absl::StatusOr<size_t> arrived = TakeBelow(deadline);
  EndLead(std::span(batch_).first(arrived.ok() ? *arrived : 0));
  if (arrived.ok()) return Waited::kMore;
  switch (KindOf(arrived.status())) {
    case ErrorKind::kSignal:
      return Waited::kSignal;
    case ErrorKind::kCancelled:  // something was delivered
      return Waited::kMore;
    case ErrorKind::kDeadlineExceeded:
      return context_.Now() < deadline ? Waited::kMore : Waited::kTimeout;
    default:
      return Waited::kClosed;
  }
}

Queue::Waited Queue::Follow(uint32_t seen, absl::Time deadline) {
  const int error = FutexWait(&sequence_, seen, deadline - context_.Now());
  const std::lock_guard lock(mutex_);
  --followers_;
  if (error == EINTR) return Waited::kSignal;
  return error == ETIMEDOUT && context_.Now() >= deadline ? Waited::kTimeout : Waited::kMore;
}

bool Queue::BeginLead() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(leader_, true);
}

void Queue::EndLead(std::span<const Event> arrived) {
  std::array<exs_event_t, kBatch> events;
  for (size_t i = 0; i < arrived.size(); ++i) {
    auto& operation = *std::bit_cast<Operation*>(arrived[i].cookie);
    events[i] = Conclude(*this, operation, arrived[i]);
  }
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < arrived.size(); ++i) {
    PushDelivered();
    Push(events[i]);
    ++arrived_;
  }
  PushDelivered();
  leader_ = leader_blocked_ = false;
  WakeFollowers();
}

// --- attributes ----------------------------------------------------------------------------------

int Queue::Resize(int depth) {
  const std::lock_guard lock(mutex_);
  if (used_ > static_cast<size_t>(depth)) return EBUSY;
  std::vector<exs_event_t> larger(static_cast<size_t>(depth));
  const absl::Status resized = below_.Resize(static_cast<size_t>(depth) + kSpare);
  if (!resized.ok()) return ErrnoOf(resized);
  for (size_t i = 0; i < waiting_; ++i) larger[i] = ring_[(head_ + i) % ring_.size()];
  ring_ = std::move(larger);
  head_ = 0;
  return 0;
}

int Queue::SetWait(int wait) {
  const std::lock_guard lock(mutex_);
  if (wait == wait_mode_) return 0;
  if (used_ > waiting_ || visitors_ > 0 || leader_) return EBUSY;
  absl::StatusOr<EventQueue> other = OpenBelow(static_cast<int>(ring_.size()), wait);
  if (!other.ok()) return ErrnoOf(other.status());
  below_ = *std::move(other);
  arrived_ = 0;
  AddTo(number_, below_.fd());
  wait_mode_ = wait;
  return 0;
}

int Queue::depth() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(ring_.size());
}

int Queue::waiting() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(waiting_);
}

int Queue::wait_mode() const {
  const std::lock_guard lock(mutex_);
  return wait_mode_;
}

int Queue::SetSignal(int number, bool enabled) {
  uint64_t before = 0;
  const uint64_t name = enabled ? library_.helper().NewName() : 0;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(signal_name_, name);
    signal_number_ = number;
  }
  if (before != 0) library_.helper().Unwatch(number_, before);
  if (!enabled) return 0;
  if (const int error = library_.helper().Start(); error != 0) return error;
  return library_.helper().Watch(number_, EPOLLIN, name, [queue = weak_from_this(), name] {
    if (const std::shared_ptr<Queue> self = queue.lock(); self != nullptr) self->SendSignal(name);
  });
}

// On the helper's thread: never on one that posts.
void Queue::SendSignal(uint64_t name) {
  library_.helper().Unwatch(number_, name);
  int number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (signal_name_ != name) return;
    signal_name_ = 0;
    number = signal_number_;
  }
  sigval value{};
  value.sival_int = number_;
  (void)sigqueue(getpid(), number, value);
}

void Queue::GetSignal(int* number, bool* enabled) const {
  const std::lock_guard lock(mutex_);
  *number = signal_number_;
  *enabled = signal_name_ != 0;
}

int Queue::Close() {
  Look();  // an operation that has ended is none
  const std::lock_guard lock(mutex_);
  if (used_ > waiting_ || visitors_ > 0 || leader_) return EBUSY;
  closed_ = true;
  return 0;
}

}  // namespace esdp::exs
