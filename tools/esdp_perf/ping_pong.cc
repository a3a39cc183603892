#include "tools/esdp_perf/ping_pong.h"

#include "tools/esdp_perf/pattern.h"
#include "tools/esdp_perf/worker.h"

namespace esdp_perf {

absl::Status PingPong::Add(esdp::Socket socket) {
  socket_ = std::move(socket);
  auto pieces = NewPieces(station_, task_, task_.size, 3);
  if (!pieces.ok()) return pieces.status();
  pieces_ = *std::move(pieces);
  return Post(false, 1);
}

absl::Status PingPong::Post(bool send, size_t piece) {
  const esdp::OpArgs args{station_.queue()};
  return send ? socket_.Send(pieces_.slices[piece], esdp::SendFlags::kNone, args).status()
              : socket_.Recv(pieces_.slices[piece], esdp::RecvFlags::kWaitAll, args).status();
}

absl::Status PingPong::Begin() {
  cpu_before_ = place_.CpuSeconds();
  start_ = place_.Nanoseconds();
  if (asks()) return Ask();
  wanted_ = 1;
  return absl::OkStatus();
}

absl::Status PingPong::OnEvents(absl::Span<const esdp::Event> events) {
  for (const esdp::Event& event : events) {
    if (!event.ok()) return event.status();
    if (event.type != esdp::EventType::kRecv) continue;
    received_ = event;
    seen_.bytes_received += event.bytes;
    seen_.bytes_zero_copy += event.bytes_zero_copy;
  }
  wanted_ -= events.size();
  if (wanted_ > 0 || shutting_down_) return absl::OkStatus();
  return asks() ? OnAnswer() : Answer();
}

absl::Status PingPong::Ask() {
  if (task_.verify) {
    FillPattern(task_.seed, 0, round_ * task_.size, pieces_.memory.first(task_.size));
  }
  wanted_ = 2;
  asked_ = place_.Nanoseconds();
  return Post(true, 0);
}

// The next receive is posted before the answer can come.
absl::Status PingPong::OnAnswer() {
  round_trips_->Record(static_cast<uint64_t>(place_.Nanoseconds() - asked_));
  if (absl::Status status = CheckContent(); !status.ok()) return status;
  piece_ = 3 - piece_;
  if (absl::Status status = Post(false, piece_); !status.ok()) return status;
  ++seen_.sends;
  ++round_;
  const uint64_t rounds = task_.bytes / task_.size;
  const bool more = rounds != 0 ? round_ < rounds : place_.SecondsSince(start_) < task_.seconds;
  // The receive that is still posted ends with the peer's end of stream.
  return more ? Ask() : ShutDown(2);
}

absl::Status PingPong::CheckContent() const {
  if (received_.bytes != task_.size) return absl::UnavailableError("the answering side has ended");
  if (!task_.verify) return absl::OkStatus();
  const auto answer = pieces_.memory.subspan(piece_ * task_.size, task_.size);
  const auto wrong = FindMismatch(task_.seed, 0, round_ * task_.size, answer);
  return wrong ? absl::DataLossError("wrong content at byte " + std::to_string(*wrong))
               : absl::OkStatus();
}

// The answer goes first; the receive for the next question is posted while it is on its way.
absl::Status PingPong::Answer() {
  if (received_.bytes != task_.size) return ShutDown(1);
  if (absl::Status status = Post(true, piece_); !status.ok()) return status;
  piece_ = 3 - piece_;
  wanted_ = 2;
  ++seen_.sends;
  return Post(false, piece_);
}

// So many events are left, with that of the shutdown.
absl::Status PingPong::ShutDown(size_t left) {
  seen_.send_seconds = seen_.receive_seconds = place_.SecondsSince(start_);
  seen_.cpu_seconds = place_.CpuSeconds() - cpu_before_;
  seen_.bytes_sent = seen_.sends * task_.size;
  shutting_down_ = true;
  wanted_ = left;
  return socket_.Shutdown({station_.queue()}).status();
}

Outcome PingPong::Seen() const {
  Outcome outcome = seen_;
  outcome.copied_bytes = copied_bytes();
  outcome.transport = esdp::ToString(socket_.transport());
  return outcome;
}

}  // namespace esdp_perf
