#include "tests/bench/paper/pair.h"

#include <array>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "impl/assembly/simulated_host.h"

namespace esdp::paper {
namespace {

namespace testbed = fabric::sim::testbed;

constexpr uint32_t kQueueDepth = 4096;
constexpr size_t kEventsAtOnce = 32;

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
          {.transit_min = {}, .transit_max = {}, .history_kept = 0, .history_of_bytes = false}))) {
  Require(testbed::Check(parameters));
  for (size_t host = 0; host < std::size(sides_); ++host) {
    hardware_[host] = std::make_shared<testbed::Hardware>(world_, parameters);
    for (size_t i = 0; i < connections; ++i) {
      Open(sides_[host].emplace_back(), hardware_[host], context);
    }
  }
  for (size_t i = 0; i < connections; ++i) Connect(client(i), server(i), socket);
  for (std::deque<Side>& sides : sides_) {
    for (Side& side : sides) {
      side.host->StartCounting();
      if (stack == Stack::kKernel) side.host->ServeInKernel([&side] { side.HandOut(); });
    }
  }
}

// Time goes on while connections end: nobody is to call them then.
Pair::~Pair() {
  for (std::deque<Side>& sides : sides_) {
    for (Side& side : sides) {
      for (const auto& thread : side.threads) thread->Stop();
      side.host->StopCounting();
    }
  }
  for (std::deque<Side>& sides : sides_) {
    for (Side& side : sides) side.socket = Socket();
  }
}

void Pair::Open(Side& side, const std::shared_ptr<testbed::Hardware>& hardware,
                const ContextOptions& options) {
  side.host = std::make_shared<testbed::Host>(hardware);
  side.context = Require(assembly::OpenOnHost(side.host, options));
  side.queue = Require(side.context.CreateQueue({.depth = kQueueDepth}));
}

void Pair::Await(const std::function<bool()>& done) {
  if (!world_->RunUntil(done, world_->Now() + std::chrono::seconds(1))) {
    throw std::runtime_error("the simulated hosts do not connect");
  }
}

void Pair::Connect(Side& client, Side& server, const SocketOptions& options) {
  Socket listener =
      Require(server.context.CreateSocket(Family::kIpv4, SocketType::kStream, options));
  Require(listener.Bind(Address::Any(Family::kIpv4, 0)));
  Require(listener.Listen(1));
  Require(listener.Accept(1, {.queue = server.queue}).status());
  client.socket = Require(client.context.CreateSocket(Family::kIpv4, SocketType::kStream, options));
  Require(client.socket.Connect(listener.local(), {.queue = client.queue}).status());
  Await([&] { return client.queue.Stats().waiting > 0 && server.queue.Stats().waiting > 0; });
  Event event;
  Require(server.queue.TryDequeue(absl::MakeSpan(&event, 1)).status());
  Require(event.status());
  server.socket = Require(server.context.TakeAccepted(event.accepted));
  Require(client.queue.TryDequeue(absl::MakeSpan(&event, 1)).status());
  Require(event.status());
}

Duration Pair::Busy() {
  return (hardware_[0]->machine().Busy() + hardware_[1]->machine().Busy()) / 2;
}

Duration Pair::Charged() {
  Duration charged{};
  for (const std::deque<Side>& sides : sides_) {
    for (const Side& side : sides) charged += side.host->charged_ever();
  }
  return charged / 2;
}

void Pair::RunUntil(Time time) {
  while (world_->Step(time)) {
  }
}

}  // namespace esdp::paper
