#ifndef ESDP_IMPL_PROVIDER_PROGRESS_PROGRESS_H_
#define ESDP_IMPL_PROVIDER_PROGRESS_PROGRESS_H_

#include <atomic>
#include <csignal>
#include <optional>
#include <span>
#include <thread>

#include "absl/status/status.h"
#include "impl/provider/engine.h"
#include "impl/provider/observer.h"
#include "impl/provider/progress/poll_leader.h"
#include "impl/provider/progress/wait_set.h"
#include "impl/provider/shard_lock.h"
#include "impl/provider/submissions.h"

namespace esdp::provider {

// Who turns the loop of an engine, and when: each caller while it holds the shard lock, and between
// the calls the shard's own thread or who leads in its place, the application (manual progress) or
// the virtual world.
//
// What work completes at once is not told by the fabric's descriptor, so whoever has posted work
// sees to it that somebody polls: the thread or the leader, who is woken if it sleeps, or the
// application, which is bound to call Poll. Never the poster: each of its sends would be over
// before the next, and nothing would gather.
//
//   Owns:     the shard lock, the waiting requests, the thread.
//   Threads:  any.
//   Blocks:   Wait; the others for the shard lock at most.
//   Units:    instants on the fabric's clock.
//   Errors:   Start fails when there are no descriptors or no threads left.
class ProgressLoop {
 public:
  ProgressLoop(Engine& engine, Observer& observer, const ShardOptions& options);
  ~ProgressLoop();
  ProgressLoop(const ProgressLoop&) = delete;
  ProgressLoop& operator=(const ProgressLoop&) = delete;

  absl::Status Start();
  // No thread of ours runs any more; what moves, moves in the calls.
  void Stop();

  void Submit(const Request& request);
  void SubmitAll(std::span<const Request> transfers);
  bool TrySendImmediate(ConnectionId connection, ImmediateSend& send);
  // Runs `call` with the shard lock. `works`: it may post something.
  template <typename Call>
  auto WithLock(Call call, bool works = true) {
    lock_.Take();
    engine_.Begin();
    works |= DrainRequests();
    const Leaving leaving{*this, works};  // also where there is no memory for the call
    return call();
  }

  bool TryLead();
  void EndLead(bool hands_over);
  bool led_lately() const { return leader_.standing_by(); }
  // `began`: if given, when it began.
  bool Poll(Time* began = nullptr);
  bool Wait(Time deadline, int also, const sigset_t* signals);
  void Wake() { waits_.Wake(); }
  // Waits for the fabric, with the shard lock: for the end of the shard only.
  void Look(Duration most) {
    (void)Expect(true);
    (void)waits_.Wait(most);
  }
  int fd();
  // The virtual world has something for this shard; never waits.
  void Doorbell();

 private:
  // `tends`: this thread looks itself for what its work has completed at once.
  void Unlock(bool worked, bool tends = false);
  struct Leaving {
    ProgressLoop& loop;
    bool worked;
    // NOLINTNEXTLINE(bugprone-exception-escape): nobody is left to be told that memory is short.
    ~Leaving() {
      loop.Unlock(worked, worked);
      if (worked) loop.leader_.Recall();
    }
  };
  bool DrainRequests() { return !submissions_.empty() && ExecuteWaiting(); }
  bool ExecuteWaiting();
  // How many rounds moved something: `most` means that there may be more.
  int RunRounds(int most);
  // True: who is to look sleeps, and has to be woken.
  bool PollOrDelegate(bool worked, bool tends);
  [[gnu::noinline]] bool LeavesSomething(bool tends);
  void MindDeadlines();
  bool Expect(bool waits);
  bool MovesBeforeWait() { return Expect(true) && RunRounds(1) > 0; }
  bool MissesDeadline(Time next) const;

  void Run();
  void TakeForThread();

  Engine& engine_;
  Observer& observer_;
  const bool threaded_;
  const bool virtual_;
  const std::optional<int> thread_cpu_;  // who has pinned the thread wants it to do the work
  const Duration spin_;
  ShardLock lock_;
  PollLeader leader_;
  Submissions<Request> submissions_;
  WaitSet waits_;

  // Left for the holder of the shard lock by who could not have it.
  std::atomic<bool> poll_wanted_{false};
  // Manual progress: something was posted and not polled for.
  std::atomic<bool> poll_due_{false};
  std::atomic<int> waiters_{0};
  std::atomic<bool> fd_in_use_{false};
  std::atomic<bool> stopping_{false};

  // Under the shard lock.
  bool waits_expected_ = true;     // somebody may wait for the fabric
  bool thread_awake_ = false;      // or standing by: it looks again soon
  Time wakes_at_ = kTimeInfinite;  // when the thread or the armed timer looks again by itself
  Time leader_wakes_at_ = kTimeInfinite;
  std::thread thread_;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_PROGRESS_PROGRESS_H_
