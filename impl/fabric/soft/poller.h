#ifndef ESDP_IMPL_FABRIC_SOFT_POLLER_H_
#define ESDP_IMPL_FABRIC_SOFT_POLLER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "impl/base/handle_table.h"
#include "impl/base/time.h"
#include "impl/base/timer_queue.h"
#include "impl/fabric/ready_descriptor.h"

namespace esdp::fabric::soft {

// What a watched descriptor belongs to.
enum class Watched : uint8_t { kQueuePair, kListener, kRequest, kInitiator, kLingering, kProcess };

// Names one thing that is watched. Stale ones are ignored.
enum class WatchId : uint64_t { kNone = 0 };

struct Readiness {
  Watched kind = Watched::kQueuePair;
  uint64_t owner = 0;
  bool readable = false;  // or at its end, or failed
  bool writable = false;
};

// Tells which sockets are ready and which deadlines have passed.
//
//   Owns:     an epoll descriptor; not the sockets, which must be forgotten before they are closed.
//   Threads:  one caller at a time; any thread may wait on descriptor().
//   Blocks:   never.
//   Units:    –
//   Errors:   ResourceExhausted when the system is out of descriptors or memory.
class Poller {
 public:
  Poller() = default;
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  absl::Status Open();
  int descriptor() const { return epoll_; }

  // Level-triggered. kNone when the system refuses.
  WatchId Watch(int descriptor, Watched kind, uint64_t owner, bool readable, bool writable);
  void Change(WatchId watch, bool readable, bool writable);
  // Hands the watch to another owner, as a connection grows up.
  void Rename(WatchId watch, Watched kind, uint64_t owner);
  // Takes its deadline with it.
  void Forget(WatchId watch);
  size_t Ready(absl::Span<Readiness> ready);

  // One deadline for each watch. kTimeInfinite cancels it.
  void SetDeadline(WatchId watch, Time deadline);
  bool HasDeadlines() const { return !deadlines_.empty(); }
  Time NextDeadline() const { return deadlines_.NextDeadline(); }
  // False when none has passed.
  bool NextDue(Time now, Readiness& due);

  // Makes descriptor() readable, or not, whatever the sockets do.
  void Signal(bool on) { event_.Set(on); }

 private:
  struct Entry {
    int descriptor = -1;
    Watched kind = Watched::kQueuePair;
    uint64_t owner = 0;
    bool readable = false;
    bool writable = false;
  };

  Entry* Find(WatchId watch) { return watches_.Find(static_cast<uint64_t>(watch)); }

  int epoll_ = -1;
  ReadyDescriptor event_;
  HandleTable<Entry> watches_;
  TimerQueue deadlines_;
};

}  // namespace esdp::fabric::soft

#endif  // ESDP_IMPL_FABRIC_SOFT_POLLER_H_
