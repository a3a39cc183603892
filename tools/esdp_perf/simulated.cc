#include "tools/esdp_perf/simulated.h"

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "tools/esdp_perf/side.h"
#include "tools/testbed/simulation.h"

namespace esdp_perf {
namespace {

using esdp::testbed::Simulation;

class SimulatedHost : public Place {
 public:
  SimulatedHost(Simulation& simulation, size_t host) : simulation_(simulation), host_(host) {}

  absl::StatusOr<esdp::Context> Open(const esdp::ContextOptions& options) const override {
    return simulation_.OpenContext(host_, options);
  }
  int64_t Nanoseconds() const override { return simulation_.Nanoseconds(); }
  double CpuSeconds() const override { return simulation_.BusySeconds(host_); }

 private:
  Simulation& simulation_;
  const size_t host_;
};

// A side as a program of its host.
class SimulatedSide : public esdp::testbed::Application {
 public:
  explicit SimulatedSide(Side& side) : side_(side) {}

  absl::StatusOr<size_t> Turn() override {
    if (!std::exchange(begun_, true)) {
      if (absl::Status status = activity().Begin(); !status.ok()) return status;
    }
    if (auto rounds = side_.station().context().Progress(); !rounds.ok()) return rounds.status();
    esdp::EventQueue& queue = side_.station().queue();
    size_t taken = 0;
    std::array<esdp::Event, 32> events;
    while (queue.Stats().waiting > 0) {
      const auto count = queue.TryDequeue(absl::MakeSpan(events));
      if (!count.ok()) return count.status();
      absl::Status status = activity().OnEvents({events.data(), *count});
      if (!status.ok()) return status;
      taken += *count;
    }
    return taken;
  }
  bool ended() const override { return begun_ && activity().ended(); }
  uint64_t copied_bytes() const override { return activity().copied_bytes(); }
  uint64_t memory_bytes() const override { return activity().memory_bytes(); }

 private:
  Activity& activity() const { return side_.activity(); }

  Side& side_;
  bool begun_ = false;
};

// One connection more between them. The client's call moves time, and with it the server.
absl::Status ConnectOnce(const Task& task, esdp::Socket& listener, Side& client, Side& server) {
  auto posted = listener.Accept(1, {.queue = server.station().queue()});
  if (!posted.ok()) return posted.status();
  auto socket = client.station().Connect(listener.local(), SocketOptionsFor(task));
  if (!socket.ok()) return socket.status();
  auto accepted = server.station().Await();
  if (!accepted.ok()) return accepted.status();
  auto taken = server.station().context().TakeAccepted(accepted->accepted);
  if (!taken.ok()) return taken.status();
  if (absl::Status status = server.activity().Add(*std::move(taken)); !status.ok()) return status;
  return client.activity().Add(*std::move(socket));
}

absl::Status ConnectAll(const Task& task, Side& client, Side& server) {
  auto listener =
      server.station().Listen(esdp::Address::Any(esdp::Family::kIpv4, 0), SocketOptionsFor(task));
  if (!listener.ok()) return listener.status();
  for (uint64_t i = 0; i < task.connections; ++i) {
    absl::Status status = ConnectOnce(task, *listener, client, server);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Result> RunSimulated(const Options& options, const Task& task) {
  auto simulation = Simulation::Open(options.testbed);
  if (!simulation.ok()) return simulation.status();
  const SimulatedHost here(**simulation, 0);
  const SimulatedHost there(**simulation, 1);
  auto client = Side::Open(here, task, {.client = true}, std::nullopt);
  if (!client.ok()) return client.status();
  auto server = Side::Open(there, task, {}, std::nullopt);
  if (!server.ok()) return server.status();
  if (absl::Status status = ConnectAll(task, **client, **server); !status.ok()) return status;

  SimulatedSide asks(**client);
  SimulatedSide answers(**server);
  const double spin = task.manual ? Simulation::kNeverSleeps : static_cast<double>(task.spin);
  if (absl::Status status = (*simulation)->Run({&asks, &answers}, spin); !status.ok())
    return status;
  return Result{task, (*client)->Seen(), (*server)->Seen(), (*client)->round_trips()};
}

}  // namespace esdp_perf
