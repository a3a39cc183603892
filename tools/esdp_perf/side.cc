#include "tools/esdp_perf/side.h"

#include <algorithm>
#include <span>

namespace esdp_perf {
namespace {

esdp::ContextOptions ContextFor(const Task& task) {
  return {.fabric = task.fabric,
          .progress = task.manual ? esdp::Progress::kManual : esdp::Progress::kThread,
          .progress_spin = absl::Microseconds(static_cast<int64_t>(task.spin)),
          .zcopy_send_min = task.threshold,
          .zcopy_recv_min = task.threshold,
          .congestion_control = task.congestion,
          .checksum = task.checksum,
          .lend_pages = task.lend_pages};
}

// A slot for everything that can be in flight: both directions, and the shutdown.
esdp::QueueOptions QueueFor(const Task& task) {
  const uint64_t slots = task.connections * (task.depth + std::max(task.depth, task.receives) + 2);
  return {.depth = static_cast<uint32_t>(slots < (1 << 20) ? slots : 1 << 20),
          .wait = task.manual ? esdp::WaitMode::kBusyPoll : esdp::WaitMode::kAdaptive};
}

}  // namespace

esdp::SocketOptions SocketOptionsFor(const Task& task) {
  esdp::SocketOptions options;
  options.receive_buffers = static_cast<uint16_t>(task.buffers);
  options.receive_buffer_bytes = static_cast<uint32_t>(task.buffer_bytes);
  return options;
}

absl::StatusOr<std::unique_ptr<Side>> Side::Open(const Task& task, bool client,
                                                 std::optional<MappedFile> file) {
  std::unique_ptr<Side> side(new Side(task, client, std::move(file)));
  auto station = Station::Open(ContextFor(task), QueueFor(task));
  if (!station.ok()) return station.status();
  side->station_ = *std::move(station);
  if (task.mode == Task::Mode::kLatency) {
    side->ping_pong_.emplace(*side->station_, side->task_);
  } else {
    const bool sends = client ? task.send : task.receive;
    const bool receives = client ? task.receive : task.send;
    const auto bytes = side->file_ ? side->file_->bytes() : std::span<std::byte>();
    side->worker_.emplace(*side->station_, side->task_, sends, receives, bytes);
  }
  return side;
}

absl::Status Side::Add(esdp::Socket socket) {
  return ping_pong_ ? ping_pong_->Add(std::move(socket)) : worker_->Add(std::move(socket));
}

absl::Status Side::Run(bool quiet) {
  if (worker_) return worker_->Run(quiet);
  return client_ ? ping_pong_->Ask(round_trips_) : ping_pong_->Answer();
}

Outcome Side::Seen() const {
  Outcome outcome = ping_pong_ ? ping_pong_->Seen() : worker_->Seen();
  if (file_) outcome.sha256 = file_->Sha256();
  return outcome;
}

}  // namespace esdp_perf
