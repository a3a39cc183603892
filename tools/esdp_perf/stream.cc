#include "tools/esdp_perf/stream.h"

#include <algorithm>
#include <optional>
#include <string>

#include "tools/esdp_perf/pattern.h"

namespace esdp_perf {
namespace {

bool TryLater(const absl::Status& status) {
  return esdp::KindOf(status) == esdp::ErrorKind::kQueueFull;
}

}  // namespace

absl::StatusOr<Pieces> Pieces::Of(std::span<std::byte> memory, const esdp::Region& region,
                                  uint64_t piece) {
  Pieces pieces;
  pieces.memory = memory;
  pieces.region = region;
  for (uint64_t at = 0; at < memory.size(); at += piece) {
    auto slice = region.slice(at, std::min<uint64_t>(piece, memory.size() - at));
    if (!slice.ok()) return slice.status();
    pieces.slices.push_back(*slice);
  }
  return pieces;
}

bool Stream::SendingIsOver() const {
  return stopped_ || (task_.bytes != 0 && posted_bytes_ == task_.bytes);
}

// The sends that come next, as many as go in one post.
absl::Status Stream::MakeBatch() {
  batch_.clear();
  uint64_t at = posted_bytes_;
  while (batch_.size() < task_.batch && (task_.bytes == 0 || at < task_.bytes)) {
    const size_t index = (sends_posted_ + batch_.size()) % sends_.slices.size();
    esdp::Slice slice = sends_.slices[index];
    if (task_.bytes != 0 && task_.bytes - at < slice.length()) {
      auto rest = sends_.region.slice(slice.offset(), task_.bytes - at);
      if (!rest.ok()) return rest.status();
      slice = *rest;
    }
    if (task_.verify) {
      FillPattern(task_.seed, number_, at,
                  sends_.memory.subspan(index * task_.size, slice.length()));
    }
    batch_.push_back(slice);
    at += slice.length();
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Stream::PostBatch(esdp::EventQueue& queue) {
  const esdp::OpArgs args{queue, number_};
  if (batch_.size() > 1) return socket_.SendBatch(batch_, esdp::SendFlags::kNone, args);
  const auto posted = socket_.Send(batch_.front(), esdp::SendFlags::kNone, args);
  if (!posted.ok()) return posted.status();
  return 1;
}

absl::Status Stream::PostSends(esdp::EventQueue& queue) {
  if (sends_.slices.empty() || shutting_down_) return absl::OkStatus();
  while (!SendingIsOver() && sends_posted_ - sends_ended_ + task_.batch <= task_.depth) {
    if (absl::Status made = MakeBatch(); !made.ok()) return made;
    const auto posted = PostBatch(queue);
    if (!posted.ok()) return TryLater(posted.status()) ? absl::OkStatus() : posted.status();
    sends_posted_ += *posted;
    for (size_t i = 0; i < *posted; ++i) posted_bytes_ += batch_[i].length();
  }
  if (!SendingIsOver() || sends_ended_ != sends_posted_) return absl::OkStatus();
  auto posted = socket_.Shutdown({queue, number_});
  if (!posted.ok()) return TryLater(posted.status()) ? absl::OkStatus() : posted.status();
  shutting_down_ = true;
  return absl::OkStatus();
}

absl::Status Stream::PostReceives(esdp::EventQueue& queue) {
  const bool filled = task_.receive_size == 0;
  while (!end_of_stream_ && !ended_ &&
         receives_posted_ - receives_ended_ < ReceivesInFlight(task_)) {
    // A file has as many pieces as it has room for; the ring begins again.
    if (task_.mode == Task::Mode::kFile && receives_posted_ == receives_.slices.size()) break;
    auto posted =
        socket_.Recv(receives_.slices[receives_posted_ % receives_.slices.size()],
                     filled ? esdp::RecvFlags::kWaitAll : esdp::RecvFlags::kNone, {queue, number_});
    if (!posted.ok()) return TryLater(posted.status()) ? absl::OkStatus() : posted.status();
    ++receives_posted_;
  }
  return absl::OkStatus();
}

absl::Status Stream::OnEvent(const esdp::Event& event) {
  if (!event.ok()) return event.status();
  if (event.type == esdp::EventType::kSend) {
    ++sends_ended_;
    sent_ += event.bytes;
  } else if (event.type == esdp::EventType::kShutdown) {
    shut_down_ = true;
  } else if (event.type == esdp::EventType::kRecv) {
    return OnReceived(event);
  }
  return absl::OkStatus();
}

// Events come in posting order, so the piece is known by counting.
absl::Status Stream::OnReceived(const esdp::Event& event) {
  const size_t index = receives_ended_++ % receives_.slices.size();
  if (task_.verify) {
    const uint64_t piece = task_.receive_size != 0 ? task_.receive_size : task_.size;
    const auto wrong = FindMismatch(task_.seed, number_, received_,
                                    receives_.memory.subspan(index * piece, event.bytes));
    if (wrong.has_value()) {
      return absl::DataLossError("connection " + std::to_string(number_) +
                                 ": wrong content at byte " + std::to_string(*wrong));
    }
  }
  if (event.stream_offset != received_) {
    return absl::DataLossError("connection " + std::to_string(number_) +
                               ": a receive out of order");
  }
  received_ += event.bytes;
  zero_copy_ += event.bytes_zero_copy;
  if (event.eof()) end_of_stream_ = true;
  const bool file_is_here =
      task_.mode == Task::Mode::kFile && receives_ended_ == receives_.slices.size();
  if ((end_of_stream_ || file_is_here) && receives_ended_ == receives_posted_) ended_ = true;
  return absl::OkStatus();
}

}  // namespace esdp_perf
