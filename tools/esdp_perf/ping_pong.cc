#include "tools/esdp_perf/ping_pong.h"

#include <array>
#include <chrono>

#include "absl/types/span.h"
#include "tools/esdp_perf/pattern.h"
#include "tools/esdp_perf/worker.h"

namespace esdp_perf {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsFrom(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

absl::Status PingPong::Add(esdp::Socket socket) {
  socket_ = std::move(socket);
  auto pieces = AllocatePieces(station_.context(), task_, task_.size, 3);
  if (!pieces.ok()) return pieces.status();
  pieces_ = *std::move(pieces);
  return Post(false, 1);
}

absl::Status PingPong::Post(bool send, size_t piece) {
  const esdp::OpArgs args{station_.queue()};
  return send ? socket_.Send(pieces_.slices[piece], esdp::SendFlags::kNone, args).status()
              : socket_.Recv(pieces_.slices[piece], esdp::RecvFlags::kWaitAll, args).status();
}

absl::Status PingPong::Await(size_t count) {
  std::array<esdp::Event, 2> events;
  const auto room = absl::MakeSpan(events.data(), count);
  const auto taken = station_.queue().Dequeue(room, {.min_events = count});
  if (!taken.ok()) return taken.status();
  for (const esdp::Event& event : room) {
    if (!event.ok()) return event.status();
    if (event.type != esdp::EventType::kRecv) continue;
    received_ = event;
    seen_.bytes_received += event.bytes;
    seen_.bytes_zero_copy += event.bytes_zero_copy;
  }
  return absl::OkStatus();
}

absl::Status PingPong::CheckContent(uint64_t round, size_t piece) const {
  if (received_.bytes != task_.size) return absl::UnavailableError("the answering side has ended");
  if (!task_.verify) return absl::OkStatus();
  const auto answer = pieces_.memory.subspan(piece * task_.size, task_.size);
  const auto wrong = FindMismatch(task_.seed, 0, round * task_.size, answer);
  return wrong ? absl::DataLossError("wrong content at byte " + std::to_string(*wrong))
               : absl::OkStatus();
}

// The next receive is posted before the answer can come.
absl::Status PingPong::Ask(Histogram& round_trips) {
  const double cpu_before = CpuSeconds();
  const Clock::time_point start = Clock::now();
  const uint64_t rounds = task_.bytes / task_.size;
  for (uint64_t round = 0; rounds != 0 ? round < rounds : SecondsFrom(start) < task_.seconds;
       ++round) {
    if (task_.verify) {
      FillPattern(task_.seed, 0, round * task_.size, pieces_.memory.first(task_.size));
    }
    const Clock::time_point before = Clock::now();
    if (absl::Status status = Post(true, 0); !status.ok()) return status;
    if (absl::Status status = Await(2); !status.ok()) return status;
    round_trips.Record(static_cast<uint64_t>((Clock::now() - before).count()));

    const size_t piece = 1 + round % 2;
    if (absl::Status status = CheckContent(round, piece); !status.ok()) return status;
    if (absl::Status status = Post(false, 3 - piece); !status.ok()) return status;
    ++seen_.sends;
  }
  seen_.send_seconds = seen_.receive_seconds = SecondsFrom(start);
  seen_.cpu_seconds = CpuSeconds() - cpu_before;
  seen_.bytes_sent = seen_.sends * task_.size;

  // The receive that is still posted ends with the peer's end of stream.
  auto posted = socket_.Shutdown({station_.queue()});
  return posted.ok() ? Await(2) : posted.status();
}

// The answer goes first; the receive for the next question is posted while it is on its way.
absl::Status PingPong::Answer() {
  const double cpu_before = CpuSeconds();
  const Clock::time_point start = Clock::now();
  if (absl::Status status = Await(1); !status.ok()) return status;
  for (size_t piece = 1; received_.bytes == task_.size; piece = 3 - piece) {
    if (absl::Status status = Post(true, piece); !status.ok()) return status;
    if (absl::Status status = Post(false, 3 - piece); !status.ok()) return status;
    if (absl::Status status = Await(2); !status.ok()) return status;
    ++seen_.sends;
  }
  seen_.send_seconds = seen_.receive_seconds = SecondsFrom(start);
  seen_.cpu_seconds = CpuSeconds() - cpu_before;
  seen_.bytes_sent = seen_.sends * task_.size;
  auto posted = socket_.Shutdown({station_.queue()});
  return posted.ok() ? Await(1) : posted.status();
}

Outcome PingPong::Seen() const {
  Outcome outcome = seen_;
  outcome.copied_bytes = socket_.Stats().payload_copy_bytes;
  outcome.transport = esdp::ToString(socket_.transport());
  return outcome;
}

}  // namespace esdp_perf
