#include "tests/sim/station.h"

#include <memory>
#include <utility>

#include "impl/assembly/simulated_host.h"

namespace esdp::simulation {

ArenaPool::Arena ArenaPool::Take() {
  if (free_.empty()) return std::make_unique<std::byte[]>(kBytes);
  Arena arena = std::move(free_.back());
  free_.pop_back();
  return arena;
}

Station::Station(Findings& findings, std::string name, ArenaPool& arenas)
    : completions(findings, name),
      findings_(&findings),
      name_(std::move(name)),
      arenas_(&arenas),
      arena_(arenas.Take()) {}

Station::~Station() {
  listener = {};
  for (Region& region : regions_) region = {};
  queue = {};
  context = {};
  arenas_->Give(std::move(arena_));
}

absl::Status Station::Open(const std::shared_ptr<fabric::sim::World>& world,
                           const StationPlan& plan, const SocketOptions& socket,
                           MemoryChecker& memory) {
  absl::StatusOr<Context> opened = assembly::OpenInWorld(world, plan.limits, plan.context);
  if (!opened.ok()) return opened.status();
  context = *std::move(opened);
  absl::StatusOr<EventQueue> created = context.CreateQueue({.depth = 64});
  if (!created.ok()) return created.status();
  queue = *std::move(created);
  memory.AddArena({arena_.get(), ArenaPool::kBytes});
  for (size_t i = 0; i < kExposures.size(); ++i) {
    const absl::Span<std::byte> bytes(arena_.get() + i * kRegionBytes, kRegionBytes);
    absl::StatusOr<Region> region = context.Register(bytes, {.exposure = kExposures[i]});
    if (!region.ok()) return region.status();
    regions_[i] = *std::move(region);
  }
  absl::StatusOr<Socket> made = context.CreateSocket(Family::kIpv4, SocketType::kStream, socket);
  if (!made.ok()) return made.status();
  listener = *std::move(made);
  absl::Status status = listener.Bind(Address::Any(Family::kIpv4, 0));
  if (status.ok()) status = listener.Listen(64);
  return status;
}

std::optional<Piece> Station::Take(uint64_t length, bool may_expose_region, Random& random) {
  size_t region = random.Below(8) < 5 ? 0 : random.Between(1, 2);
  if (region == 1 && !may_expose_region) region = 0;
  auto& taken = taken_[region];
  const uint64_t room = std::max<uint64_t>(length, 1);  // no bytes have a place of their own, too
  uint64_t offset = random.Below(64);
  for (const auto& [begin, size] : taken) {
    if (offset + room <= begin) break;
    offset = begin + size + random.Below(64);
  }
  if (offset + room > kRegionBytes) return std::nullopt;
  const absl::StatusOr<Slice> slice = regions_[region].slice(offset, length);
  if (!slice.ok()) return std::nullopt;
  taken[offset] = room;
  return Piece{*slice, {arena_.get() + region * kRegionBytes + offset, length}, region};
}

void Station::Give(const Piece& piece) {
  const std::byte* const base = arena_.get() + piece.region * kRegionBytes;
  taken_[piece.region].erase(static_cast<uint64_t>(piece.bytes.data() - base));
}

std::vector<Event> Station::TakeEvents() {
  if (queue.Stats().waiting == 0) return {};
  std::vector<Event> events(16);
  const absl::StatusOr<size_t> taken = queue.TryDequeue(absl::MakeSpan(events));
  events.resize(taken.ok() ? *taken : 0);
  return events;
}

size_t Station::Registrations() const {
  size_t count = bounced ? 1 : 0;
  for (const Region& region : regions_) count += region.info().chunks;
  return count;
}

void Station::Close() {
  const QueueStats queued = queue.Stats();
  if (queued.reserved != 0 || queued.waiting != 0) {
    findings_->Add(name_ + ": " + std::to_string(queued.reserved) + " slots stay reserved and " +
                   std::to_string(queued.waiting) + " events wait");
  }
  const ContextStats stats = context.Stats();
  if (stats.operations != 0) findings_->Add(name_ + ": operations are left over");
  if (stats.sockets != 0) {
    findings_->Add(name_ + ": " + std::to_string(stats.sockets) + " sockets are left over");
  }
  if (stats.bounce_bytes != 0) findings_->Add(name_ + ": the bounce pool is in use");
  for (Region& region : regions_) {
    if (region.valid() && region.info().operations != 0) {
      findings_->Add(name_ + ": a region stays in use");
    }
    const absl::Status closed = region.Close();
    if (!closed.ok()) findings_->Add(name_ + ": a region cannot be closed: " + closed.ToString());
  }
}

}  // namespace esdp::simulation
