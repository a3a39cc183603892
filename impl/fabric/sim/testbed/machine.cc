#include "impl/fabric/sim/testbed/machine.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace esdp::fabric::sim::testbed {
namespace {

constexpr double kDmaMemory = 200e3;  // nanoseconds over which the device's traffic is averaged
constexpr double kLeastShare = 0.1;   // of the memory: what devices leave to processors at least
constexpr double kDone = 0.5;         // nanoseconds that are none

double Nanoseconds(Duration duration) { return static_cast<double>(duration.count()); }

}  // namespace

Machine::Machine(World& world, const Parameters& parameters)
    : world_(world),
      threads_per_core_(static_cast<size_t>(parameters.machine_threads_per_core)),
      core_gain_(parameters.machine_core_gain),
      memory_(parameters.machine_memory_mb_s / 1000),
      processors_(static_cast<size_t>(parameters.machine_cores) * threads_per_core_),
      settled_(world.Now()),
      dma_at_(world.Now()) {}

Machine::~Machine() {
  if (event_) world_.Cancel(*event_);
}

size_t Machine::BusyOnCoreOf(size_t processor) const {
  const auto first = processors_.begin() +
                     static_cast<std::ptrdiff_t>(processor / threads_per_core_ * threads_per_core_);
  return static_cast<size_t>(std::count_if(first,
                                           first + static_cast<std::ptrdiff_t>(threads_per_core_),
                                           [](const Processor& one) { return one.taken(); }));
}

std::optional<size_t> Machine::FreeProcessor() const {
  std::optional<size_t> any;
  for (size_t i = 0; i < processors_.size(); ++i) {
    if (processors_[i].taken()) continue;
    if (BusyOnCoreOf(i) == 0) return i;
    if (!any) any = i;
  }
  return any;
}

void Machine::Give(size_t processor, Task& task) {
  task.processor_ = static_cast<int>(processor);
  (task.interrupt_ ? processors_[processor].interrupt : processors_[processor].thread) = &task;
}

void Machine::Acquire(Task& task, Then then) {
  Settle();
  std::optional<size_t> processor = FreeProcessor();
  for (size_t i = 0; task.interrupt_ && !processor && i < processors_.size(); ++i) {
    if (processors_[i].interrupt == nullptr) processor = i;
  }
  if (!processor) {
    waiting_.emplace_back(&task, std::move(then));
    return;
  }
  Give(*processor, task);
  Plan();
  world_.Schedule(world_.Now(), std::move(then));
}

void Machine::Release(Task& task) {
  Settle();
  const auto index = static_cast<size_t>(task.processor_);
  Processor& processor = processors_[index];
  (task.interrupt_ ? processor.interrupt : processor.thread) = nullptr;
  task.processor_ = -1;
  StartWaiting(index);
  Plan();
}

void Machine::StartWaiting(size_t processor) {
  if (waiting_.empty() || processors_[processor].taken()) return;
  auto [task, then] = std::move(waiting_.front());
  waiting_.pop_front();
  Give(processor, *task);
  world_.Schedule(world_.Now(), std::move(then));
}

void Machine::Spend(Task& task, const Work& work, Then then) {
  Settle();
  task.working_ = true;
  task.left_ = work.nanoseconds;
  task.traffic_ = work.nanoseconds > 0 ? work.traffic / work.nanoseconds : 0;
  task.then_ = std::move(then);
  Plan();
}

// --- time ----------------------------------------------------------------------------------------

void Machine::Settle() {
  const double elapsed = Nanoseconds(world_.Now() - settled_);
  settled_ = world_.Now();
  if (elapsed == 0) return;
  for (const Processor& processor : processors_) {
    if (!processor.taken()) continue;
    busy_ += elapsed;
    Task& task = *processor.runs();
    if (task.working_) task.left_ -= elapsed * task.speed_;
  }
}

void Machine::Plan() {
  double wanted = 0;
  for (size_t i = 0; i < processors_.size(); ++i) {
    if (!processors_[i].taken()) continue;
    Task& task = *processors_[i].runs();
    const auto busy = static_cast<double>(BusyOnCoreOf(i));
    const double others = static_cast<double>(threads_per_core_) - 1;
    const double together = others > 0 ? 1 + (core_gain_ - 1) * (busy - 1) / others : 1;
    task.speed_ = together / busy;
    if (task.working_) wanted += task.traffic_ * task.speed_;
  }
  const double left = std::max(memory_ - DmaRate(), memory_ * kLeastShare);
  double first = -1;
  for (const Processor& processor : processors_) {
    if (!processor.taken() || !processor.runs()->working_) continue;
    Task& task = *processor.runs();
    if (task.traffic_ > 0 && wanted > left) task.speed_ *= left / wanted;
    const double until = std::max(task.left_, 0.0) / task.speed_;
    if (first < 0 || until < first) first = until;
  }
  if (event_) world_.Cancel(*event_);
  event_.reset();
  if (first < 0) return;
  event_ = world_.Schedule(world_.Now() + Duration(static_cast<Duration::rep>(std::ceil(first))),
                           [this] { OnWorkDone(); });
}

void Machine::OnWorkDone() {
  event_.reset();
  Settle();
  for (const Processor& processor : processors_) {
    if (!processor.taken()) continue;
    Task& task = *processor.runs();
    if (!task.working_ || task.left_ > kDone) continue;
    task.working_ = false;
    world_.Schedule(world_.Now(), std::exchange(task.then_, nullptr));
  }
  Plan();
}

double Machine::DmaRate() {
  const double elapsed = Nanoseconds(world_.Now() - dma_at_);
  dma_at_ = world_.Now();
  if (elapsed > 0) dma_ *= std::exp(-elapsed / kDmaMemory);
  return dma_ / kDmaMemory;
}

void Machine::OnDma(uint64_t bytes) {
  (void)DmaRate();
  dma_ += static_cast<double>(bytes);
}

Duration Machine::Busy() {
  Settle();
  Plan();
  return Duration(static_cast<Duration::rep>(busy_));
}

}  // namespace esdp::fabric::sim::testbed
