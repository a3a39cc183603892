#include "tools/esdp_perf/worker.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace esdp_perf {

absl::StatusOr<Pieces> AllocatePieces(esdp::Context& context, const Task& task, uint64_t piece,
                                      uint64_t count) {
  esdp::AllocateOptions options;
  if (task.region_key) options.registration.exposure = esdp::Exposure::kRegionKey;
  auto region = context.Allocate(piece * count, options);
  if (!region.ok()) return region.status();
  const std::span<std::byte> memory(region->info().base, piece * count);
  std::memset(memory.data(), 1, memory.size());
  return Pieces::Of(memory, *region, piece);
}

absl::StatusOr<Pieces> Worker::MakePieces(uint64_t piece, uint64_t count) {
  if (task_.mode != Task::Mode::kFile) {
    return AllocatePieces(station_.context(), task_, piece, count);
  }
  const auto memory = absl::MakeSpan(file_.data(), file_.size());
  auto region =
      sends_ ? station_.context().RegisterReadOnly(memory) : station_.context().Register(memory);
  if (!region.ok()) return region.status();
  return Pieces::Of(file_, *region, piece);
}

absl::Status Worker::Add(esdp::Socket socket) {
  Pieces sends, receives;
  if (sends_) {
    auto made = MakePieces(task_.size, task_.sources != 0 ? task_.sources : task_.depth);
    if (!made.ok()) return made.status();
    sends = *std::move(made);
  }
  if (receives_) {
    const uint64_t piece = task_.receive_size != 0 ? task_.receive_size : task_.size;
    auto made = MakePieces(piece, ReceivesInFlight(task_));
    if (!made.ok()) return made.status();
    receives = *std::move(made);
  }
  streams_.push_back(std::make_unique<Stream>(task_, streams_.size(), std::move(socket),
                                              std::move(sends), std::move(receives)));
  return streams_.back()->PostReceives(station_.queue());
}

absl::Status Worker::Run(bool quiet) {
  absl::SleepFor(absl::Milliseconds(static_cast<int64_t>(task_.pause)));
  cpu_began_ = CpuSeconds();
  start_ = Clock::now();
  if (absl::Status status = PostAll(); !status.ok()) return status;
  while (!Finished()) {
    const auto count = NextEvents();
    if (!count.ok()) return count.status();
    if (absl::Status status = TakeEvents(*count); !status.ok()) return status;
    LookAtTheClock(quiet);
    if (absl::Status status = PostAll(); !status.ok()) return status;
  }
  cpu_seconds_ = CpuSeconds() - cpu_began_;
  return absl::OkStatus();
}

// At most until it is time for the next line.
absl::StatusOr<size_t> Worker::NextEvents() {
  const absl::Time deadline = station_.context().Now() + absl::Milliseconds(200);
  auto count = station_.queue().Dequeue(absl::MakeSpan(events_), {.deadline = deadline});
  if (absl::IsDeadlineExceeded(count.status())) return 0;
  return count;
}

absl::Status Worker::TakeEvents(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    absl::Status status = streams_[events_[i].cookie]->OnEvent(events_[i]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Worker::PostAll() {
  for (const auto& stream : streams_) {
    if (absl::Status status = stream->PostReceives(station_.queue()); !status.ok()) return status;
    if (absl::Status status = stream->PostSends(station_.queue()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void Worker::LookAtTheClock(bool quiet) {
  elapsed_ = std::chrono::duration<double>(Clock::now() - start_).count();
  if (task_.warm_up > 0 && warm_up_.send_seconds == 0 && elapsed_ >= task_.warm_up) EndWarmUp();
  if (task_.bytes == 0 && elapsed_ >= task_.warm_up + task_.seconds) {
    for (const auto& stream : streams_) stream->StopSending();
  }
  if (quiet || elapsed_ < next_line_) return;
  PrintProgress(elapsed_);
  next_line_ += 1;
}

void Worker::EndWarmUp() {
  warm_up_ = Total();
  warm_up_.send_seconds = warm_up_.receive_seconds = elapsed_;
  warm_up_.cpu_seconds = CpuSeconds() - cpu_began_;
}

void Worker::PrintProgress(double seconds) {
  uint64_t bytes = 0;
  for (const auto& stream : streams_) bytes += stream->bytes_sent() + stream->bytes_received();
  std::fprintf(stderr, "%5.0f s  %10.1f MB/s\n", seconds,
               static_cast<double>(bytes - bytes_at_line_) / 1e6);
  bytes_at_line_ = bytes;
}

// Notes when each direction came to its end, on the way.
bool Worker::Finished() {
  const auto all = [this](auto done) { return std::ranges::all_of(streams_, done); };
  const bool sent = all([](const auto& stream) { return stream->sent_all(); });
  const bool received = all([](const auto& stream) { return stream->received_all(); });
  if (sends_ && sent && send_seconds_ == 0) send_seconds_ = elapsed_;
  if (receives_ && received && receive_seconds_ == 0) receive_seconds_ = elapsed_;
  return sent && received;
}

Outcome Worker::Total() const {
  Outcome outcome;
  for (const auto& stream : streams_) {
    outcome.bytes_sent += stream->bytes_sent();
    outcome.bytes_received += stream->bytes_received();
    outcome.sends += stream->sends();
    outcome.bytes_zero_copy += stream->bytes_zero_copy();
    outcome.copied_bytes += stream->socket().Stats().payload_copy_bytes;
    outcome.transport = esdp::ToString(stream->socket().transport());
  }
  outcome.send_seconds = send_seconds_;
  outcome.receive_seconds = receive_seconds_;
  outcome.cpu_seconds = cpu_seconds_;
  return outcome;
}

Outcome Worker::Seen() const {
  Outcome outcome = Total();
  outcome.bytes_sent -= warm_up_.bytes_sent;
  outcome.bytes_received -= warm_up_.bytes_received;
  outcome.sends -= warm_up_.sends;
  outcome.bytes_zero_copy -= warm_up_.bytes_zero_copy;
  outcome.copied_bytes -= warm_up_.copied_bytes;
  if (sends_) outcome.send_seconds -= warm_up_.send_seconds;
  if (receives_) outcome.receive_seconds -= warm_up_.receive_seconds;
  outcome.cpu_seconds -= warm_up_.cpu_seconds;
  return outcome;
}

}  // namespace esdp_perf
