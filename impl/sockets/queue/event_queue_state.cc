#include "impl/sockets/queue/event_queue_state.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/queue/event_wait_word.h"

namespace esdp::sockets {
namespace {

constexpr uint32_t kDepthMax = 1u << 20;
constexpr size_t kSleepers = 16;  // more of them cost an allocation

void WriteSignal(int fd) {
  const uint64_t one = 1;
  (void)!write(fd, &one, sizeof(one));
}

absl::Status BadDepth() {
  return MakeError(ErrorKind::kInvalidArgument,
                   "the depth of an event queue is 1 to " + std::to_string(kDepthMax) + " events");
}

}  // namespace

absl::Status ClosedQueue() {
  return MakeError(ErrorKind::kBadHandle, "the event queue handle is empty or closed");
}

absl::StatusOr<std::shared_ptr<QueueState>> QueueState::Create(
    std::shared_ptr<ContextState> context, const QueueOptions& options) {
  if (options.depth == 0 || options.depth > kDepthMax) return BadDepth();
  if (options.restart_as_handler_says && context->manual()) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "restart_as_handler_says needs the thread of a Context that has one: with "
                     "manual progress who sleeps has to be woken by the fabric itself");
  }
  std::shared_ptr<QueueState> state(new QueueState(std::move(context), options));
  state->ready_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  state->OpenSleepDescriptor();
  if (state->ready_fd_ < 0 || state->sleep_fd_ < 0) {
    return MakeError(ErrorKind::kMemory,
                     "no descriptor is left for an event queue: raise the limit (ulimit -n)");
  }
  return state;
}

std::shared_ptr<QueueState> QueueState::CreateHidden(std::shared_ptr<ContextState> context,
                                                     const QueueOptions& options) {
  return std::shared_ptr<QueueState>(new QueueState(std::move(context), options));
}

void QueueState::OpenSleepDescriptor() {
  if (sleep_fd_ < 0) sleep_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

QueueState::QueueState(std::shared_ptr<ContextState> context, const QueueOptions& options)
    : context_(std::move(context)), options_(options), ring_(options.depth) {
  wishes_.reserve(kSleepers);
  context_->Add(this);
}

QueueState::~QueueState() {
  context_->Remove(this);
  for (const int fd : {ready_fd_, sleep_fd_, epoll_fd_}) {
    if (fd >= 0) close(fd);
  }
}

// --- slots and events ----------------------------------------------------------------------------

bool QueueState::Reserve() {
  const std::lock_guard lock(mutex_);
  if (closed_ || waiting_ + reserved_ >= ring_.size()) {
    ++full_;
    return false;
  }
  ++reserved_;
  return true;
}

uint32_t QueueState::ReserveUpTo(uint32_t wanted) {
  const std::lock_guard lock(mutex_);
  const size_t taken = waiting_ + reserved_;
  if (closed_ || taken >= ring_.size()) return 0;
  const auto slots = static_cast<uint32_t>(std::min<size_t>(wanted, ring_.size() - taken));
  reserved_ += slots;
  return slots;
}

void QueueState::Unreserve(uint32_t slots) {
  {
    const std::lock_guard lock(mutex_);
    reserved_ -= slots;
  }
  FeedStarved();
}

void QueueState::DeliverAll(std::span<const Event> events) {
  std::unique_lock lock(mutex_);
  const auto count = static_cast<uint32_t>(events.size());
  reserved_ -= count;
  size_t place = head_ + waiting_;
  for (const Event& event : events) {
    ring_[place < ring_.size() ? place : place - ring_.size()] = event;
    ++place;
  }
  waiting_ += count;
  delivered_ += count;
  waiting_max_ = std::max(waiting_max_, waiting_);
  count_.store(waiting_, std::memory_order_release);
  if (exposed_) SetSignal();
  const Call call = CallSleepers();
  lock.unlock();  // or the sleeper would wake only to wait for it
  Make(call);
}

// Takes up to out.size() events if there are `at_least`.
size_t QueueState::Take(std::span<Event> out, size_t at_least) {
  if (count_.load(std::memory_order_acquire) < std::max<size_t>(at_least, 1)) return 0;
  std::unique_lock lock(mutex_);
  if (waiting_ < at_least) return 0;
  const size_t taken = std::min<size_t>(out.size(), waiting_);
  bool accepts = false;
  for (size_t i = 0; i < taken; ++i) {
    out[i] = ring_[head_];
    accepts |= out[i].accepted != SocketId::kNone;
    head_ = head_ + 1 == ring_.size() ? 0 : head_ + 1;
  }
  waiting_ -= static_cast<uint32_t>(taken);
  count_.store(waiting_, std::memory_order_release);
  if (waiting_ == 0) ClearSignal();
  // Another sleeper may have been passed over by the signal that woke this thread.
  if (waiting_ > 0) WakeSleeper();
  lock.unlock();
  if (accepts) [[unlikely]]
    context_->OnAcceptsSeen(out.first(taken));
  return taken;
}

void QueueState::FeedStarved() {
  if (!starved_.load(std::memory_order_relaxed) || !starved_.exchange(false)) return;
  try {
    context_->MatchAllListeners();
  } catch (const std::bad_alloc&) {
    starved_.store(true);  // with the next event that is taken
  }
}

void QueueState::AfterTaking(size_t taken) {
  if (taken > 0) FeedStarved();
  context_->left_regions().Reap(*context_);
}

void QueueState::SetStarved() {
  if (starved_.exchange(true)) return;
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = starvations_++ == 0;
  }
  if (first && context_->options().log) {
    context_->options().log(
        "connections wait to be accepted: their event queue is full; take events more often, or "
        "make it deeper (QueueOptions::depth, Resize)");
  }
}

void QueueState::SetSignal() {
  if (!std::exchange(signalled_, true)) WriteSignal(ready_fd_);
}

void QueueState::ClearSignal() {
  uint64_t count = 0;
  if (std::exchange(signalled_, false)) (void)!read(ready_fd_, &count, sizeof(count));
}

// --- descriptors and attributes ------------------------------------------------------------------

int QueueState::fd() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(exposed_, true) && waiting_ > 0) SetSignal();
  if (!context_->manual()) return ready_fd_;
  if (epoll_fd_ < 0) {
    epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
    for (const int fd : {ready_fd_, context_->shard().fd()}) {
      epoll_event wanted{};
      wanted.events = EPOLLIN;
      if (fd >= 0) epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &wanted);
    }
  }
  return epoll_fd_;
}

void QueueState::Wake() {
  const std::lock_guard lock(mutex_);
  ++wakes_;
  alerts_.store(wakes_, std::memory_order_release);
  WakeSleeper();
}

void QueueState::Interrupt() {
  const std::lock_guard lock(mutex_);
  WakeSleeper();
}

// With the lock.
bool QueueState::SleeperHasReason() const {
  if (wishes_.empty()) return false;
  return waiting_ >= *std::ranges::min_element(wishes_) || wakes_ > 0 || closed() ||
         context_->stopped();
}

// With the lock.
QueueState::Call QueueState::CallSleepers() {
  if (!SleeperHasReason()) return {};
  const Call call = {.descriptor = wishes_.size() > word_sleepers_, .word = word_sleepers_ > 0};
  if (call.descriptor) sleep_signalled_ = true;
  if (call.word) word_.fetch_add(1);
  return call;
}

void QueueState::Make(Call call) {
  if (call.descriptor) WriteSignal(sleep_fd_);
  if (call.word) FutexWake(word_);
}

// With the lock.
void QueueState::WakeSleeper() { Make(CallSleepers()); }

bool QueueState::TakeWake() {
  if (alerts_.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(mutex_);
  if (wakes_ == 0) return false;
  --wakes_;
  alerts_.store(wakes_, std::memory_order_release);
  return true;
}

absl::Status QueueState::Resize(size_t depth) {
  if (depth == 0 || depth > kDepthMax) return BadDepth();
  {
    const std::lock_guard lock(mutex_);
    if (depth < waiting_ + reserved_) {
      return MakeError(ErrorKind::kBusy,
                       std::to_string(waiting_ + reserved_) +
                           " slots are taken or promised, more than the new depth");
    }
    std::vector<Event> ring(depth);
    for (size_t i = 0; i < waiting_; ++i) ring[i] = ring_[(head_ + i) % ring_.size()];
    ring_ = std::move(ring);
    head_ = 0;
  }
  FeedStarved();
  return absl::OkStatus();
}

QueueStats QueueState::Stats() const {
  const std::lock_guard lock(mutex_);
  return {.depth = static_cast<uint32_t>(ring_.size()),
          .waiting = waiting_,
          .reserved = reserved_,
          .waiting_max = waiting_max_,
          .events = delivered_,
          .full = full_,
          .starved = starvations_};
}

uint32_t QueueState::reserved() const {
  const std::lock_guard lock(mutex_);
  return reserved_;
}

bool QueueState::Close() {
  std::vector<SocketId> accepted;  // in events that nobody will have
  {
    const std::lock_guard lock(mutex_);
    if (reserved_ > 0) return false;
    closed_.store(true, std::memory_order_release);
    for (size_t i = 0; i < waiting_; ++i) {
      const SocketId socket = ring_[(head_ + i) % ring_.size()].accepted;
      if (socket != SocketId::kNone) accepted.push_back(socket);
    }
    WakeSleeper();
  }
  context_->OnAcceptsLost(accepted);
  return true;
}

}  // namespace esdp::sockets
