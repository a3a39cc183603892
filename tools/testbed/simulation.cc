#include "tools/testbed/simulation.h"

#include <chrono>
#include <utility>

#include "impl/assembly/simulated_host.h"
#include "impl/fabric/sim/testbed/host.h"
#include "impl/fabric/sim/world.h"
#include "tools/testbed/caches.h"
#include "tools/testbed/parameters.h"
#include "tools/testbed/thread.h"

namespace esdp::testbed {
namespace {

using fabric::sim::testbed::Host;

constexpr size_t kPollsAtOnce = 32;  // as the library's own rounds
constexpr double kLookMicroseconds = 0.5;
constexpr auto kLongest = std::chrono::hours(24);  // of virtual time

// One host and the thread of its application.
struct Seat {
  std::shared_ptr<Host> host;
  std::unique_ptr<Thread> thread;
  Application* application = nullptr;
  absl::Status status;
  uint64_t copied = 0;

  bool over() const { return !status.ok() || application->ended(); }

  size_t Turn() {
    const absl::StatusOr<size_t> events = application->Turn();
    if (!events.ok()) status = events.status();
    return events.ok() ? *events : 0;
  }
  // What the library has copied since this was last asked.
  fabric::sim::testbed::Work Copies() {
    const uint64_t bytes = application->copied_bytes() - copied;
    copied += bytes;
    const double missing = MissingInCaches(host->parameters(), application->memory_bytes(), 1);
    return host->Copy(bytes, kUncached, missing);
  }

  Program Play(double spin_us) {
    double idle = 0;
    while (!over()) {
      size_t events = 0;
      co_await thread->Run([this, &events] { events = Turn(); }, kPollsAtOnce);
      co_await thread->Spend(Copies());
      if (events > 0 || host->TakeMoreToPoll()) {
        idle = 0;
      } else if (idle < spin_us) {
        co_await thread->Compute(kLookMicroseconds);
        idle += kLookMicroseconds;
      } else {
        // What came between the last look and the request for an interrupt would wake nobody.
        host->Arm();
        co_await thread->Compute(host->parameters().kernel_system_call_us);
        if (!host->TakeMoreToPoll()) co_await thread->Block();
        idle = 0;
      }
    }
  }
};

}  // namespace

struct Simulation::State {
  std::shared_ptr<fabric::sim::World> world;
  std::array<Seat, kHosts> seats;

  bool over() const { return seats[0].over() && seats[1].over(); }
  bool failed() const { return !seats[0].status.ok() || !seats[1].status.ok(); }
};

Simulation::Simulation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Simulation::~Simulation() = default;

absl::StatusOr<std::unique_ptr<Simulation>> Simulation::Open(const std::string& testbed) {
  const auto parameters = ReadParameters(testbed);
  if (!parameters.ok()) return parameters.status();
  // The test-bed says how long anything is on its way.
  auto world = fabric::sim::MakeWorld(
      {.transit_min = {}, .transit_max = {}, .history_kept = 0, .history_of_bytes = false});
  if (!world.ok()) return world.status();
  auto state = std::make_unique<State>();
  state->world = *std::move(world);
  for (Seat& seat : state->seats) {
    seat.host = std::make_shared<Host>(state->world, *parameters);
    seat.thread = std::make_unique<Thread>(*seat.host);
  }
  return std::unique_ptr<Simulation>(new Simulation(std::move(state)));
}

absl::StatusOr<Context> Simulation::OpenContext(size_t host, const ContextOptions& options) {
  return assembly::OpenOnHost(state_->seats.at(host).host, options);
}

absl::Status Simulation::Run(const std::array<Application*, kHosts>& applications, double spin_us) {
  for (size_t i = 0; i < kHosts; ++i) {
    Seat& seat = state_->seats[i];
    seat.application = applications[i];
    seat.host->StartCounting();
    seat.host->ServeInProcess([&seat] { seat.thread->Wake(); });
    seat.thread->Start(seat.Play(spin_us));
  }
  const auto deadline = state_->world->Now() + kLongest;
  while (!state_->over() && !state_->failed() && state_->world->Step(deadline)) {
  }
  for (Seat& seat : state_->seats) {
    seat.thread->Stop();
    seat.host->StopCounting();
  }
  for (const Seat& seat : state_->seats) {
    if (!seat.status.ok()) return seat.status;
  }
  if (state_->over()) return absl::OkStatus();
  return absl::AbortedError(
      "the simulated programs wait for each other, and nothing is on its way");
}

int64_t Simulation::Nanoseconds() const { return state_->world->Now().time_since_epoch().count(); }

double Simulation::BusySeconds(size_t host) const {
  const auto busy = state_->seats.at(host).host->machine().Busy();
  return std::chrono::duration<double>(busy).count();
}

}  // namespace esdp::testbed
