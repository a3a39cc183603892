#ifndef ESDP_IMPL_FABRIC_SIM_TESTBED_MACHINE_H_
#define ESDP_IMPL_FABRIC_SIM_TESTBED_MACHINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "impl/base/time.h"
#include "impl/fabric/sim/testbed/parameters.h"
#include "impl/fabric/sim/world.h"

namespace esdp::fabric::sim::testbed {

// What a processor is to do at a stretch: nanoseconds that it takes alone on its core and with all
// of the memory, and the bytes that memory carries for it.
struct Work {
  double nanoseconds = 0;
  double traffic = 0;
};

// What takes a processor: a thread, or an interrupt and what it runs, which comes before threads.
// One stretch of work at a time.
class Task {
 public:
  explicit Task(bool interrupt = false) : interrupt_(interrupt) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

 private:
  friend class Machine;
  const bool interrupt_;
  int processor_ = -1;  // that it has
  bool working_ = false;
  double left_ = 0;     // nanoseconds at full speed
  double traffic_ = 0;  // bytes a nanosecond, at full speed
  double speed_ = 0;
  std::function<void()> then_;
};

// The processors and the memory of a host, in virtual time. Work gets slower while others share the
// core, and copies while the memory has more to carry than it can: devices come first.
//
//   Owns:     nothing; tasks outlive their use of it.
//   Threads:  the world's lock.
//   Blocks:   never.
//   Units:    nanoseconds, bytes.
//   Errors:   –
class Machine {
 public:
  using Then = std::function<void()>;

  Machine(World& world, const Parameters& parameters);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  // `then` runs once the task has a processor: interrupts at once, in place of a thread if need be;
  // threads in the order of asking.
  void Acquire(Task& task, Then then);
  // The task keeps its processor for this work; `then` is never called from within.
  void Spend(Task& task, const Work& work, Then then);
  void Release(Task& task);

  void OnDma(uint64_t bytes);
  // Of all processors together, since the world began.
  Duration Busy();

 private:
  struct Processor {
    Task* thread = nullptr;
    Task* interrupt = nullptr;
    bool taken() const { return thread != nullptr || interrupt != nullptr; }
    Task* runs() const { return interrupt != nullptr ? interrupt : thread; }
  };

  size_t BusyOnCoreOf(size_t processor) const;
  // One whose core has nothing else to do, or any that is free; none.
  std::optional<size_t> FreeProcessor() const;
  void Give(size_t processor, Task& task);
  void StartWaiting(size_t processor);
  // Carries what has been done up to now.
  void Settle();
  // How fast each goes on, and when the first of them is done.
  void Plan();
  double DmaRate();
  void OnWorkDone();

  World& world_;
  const size_t threads_per_core_;
  const double core_gain_;
  const double memory_;  // bytes a nanosecond
  std::vector<Processor> processors_;
  std::deque<std::pair<Task*, Then>> waiting_;
  Time settled_;
  double busy_ = 0;  // nanoseconds
  double dma_ = 0;   // bytes of late, see DmaRate
  Time dma_at_;
  std::optional<World::EventKey> event_;
};

}  // namespace esdp::fabric::sim::testbed

#endif  // ESDP_IMPL_FABRIC_SIM_TESTBED_MACHINE_H_
