#ifndef ESDP_IMPL_FABRIC_SIM_WORLD_H_
#define ESDP_IMPL_FABRIC_SIM_WORLD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "impl/base/time.h"
#include "impl/fabric/sim/address_book.h"
#include "impl/fabric/sim/faults.h"
#include "impl/fabric/sim/history.h"
#include "impl/fabric/sim/random.h"
#include "impl/fabric/sim/wire_observer.h"

namespace esdp::fabric::sim {

struct WorldOptions {
  uint64_t seed = 1;
  // How long a frame travels: drawn from [transit_min, transit_max] for each. Frames of one
  // direction of one queue pair never overtake each other.
  Duration transit_min = std::chrono::microseconds(1);
  Duration transit_max = std::chrono::microseconds(5);
  size_t history_kept = 1024;  // steps kept for people; the digest covers all
  // Whether it covers the bytes that travel, or their number alone: then much data goes faster.
  bool history_of_bytes = true;
  Faults faults = {};
};

// What there is in a fabric, or in all of a world's: nothing should be left when everybody has
// tidied up.
struct Inventory {
  size_t queue_pairs = 0;
  size_t listeners = 0;
  size_t regions = 0;
  size_t windows = 0;
  friend bool operator==(const Inventory&, const Inventory&) = default;
};

// What the world wants to know of a fabric that lives in it.
class Inhabitant {
 public:
  virtual ~Inhabitant() = default;
  virtual bool HasSomethingToPoll() const = 0;
  virtual void RingDoorbell() = 0;
  // Nothing leaves it any more and nothing reaches it. `told`: its peers hear of a reset, as when a
  // process dies; otherwise of nothing, as when its host does.
  virtual void Vanish(bool told) { (void)told; }
  virtual Inventory Count() const { return {}; }
};

// A World is virtual time and everything that is going to happen in it.
//
//   Owns:     its events, the address book, the history; never the fabrics, which keep it alive.
//   Threads:  any for Now, Step and the fabrics of the world, whose callers know nothing of each
//             other: each call has the lock, and so do the doorbells of Step. The rest only with
//             the lock, or while one thread has the world for itself.
//   Blocks:   for the lock at most; time passes only in Step and the calls made of it.
//   Units:    nanoseconds of virtual time, from one second on.
//   Errors:   –
//
// The same seed and the same calls give the same history: order comes from (time, sequence) alone.
class World {
 public:
  using Event = std::function<void()>;
  using EventKey = std::pair<Time, uint64_t>;  // when, and the sequence number of being scheduled

  explicit World(const WorldOptions& options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // The lock, for std::lock_guard. Who has it may take it again: a doorbell calls its fabric.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

  Time Now() const { return now_.load(); }
  bool idle() const { return events_.empty(); }

  // Runs `event` at `time`, but not before now. Events of one instant run in the order they were
  // scheduled in.
  EventKey Schedule(Time time, Event event);
  // Forgets an event; one that has run or was cancelled is passed over.
  void Cancel(const EventKey& key) { events_.erase(key); }

  // Runs the next event if it is not later than `deadline` and rings the doorbells. False when
  // there is none: then the time is `deadline`, unless that is kTimeInfinite. A doorbell must not
  // call Step; one that does gets false.
  bool Step(Time deadline);
  // Steps until `done`, which is asked before each step. False when the deadline came or nothing is
  // left.
  bool RunUntil(const std::function<bool()>& done, Time deadline);
  void RunUntilIdle();

  // How long a frame of `bytes` travels: the one place to ask what the link costs. DrawTrip adds
  // what goes wrong on it, on behalf of `object`.
  Duration DrawTransit(uint64_t bytes);
  Duration DrawTrip(uint64_t object, uint64_t bytes);
  // How much later than it should somebody hears of the begin or the end of a connection.
  Duration DrawLateness(uint64_t object);

  // Whether this goes wrong now, for `object`: drawn, counted and recorded.
  bool Strikes(FaultKind kind, uint32_t chance, uint64_t object);
  // The same for what was decided elsewhere.
  void NoteFault(FaultKind kind, uint64_t object);
  const Faults& faults() const { return options_.faults; }
  // From now on; what has gone wrong already stays so.
  void SetFaults(const Faults& faults) { options_.faults = faults; }
  const FaultCounts& fault_counts() const { return fault_counts_; }
  Duration DrawUpTo(Duration most);

  // Null for nobody. It must outlive the world or be taken back.
  void SetObserver(WireObserver* observer) { observer_ = observer; }
  WireObserver* observer() const { return observer_; }
  Inventory Count() const;

  // The nth fabric, in the order they were made, vanishes and is not polled any more; until Revive,
  // when whoever is left behind it can tidy up.
  void Kill(size_t nth, bool told);
  void Revive();

  Random& random() { return random_; }
  AddressBook& addresses() { return addresses_; }
  History& history() { return history_; }
  void Record(StepKind kind, uint64_t object, uint64_t detail, uint64_t content = 0);
  // What stands for a payload in the history.
  uint64_t ContentOf(ConstBytes payload) const {
    return options_.history_of_bytes ? DigestOf(payload) : payload.size();
  }

  // A number that no other object of this world has: fabrics, queue pairs, listeners.
  uint64_t NextNumber() { return ++last_number_; }
  // Doorbells ring in the order of the numbers.
  void Join(uint64_t number, Inhabitant* inhabitant) { inhabitants_[number] = inhabitant; }
  void Leave(uint64_t number) {
    inhabitants_.erase(number);
    asleep_.erase(number);
    dead_.erase(number);
  }

 private:
  void RingDoorbells();
  void RingDoorbell(uint64_t number);

  std::recursive_mutex mutex_;
  WorldOptions options_;
  std::atomic<Time> now_;  // asked for without the lock
  uint64_t last_sequence_ = 0;
  uint64_t last_number_ = 0;
  bool stepping_ = false;
  std::map<EventKey, Event> events_;
  std::map<uint64_t, Inhabitant*> inhabitants_;
  std::set<uint64_t> asleep_;  // inhabitants whose doorbells nobody hears for a while
  std::set<uint64_t> dead_;    // or for ever
  Random random_;
  AddressBook addresses_;
  History history_;
  FaultCounts fault_counts_{};
  WireObserver* observer_ = nullptr;
};

// InvalidArgument when a time is negative or the transit times are the wrong way round.
absl::StatusOr<std::shared_ptr<World>> MakeWorld(const WorldOptions& options = {});

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_WORLD_H_
