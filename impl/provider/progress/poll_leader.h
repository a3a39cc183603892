#ifndef ESDP_IMPL_PROVIDER_PROGRESS_POLL_LEADER_H_
#define ESDP_IMPL_PROVIDER_PROGRESS_POLL_LEADER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace esdp::provider {

// How long the shard's thread stays away before it looks again whether somebody leads. Each look
// takes the processor from the one who does: of 64 KiB messages a look every 200 microseconds costs
// a fifth. So who leads again and again is looked at less and less often, and one that has left is
// looked at soon once more: whoever has just taken an event is often back at once.
class PollBackoff {
 public:
  static constexpr std::chrono::microseconds kShort{200}, kLong{3200};

  explicit PollBackoff(std::chrono::microseconds shortest = kShort,
                       std::chrono::microseconds longest = kLong)
      : shortest_(shortest), longest_(longest) {}

  std::chrono::microseconds length() const { return length_; }
  // A look: has the lead changed hands since the last one, and does somebody have it now? False if
  // the thread is to come back.
  bool Renew(bool changed, bool taken);

 private:
  std::chrono::microseconds shortest_, longest_;
  std::chrono::microseconds steady_ = shortest_, length_ = shortest_;
};

// Who looks for the shard's work: its own thread, or in its place a thread of the application that
// has nothing to do but to wait for an event. That spares the wake-up of the one by the other.
//
// The shard's thread stands by as long as the lead is taken, and for a backoff or two after that.
// So progress pauses for kLong and kShort at most, and for twice kShort if nobody led for long.
//
//   Owns:     nothing.
//   Threads:  any; GiveBack and HandOver whoever has the lead, StandBy the shard's thread.
//   Blocks:   only StandBy.
//   Units:    –
//   Errors:   TryTake answers false when another thread has the lead.
class PollLeader {
 public:
  // `backoff` is what each StandBy begins with.
  explicit PollLeader(PollBackoff backoff = PollBackoff()) : backoff_(backoff) {}
  bool TryTake();
  void GiveBack();
  // The same for one that is not soon back: the shard's thread takes over at once.
  void HandOver();
  // Nobody leads, and who did may not soon be back: the shard's thread, if it stands by, takes over.
  void Recall() {
    if (standing_by_.load() && !taken_.load()) HandOver();
  }
  bool taken() const { return taken_.load(); }
  // The shard's thread is in StandBy, so that it will look when it comes back.
  bool standing_by() const { return standing_by_.load(); }

  // Returns when nobody has had the lead for a while, or after Stop.
  void StandBy();
  void Stop();

 private:
  // A leader that is away for so long in a wait is not watched any more: it says when it leaves.
  static constexpr int kQuietBackoffs = 16;

  const PollBackoff backoff_;
  std::atomic<bool> taken_{false};
  std::atomic<uint32_t> changes_{0};
  std::atomic<bool> standing_by_{false};
  std::atomic<bool> wants_notice_{false};  // of GiveBack

  std::mutex mutex_;
  std::condition_variable notice_;
  bool handed_over_ = false;
  bool stopped_ = false;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_PROGRESS_POLL_LEADER_H_
