#include "tools/esdp_perf/side.h"

#include <algorithm>
#include <array>
#include <span>

#include "absl/time/clock.h"
#include "absl/types/span.h"

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
  if (task.buffer_bytes != 0) {
    options.receive_buffer_bytes = static_cast<uint32_t>(task.buffer_bytes);
    options.peer_receive_buffer_bytes = 0;
  }
  return options;
}

absl::StatusOr<std::unique_ptr<Side>> Side::Open(const Place& place, const Task& task,
                                                 const Role& role, std::optional<MappedFile> file) {
  std::unique_ptr<Side> side(new Side(task, std::move(file)));
  auto context = place.Open(ContextFor(task));
  if (!context.ok()) return context.status();
  auto station = Station::On(*std::move(context), QueueFor(task));
  if (!station.ok()) return station.status();
  side->station_ = *std::move(station);
  if (task.mode == Task::Mode::kLatency) {
    side->activity_ = std::make_unique<PingPong>(place, *side->station_, side->task_,
                                                 role.client ? &side->round_trips_ : nullptr);
  } else {
    const Worker::Part part{.sends = role.client ? task.send : task.receive,
                            .receives = role.client ? task.receive : task.send,
                            .quiet = role.quiet};
    const auto bytes = side->file_ ? side->file_->bytes() : std::span<std::byte>();
    side->activity_ = std::make_unique<Worker>(place, *side->station_, side->task_, part, bytes);
  }
  return side;
}

absl::Status Side::Run() {
  absl::SleepFor(absl::Milliseconds(static_cast<int64_t>(task_.pause)));
  if (absl::Status status = activity_->Begin(); !status.ok()) return status;
  std::array<esdp::Event, 128> events;
  while (!activity_->ended()) {
    const Activity::Wait wait = activity_->NextWait();
    esdp::WaitArgs until{.min_events = wait.least};
    if (wait.patience != absl::InfiniteDuration()) {
      until.deadline = station_->context().After(wait.patience);
    }
    auto count = station_->queue().Dequeue(absl::MakeSpan(events.data(), wait.most), until);
    if (!count.ok() && !absl::IsDeadlineExceeded(count.status())) return count.status();
    absl::Status status = activity_->OnEvents({events.data(), count.value_or(0)});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

Outcome Side::Seen() const {
  Outcome outcome = activity_->Seen();
  if (file_) outcome.sha256 = file_->Sha256();
  return outcome;
}

}  // namespace esdp_perf
