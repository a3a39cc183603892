#ifndef ESDP_IMPL_SWITCH_ENGINE_ENGINE_H_
#define ESDP_IMPL_SWITCH_ENGINE_ENGINE_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "esdp/context.h"
#include "esdp/event_queue.h"
#include "impl/switch/engine/calm.h"
#include "impl/switch/engine/host.h"
#include "impl/switch/engine/status_table.h"

namespace esdp::switching {

class Relay;

// The Engine moves the bytes of relayed connections: one thread, one Context that is moved by it,
// one epoll set. It begins with the first connection, and is never destroyed, so that the process
// may exit under it; a child of fork leaves its parent's alone.
//
//   Owns:     the thread, the Context, the relays.
//   Threads:  those calls that say so may come from any; the rest are the engine's own.
//   Blocks:   Flush; Prepare, for a tenth of a second at most.
//   Units:    milliseconds.
//   Errors:   an errno.
class Engine {
 public:
  // --- any thread ---
  static Engine& Current();
  static void AbandonParents();
  static bool Exists();
  // A thread of the program is to wait, while so many connections go directly. Whether it may do the
  // work of their Context: not as long as some are made and closed, which takes several threads.
  bool IsCalm(size_t direct) { return calm_.After(relays_now_.load() == direct); }
  int Add(const RelayRequest& request, RelayMade& made);
  // Opens what the first connection of this mode needs, before TCP connects: a server that speaks
  // first does not wait long for the request. It is tried once; what fails is tried again by Add.
  void Prepare(Mode mode);
  void Abort(uint64_t id);
  int RelayInstead(uint64_t id, const ConnectionNames& names, int& fresh);
  void CloseDirect(uint64_t id, bool reset);
  void SendReadersAway(uint64_t id);
  // A call that went directly is over; where it goes no longer so the relay looks again.
  void AfterDirectCall(uint64_t id);
  void Later(unsigned milliseconds, std::function<void()> act);
  void Flush(unsigned milliseconds);

  // --- its own ---
  enum class Source : uint8_t { kWake, kQueue, kProgram, kTcp };
  // What is relayed is moved by the engine alone; what goes directly, by the program's calls, and by
  // a thread of its Context where there is none.
  struct Domain {
    Context context;
    EventQueue queue;
    size_t room = 0;  // of the queue, in events
  };
  // Of what is relayed, which has begun.
  Context& context() { return relayed_->context; }
  EventQueue& queue() { return relayed_->queue; }
  absl::StatusOr<Domain*> DomainOf(Mode mode);
  // What goes directly has begun: from any thread, nullptr before.
  Domain* direct_domain() { return direct_now_.load(std::memory_order_acquire); }
  bool Watch(int descriptor, uint32_t events, Source source, uint64_t id);
  void Unwatch(int descriptor);
  // `act` soon, on the engine's thread, unless the relay has gone by then.
  void RelayLater(uint64_t id, unsigned milliseconds, std::function<void(Relay&)> act);
  // After the present event.
  void Drop(uint64_t id) { gone_.push_back(id); }

 private:
  Engine() = default;
  int Start();
  absl::StatusOr<Domain> Open(Mode mode);
  static void MakeRoom(Domain& domain, size_t relays);
  void Run();
  void TakeAsked();
  void TakeEvents(EventQueue& queue);
  Relay* FindRelay(uint64_t id);
  void RunTimers();
  int NextTimeout();
  void DropGone();
  void CheckFlush();
  void Wake();
  void Ask(std::function<void()> act);
  void AskRelay(uint64_t id, std::function<void(Relay&)> act);

  std::mutex mutex_;
  std::condition_variable flushed_, prepared_;
  std::array<std::atomic<bool>, 2> is_prepared_{};  // by mode; or cannot be
  bool started_ = false;
  bool flushing_ = false;  // the engine's own
  bool settled_ = false;   // all that was written has left
  std::vector<std::function<void()>> asked_;
  bool woken_ = false;  // and has not looked since
  static inline thread_local bool on_own_thread_ = false;
  uint64_t next_id_ = 1;
  std::unordered_map<uint64_t, std::shared_ptr<std::atomic<bool>>> resets_;  // of its relays
  std::atomic<size_t> relays_now_{0};
  Calm calm_;

  Descriptor epoll_, wake_;
  std::optional<Domain> relayed_, direct_;
  std::atomic<Domain*> direct_now_{nullptr};
  std::unordered_map<uint64_t, std::unique_ptr<Relay>> relays_;
  std::multimap<int64_t, std::function<void()>> timers_;  // by when they are due
  std::vector<uint64_t> gone_;
};

StatusTable& Status();

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_ENGINE_H_
