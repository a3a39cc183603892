#include "tests/bench/paper/pair.h"

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "impl/fabric/sim/sim_fabric.h"
#include "tests/sim/station.h"

namespace esdp::paper {
namespace {

namespace testbed = fabric::sim::testbed;

constexpr uint32_t kQueueDepth = 4096;
constexpr size_t kEventsAtOnce = 32;

fabric::Limits LimitsOf(const testbed::Parameters& parameters) {
  fabric::Limits limits = fabric::sim::DefaultSimLimits();
  limits.initiator_speaks_first = false;  // InfiniBand
  limits.reads_in_flight_max = static_cast<uint32_t>(parameters.device_reads_in_flight);
  limits.windows = limits.remote_invalidate = false;  // the region's own key is shown
  return limits;
}

}  // namespace

void Require(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

// --- one side ------------------------------------------------------------------------------------

void Pair::Side::HandOut() {
  std::array<Event, kEventsAtOnce> events;
  while (queue.Stats().waiting > 0) {
    const size_t count = Require(queue.TryDequeue(absl::MakeSpan(events)));
    for (size_t i = 0; i < count; ++i) {
      if (!events[i].ok()) Require(events[i].status());
      Thread& thread = *threads.at(events[i].cookie);
      thread.events.push_back(events[i]);
      thread.Wake();
    }
  }
}

Thread& Pair::Side::AddThread() { return *threads.emplace_back(std::make_unique<Thread>(*host)); }

// --- both ----------------------------------------------------------------------------------------

Pair::Pair(const testbed::Parameters& parameters, Stack stack, const ContextOptions& context,
           const SocketOptions& socket, size_t connections)
    : world_(Require(fabric::sim::MakeWorld(
          {.transit_min = Duration(0), .transit_max = Duration(0), .history_kept = 0}))) {
  Require(testbed::Check(parameters));
  for (Side& side : sides_) Open(side, parameters, context);
  Connect(socket, connections);
  for (Side& side : sides_) {
    side.host->StartCounting();
    if (stack == Stack::kKernel) side.host->ServeInKernel([&side] { side.HandOut(); });
  }
}

// Time goes on while connections end: nobody is to call them then.
Pair::~Pair() {
  for (Side& side : sides_) {
    for (const auto& thread : side.threads) thread->Stop();
    side.host->StopCounting();
  }
  for (Side& side : sides_) side.sockets.clear();
}

void Pair::Open(Side& side, const testbed::Parameters& parameters, const ContextOptions& options) {
  side.host = std::make_shared<testbed::Host>(world_, parameters);
  side.context = Require(simulation::OpenContext(world_, LimitsOf(parameters), options, side.host));
  side.queue = Require(side.context.CreateQueue({.depth = kQueueDepth}));
}

void Pair::Await(const std::function<bool()>& done) {
  if (!world_->RunUntil(done, world_->Now() + std::chrono::seconds(1))) {
    throw std::runtime_error("the simulated hosts do not connect");
  }
}

void Pair::Connect(const SocketOptions& options, size_t connections) {
  Socket listener =
      Require(server().context.CreateSocket(Family::kIpv4, SocketType::kStream, options));
  Require(listener.Bind(Address::Any(Family::kIpv4, 0)));
  Require(listener.Listen(static_cast<int>(connections)));
  for (size_t i = 0; i < connections; ++i) {
    Require(listener.Accept(1, {.queue = server().queue}).status());
    Socket socket =
        Require(client().context.CreateSocket(Family::kIpv4, SocketType::kStream, options));
    Require(socket.Connect(listener.local(), {.queue = client().queue}).status());
    client().sockets.push_back(std::move(socket));
    Await([this] {
      return client().queue.Stats().waiting > 0 && server().queue.Stats().waiting > 0;
    });
    Event event;
    Require(server().queue.TryDequeue(absl::MakeSpan(&event, 1)).status());
    Require(event.status());
    server().sockets.push_back(Require(server().context.TakeAccepted(event.accepted)));
    Require(client().queue.TryDequeue(absl::MakeSpan(&event, 1)).status());
    Require(event.status());
  }
}

Duration Pair::Busy() {
  return (client().host->machine().Busy() + server().host->machine().Busy()) / 2;
}

void Pair::RunUntil(Time time) {
  while (world_->Step(time)) {
  }
}

}  // namespace esdp::paper
