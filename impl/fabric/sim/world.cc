#include "impl/fabric/sim/world.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace esdp::fabric::sim {

World::World(const WorldOptions& options)
    : options_(options),
      now_(std::chrono::seconds(1)),
      random_(options.seed),
      history_(options.history_kept) {}

World::EventKey World::Schedule(Time time, Event event) {
  const EventKey key{std::max(time, now_), ++last_sequence_};
  events_.emplace(key, std::move(event));
  return key;
}

bool World::Step(Time deadline) {
  if (stepping_) return false;
  if (events_.empty() || events_.begin()->first.first > deadline) {
    if (deadline != kTimeInfinite) now_ = std::max(now_, deadline);
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

void World::Record(StepKind kind, uint64_t object, uint64_t detail, uint64_t content) {
  history_.Record(
      {.time = now_, .kind = kind, .object = object, .detail = detail, .content = content});
}

void World::RingDoorbells() {
  // A doorbell may make or end fabrics: the numbers are taken first and looked up again one by one.
  std::vector<uint64_t> numbers;
  for (const auto& [number, inhabitant] : inhabitants_) {
    if (inhabitant->HasSomethingToPoll()) numbers.push_back(number);
  }
  for (const uint64_t number : numbers) {
    const auto found = inhabitants_.find(number);
    if (found != inhabitants_.end() && found->second->HasSomethingToPoll()) {
      found->second->RingDoorbell();
    }
  }
}

absl::StatusOr<std::shared_ptr<World>> MakeWorld(const WorldOptions& options) {
  if (options.transit_min < Duration::zero() || options.transit_max < options.transit_min) {
    return absl::InvalidArgumentError("transit_min must be at least 0 and at most transit_max");
  }
  return std::make_shared<World>(options);
}

}  // namespace esdp::fabric::sim
