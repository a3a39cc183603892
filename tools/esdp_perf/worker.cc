#include "tools/esdp_perf/worker.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "absl/types/span.h"

namespace esdp_perf {

// Pieces are part of more memory, as a program's are: so much the peer may be given on this host.
constexpr uint64_t kPool = 64 * 1024;

absl::StatusOr<Pieces> NewPieces(Station& station, const Task& task, uint64_t piece,
                                 uint64_t count) {
  esdp::AllocateOptions options;
  if (task.region_key) options.registration.exposure = esdp::Exposure::kRegionKey;
  std::span<std::byte> memory;
  if (task.foreign) memory = station.NewMemory(piece * count);
  auto region = task.foreign ? station.context().Register(memory, options.registration)
                             : station.context().Allocate(std::max(piece * count, kPool), options);
  if (!region.ok()) return region.status();
  if (!task.foreign) memory = {region->info().base, piece * count};
  std::memset(memory.data(), 1, memory.size());
  return Pieces::Of(memory, *region, piece);
}

absl::StatusOr<Pieces> Worker::MakePieces(uint64_t piece, uint64_t count) {
  if (task_.mode != Task::Mode::kFile) {
    return NewPieces(station_, task_, piece, count);
  }
  const auto memory = absl::MakeSpan(file_.data(), file_.size());
  auto region = part_.sends ? station_.context().RegisterReadOnly(memory)
                            : station_.context().Register(memory);
  if (!region.ok()) return region.status();
  return Pieces::Of(file_, *region, piece);
}

absl::Status Worker::Add(esdp::Socket socket) {
  Pieces sends, receives;
  if (part_.sends) {
    auto made = MakePieces(task_.size, task_.sources != 0 ? task_.sources : task_.depth);
    if (!made.ok()) return made.status();
    sends = *std::move(made);
  }
  if (part_.receives) {
    const uint64_t piece = task_.receive_size != 0 ? task_.receive_size : task_.size;
    auto made = MakePieces(piece, task_.targets != 0 ? task_.targets : ReceivesInFlight(task_));
    if (!made.ok()) return made.status();
    receives = *std::move(made);
  }
  streams_.push_back(std::make_unique<Stream>(task_, streams_.size(), std::move(socket),
                                              std::move(sends), std::move(receives)));
  return streams_.back()->PostReceives(station_.queue());
}

absl::Status Worker::Begin() {
  cpu_began_ = place_.CpuSeconds();
  start_ = place_.Nanoseconds();
  absl::Status status = PostAll();
  ended_ = Finished();
  return status;
}

absl::Status Worker::OnEvents(absl::Span<const esdp::Event> events) {
  for (const esdp::Event& event : events) {
    absl::Status status = streams_[event.cookie]->OnEvent(event);
    if (!status.ok()) return status;
  }
  LookAtTheClock();
  if (absl::Status status = PostAll(); !status.ok()) return status;
  ended_ = Finished();
  if (ended_) cpu_seconds_ = place_.CpuSeconds() - cpu_began_;
  return absl::OkStatus();
}

absl::Status Worker::PostAll() {
  for (const auto& stream : streams_) {
    if (absl::Status status = stream->PostReceives(station_.queue()); !status.ok()) return status;
    if (absl::Status status = stream->PostSends(station_.queue()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void Worker::LookAtTheClock() {
  elapsed_ = place_.SecondsSince(start_);
  if (task_.warm_up > 0 && warm_up_.send_seconds == 0 && elapsed_ >= task_.warm_up) EndWarmUp();
  if (task_.bytes == 0 && elapsed_ >= task_.warm_up + task_.seconds) {
    for (const auto& stream : streams_) stream->StopSending();
  }
  if (part_.quiet || elapsed_ < next_line_) return;
  PrintProgress(elapsed_);
  next_line_ += 1;
}

void Worker::EndWarmUp() {
  warm_up_ = Total();
  warm_up_.send_seconds = warm_up_.receive_seconds = elapsed_;
  warm_up_.cpu_seconds = place_.CpuSeconds() - cpu_began_;
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
  if (part_.sends && sent && send_seconds_ == 0) send_seconds_ = elapsed_;
  if (part_.receives && received && receive_seconds_ == 0) receive_seconds_ = elapsed_;
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

uint64_t Worker::copied_bytes() const {
  uint64_t bytes = 0;
  for (const auto& stream : streams_) bytes += stream->socket().Stats().payload_copy_bytes;
  return bytes;
}

uint64_t Worker::memory_bytes() const {
  uint64_t bytes = 0;
  for (const auto& stream : streams_) bytes += stream->memory_bytes();
  return bytes;
}

Outcome Worker::Seen() const {
  Outcome outcome = Total();
  outcome.bytes_sent -= warm_up_.bytes_sent;
  outcome.bytes_received -= warm_up_.bytes_received;
  outcome.sends -= warm_up_.sends;
  outcome.bytes_zero_copy -= warm_up_.bytes_zero_copy;
  outcome.copied_bytes -= warm_up_.copied_bytes;
  if (part_.sends) outcome.send_seconds -= warm_up_.send_seconds;
  if (part_.receives) outcome.receive_seconds -= warm_up_.receive_seconds;
  outcome.cpu_seconds -= warm_up_.cpu_seconds;
  return outcome;
}

}  // namespace esdp_perf
