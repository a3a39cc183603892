#include "impl/fabric/sim/world.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace esdp::fabric::sim {

World::World(const WorldOptions& options)
    : options_(options),
      now_(Time(std::chrono::seconds(1))),
      random_(options.seed),
      history_(options.history_kept) {}

World::EventKey World::Schedule(Time time, Event event) {
  const EventKey key{std::max(time, Now()), ++last_sequence_};
  events_.emplace(key, std::move(event));
  return key;
}

bool World::Step(Time deadline) {
  const std::lock_guard held(*this);
  if (stepping_) return false;
  if (events_.empty() || events_.begin()->first.first > deadline) {
    if (deadline != kTimeInfinite) now_ = std::max(Now(), deadline);
    return false;
  }
  stepping_ = true;
  auto next = events_.extract(events_.begin());
  now_ = next.key().first;
  next.mapped()();
  RingDoorbells();
  stepping_ = false;
  return true;
}

bool World::RunUntil(const std::function<bool()>& done, Time deadline) {
  while (!done()) {
    if (!Step(deadline)) return done();
  }
  return true;
}

void World::RunUntilIdle() {
  while (Step(kTimeInfinite)) {
  }
}

Duration World::DrawTransit(uint64_t bytes) {
  static_cast<void>(
      bytes);  // what a cost model charges for; the plain link takes any length in the same time
  return Duration(
      static_cast<int64_t>(random_.Between(static_cast<uint64_t>(options_.transit_min.count()),
                                           static_cast<uint64_t>(options_.transit_max.count()))));
}

Duration World::DrawUpTo(Duration most) {
  return Duration(static_cast<int64_t>(random_.Between(0, static_cast<uint64_t>(most.count()))));
}

// --- what goes wrong -----------------------------------------------------------------------------

bool World::Strikes(FaultKind kind, uint32_t chance, uint64_t object) {
  if (chance == 0 || random_.Between(1, Faults::kAlways) > chance) return false;
  NoteFault(kind, object);
  return true;
}

void World::NoteFault(FaultKind kind, uint64_t object) {
  ++fault_counts_[static_cast<size_t>(kind)];
  Record(StepKind::kFault, object, static_cast<uint64_t>(kind));
}

Duration World::DrawTrip(uint64_t object, uint64_t bytes) {
  Duration trip = DrawTransit(bytes);
  if (Strikes(FaultKind::kDelay, faults().delay, object)) trip += DrawUpTo(faults().delay_max);
  return trip;
}

Duration World::DrawLateness(uint64_t object) {
  if (!Strikes(FaultKind::kLateNews, faults().late_news, object)) return Duration(0);
  return DrawUpTo(faults().news_delay_max);
}

void World::Kill(size_t nth, bool told) {
  if (nth >= inhabitants_.size()) return;
  const auto& [number, inhabitant] = *std::next(inhabitants_.begin(), static_cast<ptrdiff_t>(nth));
  NoteFault(FaultKind::kDeath, number);
  dead_.insert(number);
  inhabitant->Vanish(told);
}

void World::Revive() {
  dead_.clear();
  Schedule(Now(), [] {});  // doorbells ring behind an event
}

// --- fabrics -------------------------------------------------------------------------------------

Inventory World::Count() const {
  Inventory all;
  for (const auto& [number, inhabitant] : inhabitants_) {
    const Inventory one = inhabitant->Count();
    all.queue_pairs += one.queue_pairs;
    all.listeners += one.listeners;
    all.regions += one.regions;
    all.windows += one.windows;
  }
  return all;
}

void World::Record(StepKind kind, uint64_t object, uint64_t detail, uint64_t content) {
  history_.Record(
      {.time = Now(), .kind = kind, .object = object, .detail = detail, .content = content});
}

void World::RingDoorbells() {
  // A doorbell may make or end fabrics: the numbers are taken first and looked up again one by one.
  std::vector<uint64_t> numbers;
  for (const auto& [number, inhabitant] : inhabitants_) {
    if (inhabitant->HasSomethingToPoll()) numbers.push_back(number);
  }
  for (const uint64_t number : numbers) RingDoorbell(number);
}

void World::RingDoorbell(uint64_t number) {
  const auto found = inhabitants_.find(number);
  if (found == inhabitants_.end() || !found->second->HasSomethingToPoll()) return;
  if (asleep_.contains(number) || dead_.contains(number)) return;
  if (!Strikes(FaultKind::kSleep, faults().sleep, number)) return found->second->RingDoorbell();
  asleep_.insert(number);
  Schedule(Now() + DrawUpTo(faults().sleep_max), [this, number] { asleep_.erase(number); });
}

absl::StatusOr<std::shared_ptr<World>> MakeWorld(const WorldOptions& options) {
  if (options.transit_min < Duration::zero() || options.transit_max < options.transit_min) {
    return absl::InvalidArgumentError("transit_min must be at least 0 and at most transit_max");
  }
  const Faults& faults = options.faults;
  for (const Duration most : {faults.delay_max, faults.news_delay_max, faults.not_ready_max,
                              faults.sleep_max, faults.break_within}) {
    if (most < Duration::zero()) return absl::InvalidArgumentError("a fault's time is negative");
  }
  return std::make_shared<World>(options);
}

}  // namespace esdp::fabric::sim
