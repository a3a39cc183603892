#include "impl/provider/progress/progress.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "impl/provider/progress/cpu_oversubscription.h"

namespace esdp::provider {
namespace {

constexpr int kRoundsOfThread = 8;  // before others may hold the shard lock
constexpr int kRoundsOfHolder =
    16;  // for who could not hold the shard lock, and goes on with the rest

void PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu < 0 || cpu >= CPU_SETSIZE) return;
  CPU_SET(static_cast<size_t>(cpu), &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);  // a wish
}

// Says whether the flag was up. One that is down is only read: to write it costs as much as a lock.
bool Clear(std::atomic<bool>& flag) { return flag.load() && flag.exchange(false); }

Duration Until(Time at, Time now) {
  if (at == kTimeInfinite) return kDurationInfinite;
  return std::max(at - now, Duration{0});
}

}  // namespace

ProgressLoop::ProgressLoop(Engine& engine, Observer& observer, const ShardOptions& options)
    : engine_(engine),
      observer_(observer),
      threaded_(options.progress == Progress::kThread),
      virtual_(engine.fabric().limits().virtual_time),
      thread_cpu_(options.thread_cpu),
      spin_(options.spin) {}

ProgressLoop::~ProgressLoop() { Stop(); }

absl::Status ProgressLoop::Start() {
  absl::Status status = waits_.Open(engine_.fds());
  if (!status.ok() || !threaded_) return status;
  // The application's handlers are not to run on a thread of ours.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { Run(); });
    pthread_setname_np(thread_.native_handle(), "esdp-progress");
  } catch (const std::system_error& error) {
    status = absl::ResourceExhaustedError(std::string("no thread for progress: ") + error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

void ProgressLoop::Stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  leader_.Stop();
  waits_.Wake();
  thread_.join();
}

// --- with the shard lock -------------------------------------------------------------------------

void ProgressLoop::Submit(const Request& request) {
  if (lock_.TryTake()) {
    const bool transfers = request.kind == Request::Kind::kTransfer;
    // The transfer may be gone when it has been carried out. Without a thread nobody asks.
    const bool tends = threaded_ && transfers && request.transfer->tended;
    // A transfer does not mind the time of the last round: all it may set is a timer that then
    // fires a little early.
    if (!submissions_.empty()) [[unlikely]] {
      engine_.Begin();
      DrainRequests();
    } else if (!transfers) {
      engine_.Begin();
    }
    engine_.ExecuteNow(request);
    if (transfers) return Unlock(true, tends);
    Unlock(true);
    return leader_.Recall();
  }
  submissions_.Push(request);
  // Whoever held the shard lock may have looked for the last time.
  if (lock_.TryTake()) Unlock(false);
  if (request.kind != Request::Kind::kTransfer) leader_.Recall();
}

// What they make leave is posted together.
void ProgressLoop::SubmitAll(std::span<const Request> transfers) {
  if (lock_.TryTake()) {
    if (!submissions_.empty()) engine_.Begin();
    DrainRequests();
    for (const Request& transfer : transfers) engine_.Execute(transfer);
    return Unlock(true);
  }
  for (const Request& transfer : transfers) submissions_.Push(transfer);
  if (lock_.TryTake()) Unlock(false);  // as above
}

bool ProgressLoop::TrySendImmediate(ConnectionId connection, ImmediateSend& send) {
  if (!lock_.TryTake()) return false;
  if (!submissions_.empty()) engine_.Begin();
  const bool drained = DrainRequests();
  const bool sent = engine_.TrySendImmediate(connection, send);
  Unlock(sent || drained, send.tended);
  return sent;
}

// Releases the shard lock, but not before everything that was left for its holder is done: who has
// failed to take it relies on that.
void ProgressLoop::Unlock(bool worked, bool tends) {
  do {
    if (!submissions_.empty()) {
      engine_.Begin();
      worked |= DrainRequests();
    }
    if (worked) engine_.Finish();
    const bool wakes = PollOrDelegate(worked, tends);
    MindDeadlines();
    const bool tells = observer_.TakeUnlockedWish();
    lock_.Release();
    if (tells) observer_.OnUnlocked();
    if (wakes) waits_.Wake();  // not before: it would be up only to find the shard lock taken
    worked = false;
  } while ((!submissions_.empty() || poll_wanted_.load()) && lock_.TryTake());
}

bool ProgressLoop::ExecuteWaiting() {
  bool any = false;
  while (submissions_.Drain([&](const Request& request) { engine_.Execute(request); })) any = true;
  return any;
}

int ProgressLoop::RunRounds(int most) {
  for (int rounds = 0; rounds < most; ++rounds) {
    const bool moved = engine_.Round();
    const bool drained = DrainRequests();
    if (drained) engine_.Finish();
    if (!moved && !drained) return rounds;
  }
  return most;
}

// Whether the fabrics have to tell of what comes. True: one did not, so that it is to be polled
// first.
bool ProgressLoop::Expect(bool waits) {
  if (waits == waits_expected_) return false;
  waits_expected_ = waits;
  return engine_.ExpectWaits(waits);
}

// While the thread sleeps the descriptors tell it of all that comes, but not of what is here already.
bool ProgressLoop::LeavesSomething(bool tends) {
  if (!engine_.HasUnpolled()) return false;
  if (!tends) return true;
  (void)RunRounds(1);
  return engine_.HasUnpolled();
}

bool ProgressLoop::PollOrDelegate(bool worked, bool tends) {
  if (Clear(poll_wanted_)) return RunRounds(kRoundsOfHolder) == kRoundsOfHolder;
  if (!worked) return false;
  const bool sleeps = threaded_ && !leader_.taken();
  if (sleeps) {
    if (thread_awake_) return false;  // it looks again before it sleeps
    if (!LeavesSomething(tends)) return false;
  }
  if (!poll_due_.load()) poll_due_.store(true);
  return sleeps || waiters_.load() > 0 || (!threaded_ && fd_in_use_.load());
}

bool ProgressLoop::MissesDeadline(Time next) const {
  if (leader_.taken()) return waiters_.load() > 0 && next < leader_wakes_at_;
  return !thread_awake_ && next < wakes_at_;
}

// A deadline earlier than the one that is waited for must not wait for it.
void ProgressLoop::MindDeadlines() {
  // Nobody sleeps until a deadline.
  if (threaded_ ? leader_.taken() && waiters_.load() == 0 : !virtual_ && !fd_in_use_.load()) return;
  const Time next = engine_.NextDeadline();
  if (threaded_) {
    if (MissesDeadline(next)) waits_.Wake();
    return;
  }
  if (virtual_) {
    if (next != wakes_at_) engine_.fabric().WakeAt(next);
    wakes_at_ = next;
    return;
  }
  const Time now = engine_.fabric().Now();
  // An armed time that is too early costs one look for nothing, which is cheaper than arming at
  // every change.
  if (next >= wakes_at_ && wakes_at_ > now) return;
  if (next == wakes_at_) return;
  waits_.Arm(Until(next, now));
  wakes_at_ = next;
}

// --- the application -----------------------------------------------------------------------------

bool ProgressLoop::TryLead() { return threaded_ && !thread_cpu_ && leader_.TryTake(); }

// The thread looks for what is left when it comes back from standing by. If it never stood by, it
// sleeps, and does not know what has been left for it.
void ProgressLoop::EndLead(bool hands_over) {
  if (hands_over) {
    leader_.HandOver();
  } else {
    leader_.GiveBack();
  }
  if (leader_.standing_by()) return;
  lock_.Take();
  if (!thread_awake_ && (MovesBeforeWait() || poll_due_.load())) waits_.Wake();
  Unlock(false);
}

// One round: the application is to see what came of it before the next one looks in vain.
bool ProgressLoop::Poll(Time* began) {
  if (threaded_ && !leader_.taken()) {
    if (began != nullptr) *began = engine_.fabric().Now();
    return false;
  }
  lock_.Take();
  waits_.DrainWake();
  Clear(poll_wanted_);
  Clear(poll_due_);
  (void)Expect(fd_in_use_.load() || waiters_.load() > 0);
  bool drained = false;
  if (!submissions_.empty()) {
    engine_.Begin();
    drained = DrainRequests();
  }
  const bool moved = RunRounds(1) > 0;
  if (moved) {
    poll_due_.store(true);
    if (fd_in_use_.load() || waiters_.load() > 0) waits_.Wake();
  }
  if (began != nullptr) *began = engine_.now();
  Unlock(false);
  return drained || moved;
}

bool ProgressLoop::Wait(Time deadline, int also, const sigset_t* signals) {
  if (virtual_ || (threaded_ && !leader_.taken())) return true;
  waiters_.fetch_add(1);
  WaitSet::Result result = WaitSet::Result::kReady;
  if (!poll_due_.load()) {
    bool moved = false;
    const Time next = WithLock(
        [&] {
          moved = MovesBeforeWait();
          return leader_wakes_at_ = engine_.NextDeadline();
        },
        false);
    if (!moved && !poll_due_.load()) {
      result = waits_.Wait(Until(std::min(deadline, next), engine_.fabric().Now()), also, signals);
    }
  }
  waiters_.fetch_sub(1);
  return result != WaitSet::Result::kSignal;
}

int ProgressLoop::fd() {
  if (threaded_) return -1;
  if (!fd_in_use_.exchange(true)) waits_.Wake();  // for what was posted before and not polled for
  return waits_.fd();
}

void ProgressLoop::Doorbell() {
  poll_wanted_.store(true);
  if (lock_.TryTake()) Unlock(false);
}

// --- the thread ----------------------------------------------------------------------------------

void ProgressLoop::Run() {
  if (thread_cpu_) PinTo(*thread_cpu_);
  Time idle_since = engine_.fabric().Now();
  CpuOversubscription crowding;
  while (!stopping_.load()) {
    TakeForThread();
    thread_awake_ = true;
    if (leader_.taken()) {
      Unlock(false);
      leader_.StandBy();
      idle_since = engine_.fabric().Now();
      continue;
    }
    waits_.DrainWake();
    Clear(poll_wanted_);
    Clear(poll_due_);
    (void)Expect(spin_ == Duration{0});
    engine_.Begin();
    const bool moved = RunRounds(kRoundsOfThread) > 0;
    const Time now = engine_.fabric().Now();
    if (moved) idle_since = now;
    const bool looked = now - idle_since >= spin_ || crowding.Lasts(now);
    const bool tired = !moved && looked && !MovesBeforeWait();
    if (tired) {
      thread_awake_ = false;
      wakes_at_ = engine_.NextDeadline();
    }
    const Duration sleep = Until(wakes_at_, now);
    Unlock(false);
    if (tired) {
      if (stopping_.load()) break;  // its wake-up may have been drained above
      (void)waits_.Wait(sleep);
      idle_since = engine_.fabric().Now();
    } else if (!moved) {
      std::this_thread::yield();
      crowding.OnBack(now, engine_.fabric().Now());
    }
  }
}

// Whoever holds the shard lock polls before it gives it back, so there is no need to fight for it.
void ProgressLoop::TakeForThread() {
  if (lock_.TryTake()) return;
  poll_wanted_.store(true);
  std::this_thread::yield();
  lock_.Take();
}

}  // namespace esdp::provider
