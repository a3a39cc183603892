#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/context/leading.h"
#include "impl/sockets/convert.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/queue/event_queue_state.h"
#include "impl/sockets/queue/event_wait_word.h"

// How threads wait for events: by moving the protocol themselves, in manual progress or in place of
// the Context's thread; by looking; by sleeping on a descriptor. A sleep is a ppoll, so that a
// signal ends it; or on a word, which the kernel restarts as it would recv(2).

namespace esdp::sockets {
namespace {

absl::Status Interrupted() { return MakeError(ErrorKind::kSignal, "a signal ended the wait"); }
absl::Status Woken() { return MakeError(ErrorKind::kCancelled, "Wake ended the wait"); }
absl::Status TooLate() {
  return MakeError(ErrorKind::kDeadlineExceeded,
                   "fewer events than asked for were there at the deadline; none was consumed");
}

constexpr Duration kLook = std::chrono::milliseconds(1);

timespec ToTimespec(Duration duration) {
  const auto bounded = std::clamp<Duration>(duration, Duration(0), std::chrono::hours(24));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(bounded);
  timespec out{};
  out.tv_sec = seconds.count();
  out.tv_nsec = (bounded - seconds).count();
  return out;
}

}  // namespace

// How long a wait that finds nothing looks again at once before it sleeps.
class QueueState::SpinBudget {
 public:
  explicit SpinBudget(const QueueOptions& options)
      : endless_(options.wait == WaitMode::kBusyPoll),
        spin_(options.wait == WaitMode::kAdaptive ? ToDuration(options.spin) : Duration(0)) {}

  void Renew() { idle_since_ = kTimeInfinite; }
  // So short a time that what is waited for may be on its way: not worth stepping aside.
  bool IsFresh(Time now) const { return now - idle_since_ < kFresh; }
  bool Lasts(Time now) {
    if (idle_since_ == kTimeInfinite) idle_since_ = now;
    return endless_ || now - idle_since_ < spin_;
  }

 private:
  static constexpr Duration kFresh = std::chrono::microseconds(10);

  const bool endless_;
  const Duration spin_;
  Time idle_since_ = kTimeInfinite;
};

absl::Status QueueState::CheckWait(std::span<Event> out, const WaitArgs& wait) const {
  const std::lock_guard lock(mutex_);
  if (wait.min_events > out.size() || wait.min_events > ring_.size()) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "min_events is " + std::to_string(wait.min_events) + ", the span holds " +
                         std::to_string(out.size()) + " and the queue " +
                         std::to_string(ring_.size()));
  }
#ifndef NDEBUG
  if (wait.min_events > waiting_ + reserved_ && wait.deadline == absl::InfiniteFuture() &&
      open_ended_.load(std::memory_order_relaxed) == 0 && !options_.restart_as_handler_says) {
    return MakeError(ErrorKind::kWrongState,
                     "min_events is " + std::to_string(wait.min_events) + ", but only " +
                         std::to_string(waiting_ + reserved_) +
                         " events are waiting or outstanding: the wait could never end");
  }
#endif
  return absl::OkStatus();
}

// The Context has been closed: what it delivered before is still there to be taken.
absl::StatusOr<size_t> QueueState::TakeLast(std::span<Event> out, const absl::Status& unusable) {
  if (KindOf(unusable) == ErrorKind::kBadHandle && !out.empty()) {
    if (const size_t taken = Take(out, 1); taken > 0) return taken;
  }
  return unusable;
}

absl::StatusOr<size_t> QueueState::TryDequeue(std::span<Event> out) {
  const ContextCall call(context_.get());
  if (!call.ok()) return TakeLast(out, call.status());
  if (context_->manual()) context_->shard().Poll();
  const size_t taken = Take(out, 0);
  AfterTaking(taken);
  return taken;
}

absl::StatusOr<size_t> QueueState::Dequeue(std::span<Event> out, const WaitArgs& wait, Lead lead) {
  if (wait.min_events == 0) return TryDequeue(out);
  const ContextCall call(context_.get());
  if (!call.ok()) return TakeLast(out, call.status());
  if (absl::Status status = CheckWait(out, wait); !status.ok()) return status;
  const Time deadline = context_->ToShardTime(wait.deadline);
  absl::StatusOr<size_t> taken = context_->manual()
                                     ? *WaitMoving(out, wait, deadline, Sleep::kOnWork)
                                     : WaitBesideThread(out, wait, deadline, lead);
  AfterTaking(taken.ok() ? *taken : 0);
  return taken;
}

// One of the threads that wait does the work of the Context's thread meanwhile.
absl::StatusOr<size_t> QueueState::WaitBesideThread(std::span<Event> out, const WaitArgs& wait,
                                                    Time deadline, Lead lead) {
  provider::Shard& shard = context_->shard();
  // Who leads again and again must not leave all the work to the thread only because there is
  // always an event.
  if (!shard.LedLately()) {
    if (const size_t taken = Take(out, wait.min_events); taken > 0) return taken;
  }
  const bool restarts = options_.restart_as_handler_says && deadline == kTimeInfinite;
  Duration spin = options_.wait == WaitMode::kAdaptive ? ToDuration(options_.spin) : Duration(0);
  // For who does not wait the thread would stand by, and then nobody would do the work.
  const bool waits = deadline == kTimeInfinite || shard.Now() < deadline;
  if (waits && lead == Lead::kTakes) {
    Leading leading(shard);
    if (leading.leads()) {
      auto ended = WaitMoving(out, wait, deadline, restarts ? Sleep::kOnWord : Sleep::kOnWork);
      if (ended.has_value()) return *std::move(ended);
      leading.HandOver();
      spin = Duration(0);
    }
  }
  const bool on_word = restarts || (waits && lead == Lead::kLeaves);
  return WaitLooking(out, wait, deadline, on_word ? Sleep::kOnWord : Sleep::kOnEvents, spin);
}

std::optional<absl::StatusOr<size_t>> QueueState::WaitMoving(std::span<Event> out,
                                                             const WaitArgs& wait, Time deadline,
                                                             Sleep sleep) {
  provider::Shard& shard = context_->shard();
  SpinBudget patience(options_);
  Aside aside = StepAsideFirst();
  for (;;) {
    if (auto over = WhyOver(out)) return over;
    Time now{};
    const bool moved = shard.Poll(&now);
    if (const size_t taken = TakeAfter(aside, out, wait.min_events); taken > 0) return taken;
    if (TakeWake()) return Woken();
    if (moved) {
      patience.Renew();
      continue;
    }
    if (shard.virtual_time()) {
      if (!shard.Advance(deadline) && !shard.Poll()) return TooLate();
      continue;
    }
    if (now >= deadline) return TooLate();
    aside = LookAgain(now, patience);
    if (aside != Aside::kNot) continue;
    bool hands_over = false;
    auto ended = sleep == Sleep::kOnWord ? SleepAsOne(out, wait, &hands_over)
                                         : SleepOrEnd(out, wait, deadline, sleep);
    if (ended.has_value() || hands_over) return ended;
  }
}

// An answer where no event will come any more.
std::optional<absl::StatusOr<size_t>> QueueState::WhyOver(std::span<Event> out) {
  if (closed()) return absl::StatusOr<size_t>(ClosedQueue());
  if (context_->stopped()) return TakeLast(out, context_->Usable());
  return std::nullopt;
}

// Sleeps; an answer if a signal has ended the wait.
std::optional<absl::StatusOr<size_t>> QueueState::SleepOrEnd(std::span<Event> out,
                                                             const WaitArgs& wait, Time deadline,
                                                             Sleep sleep) {
  const Slept slept = sleep == Sleep::kOnWord ? SleepOnWord(wait.min_events)
                                              : SleepUntil(wait.min_events, deadline, sleep);
  if (slept != Slept::kSignal) return std::nullopt;
  if (options_.restart_on_signal) return std::nullopt;
  if (TakeWake()) return absl::StatusOr<size_t>(Woken());
  const size_t taken = Take(out, wait.min_events);
  return taken > 0 ? absl::StatusOr<size_t>(taken) : absl::StatusOr<size_t>(Interrupted());
}

// A ppoll does not tell which handler has ended it. That only matters where handlers differ: then
// somebody else has to move the shard, since a sleep on the word moves nothing.
std::optional<absl::StatusOr<size_t>> QueueState::SleepAsOne(std::span<Event> out,
                                                             const WaitArgs& wait,
                                                             bool* hands_over) {
  const Handlers handlers = HandlersNow();
  *hands_over = handlers == Handlers::kBoth;
  if (*hands_over) return std::nullopt;
  auto ended = SleepOrEnd(out, wait, kTimeInfinite, Sleep::kOnWork);
  if (!ended.has_value() || ended->ok()) return ended;
  const bool goes_on = handlers == Handlers::kRestart && HandlersNow() == handlers &&
                       KindOf(ended->status()) == ErrorKind::kSignal;
  return goes_on ? std::nullopt : std::move(ended);
}

absl::StatusOr<size_t> QueueState::WaitLooking(std::span<Event> out, const WaitArgs& wait,
                                               Time deadline, Sleep sleep, Duration spin) {
  const provider::Shard& shard = context_->shard();
  const Time spin_end = AddSaturating(shard.Now(), spin);
  for (;;) {
    if (const size_t taken = Take(out, wait.min_events); taken > 0) return taken;
    if (TakeWake()) return Woken();
    if (closed()) return ClosedQueue();
    if (context_->stopped()) return TakeLast(out, context_->Usable());
    const Time now = shard.Now();
    if (now >= deadline) return TooLate();
    if ((options_.wait == WaitMode::kBusyPoll || now < spin_end) && StepAside(now) != Aside::kNot)
      continue;
    if (auto ended = SleepOrEnd(out, wait, deadline, sleep)) return *std::move(ended);
  }
}

size_t QueueState::TakeAfter(Aside aside, std::span<Event> out, size_t at_least) {
  const size_t taken = Take(out, at_least);
  if (taken > 0 && aside != Aside::kNot) sharing_.OnFound(aside == Aside::kForOthers);
  return taken;
}

QueueState::Aside QueueState::LookAgain(Time now, SpinBudget& patience) {
  if (!patience.Lasts(now)) return Aside::kNot;
  return context_->manual() && patience.IsFresh(now) ? Aside::kForNobody : StepAside(now);
}

// Between two looks: the peer, or the progress thread, may share this processor. kNot: sleep.
QueueState::Aside QueueState::StepAside(Time now) {
  if (crowding_.Lasts(now)) return Aside::kNot;
  const provider::Shard& shard = context_->shard();
  const Time left = shard.Now();
  std::this_thread::yield();
  const Time back = shard.Now();
  crowding_.OnBack(left, back);
  return sharing_.OnBack(back - left) ? Aside::kForOthers : Aside::kForNobody;
}

// Before the first look, where that finds nothing anyway.
QueueState::Aside QueueState::StepAsideFirst() {
  const provider::Shard& shard = context_->shard();
  if (shard.virtual_time()) return Aside::kForNobody;
  if (count_.load(std::memory_order_acquire) > 0) return Aside::kForNobody;
  if (!sharing_.StepsAsideFirst()) return Aside::kForNobody;
  return StepAside(shard.Now());
}

// With the lock.
bool QueueState::NothingToWaitFor(size_t at_least) const {
  return waiting_ >= at_least || wakes_ > 0 || closed() || context_->stopped();
}

QueueState::Slept QueueState::SleepOnWord(size_t at_least) {
  uint32_t seen = 0;
  {
    const std::lock_guard lock(mutex_);
    if (NothingToWaitFor(at_least)) return Slept::kReady;
    wishes_.push_back(at_least);
    ++word_sleepers_;
    seen = word_.load();
  }
  const bool interrupted = FutexSleep(word_, seen);
  const std::lock_guard lock(mutex_);
  std::swap(*std::ranges::find(wishes_, at_least), wishes_.back());
  wishes_.pop_back();
  --word_sleepers_;
  return interrupted ? Slept::kSignal : Slept::kReady;
}

QueueState::Slept QueueState::SleepUntil(size_t at_least, Time deadline, Sleep sleep) {
  {
    const std::lock_guard lock(mutex_);
    if (NothingToWaitFor(at_least)) return Slept::kReady;
    OpenSleepDescriptor();
    wishes_.push_back(at_least);
  }
  const bool interrupted = SleepOnDescriptors(deadline, sleep);
  const std::lock_guard lock(mutex_);
  std::swap(*std::ranges::find(wishes_, at_least), wishes_.back());
  wishes_.pop_back();
  // What is read may have been meant for another sleeper, who may have slept on.
  uint64_t count = 0;
  if (sleep_signalled_ && read(sleep_fd_, &count, sizeof(count)) == sizeof(count)) {
    sleep_signalled_ = false;
    WakeSleeper();
  }
  return interrupted ? Slept::kSignal : Slept::kReady;
}

// True when a signal has ended the sleep. What one thread moves may be what another waits for: each
// sleeps on the queue's descriptor too.
bool QueueState::SleepOnDescriptors(Time deadline, Sleep sleep) const {
  provider::Shard& shard = context_->shard();
  // No descriptor was left: it looks now and then.
  if (sleep_fd_ < 0) deadline = std::min(deadline, AddSaturating(shard.Now(), kLook));
  if (sleep == Sleep::kOnWork) {
    return !shard.WaitForWork(deadline, sleep_fd_) && shard.Now() < deadline;
  }
  pollfd waited{sleep_fd_, POLLIN, 0};
  const timespec timeout = ToTimespec(deadline - shard.Now());
  const int ready = ppoll(&waited, 1, deadline == kTimeInfinite ? nullptr : &timeout, nullptr);
  return ready < 0 && errno == EINTR;
}

}  // namespace esdp::sockets
