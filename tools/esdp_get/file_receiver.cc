#include "tools/esdp_get/file_receiver.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace esdp_get {

namespace wire = esdp_files::wire;
using esdp_files::FileExtent;
using esdp_files::kChunkBytes;
using esdp_files::kTailBytes;

namespace {

constexpr uint64_t kSmall = 64 * 1024;  // read with what is around it, rather than by itself
constexpr uint64_t kRoom = kChunkBytes + kTailBytes;

}  // namespace

absl::Status FileReceiver::Receive(const wire::Answer& answer, bool with_crc, int fd,
                                   const Moved& moved, const Settled& settled) {
  whole_ = false;
  with_crc_ = with_crc;
  fd_ = fd;
  moved_ = moved;
  settled_ = settled;
  posted_.clear();
  if (absl::Status status = Plan(answer); !status.ok()) return status;
  while (!chunks_.done() || !posted_.empty()) {
    if (absl::Status status = PostAhead(); !status.ok()) return status;
    if (posted_.empty()) continue;
    if (absl::Status status = TakePosted(); !status.ok()) return status;
  }
  whole_ = true;
  return absl::OkStatus();
}

absl::Status FileReceiver::Plan(const wire::Answer& answer) {
  const uint64_t size = answer.size();
  std::vector<FileExtent> extents;
  for (const wire::Extent& extent : answer.extents()) {
    extents.push_back({extent.offset(), extent.length()});
  }
  if (!answer.sparse()) extents = {{answer.offset(), answer.length()}};
  if (answer.length() == 0) extents.clear();
  if (size > esdp_files::kFileBytesMax ||
      !esdp_files::ExtentsAreSound(extents, answer.offset(), size, answer.length())) {
    return absl::DataLossError("the server's answer contradicts itself");
  }
  chunks_ = esdp_files::Chunks(std::move(extents));
  return absl::OkStatus();
}

// What has come with the answer is taken first; then receives stand for what is to come.
absl::Status FileReceiver::PostAhead() {
  while (!chunks_.done() && posted_.size() < kAhead) {
    const FileExtent chunk = chunks_.Peek();
    const size_t buffered = connection_.buffered();
    const bool by_buffer = buffered >= chunk.length || (chunk.length < kSmall && posted_.empty());
    chunks_.Skip();
    absl::Status status = by_buffer ? TakeBuffered(chunk) : Post(chunk);
    if (!status.ok()) return status;
    if (by_buffer) return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status FileReceiver::TakeBuffered(const FileExtent& chunk) {
  std::vector<std::byte> bytes(chunk.length + kTailBytes);
  if (absl::Status status = connection_.ReadRaw(bytes); !status.ok()) return status;
  const std::span<std::byte> data = std::span(bytes).first(chunk.length);
  const auto tail = esdp_files::LoadTail(
      std::span(std::as_const(bytes)).subspan(chunk.length).first<kTailBytes>());
  if (absl::Status status = Check(tail, chunk); !status.ok()) return status;
  return with_crc_ ? WriteSummed(chunk, tail.crc, data) : Write(chunk.offset, data);
}

absl::Status FileReceiver::WriteSummed(const FileExtent& chunk, uint32_t crc,
                                       std::span<const std::byte> bytes) {
  if (esdp_files::Crc32c(bytes) != crc) {
    return absl::DataLossError("the CRC32C of what came differs");
  }
  absl::Status status = Write(chunk.offset, bytes);
  return status.ok() && settled_ ? settled_(chunk, crc) : status;
}

absl::Status FileReceiver::Post(const FileExtent& chunk) {
  Posted posted{.chunk = chunk, .data = {}, .tail = {}, .rest = 0, .place = next_place_};
  next_place_ = (next_place_ + 1) % kAhead;
  if (with_crc_) return PostSummed(chunk, posted);
  const uint64_t here = connection_.buffered();
  if (here > 0) {
    std::vector<std::byte> first(here);
    if (absl::Status status = connection_.ReadRaw(first); !status.ok()) return status;
    if (absl::Status status = Write(chunk.offset, first); !status.ok()) return status;
  }
  const auto data = connection_.socket().RecvFile(
      {.fd = fd_, .offset = chunk.offset + here, .length = chunk.length - here, .reserve = false},
      connection_.Args());
  if (!data.ok()) return data.status();
  const auto tail = connection_.socket().RecvCopy(absl::MakeSpan(tails_[posted.place]),
                                                  esdp::RecvFlags::kWaitAll, connection_.Args());
  if (!tail.ok()) return tail.status();
  posted.rest = chunk.length - here;
  posted.data = *data;
  posted.tail = *tail;
  posted_.push_back(posted);
  return absl::OkStatus();
}

std::span<std::byte> FileReceiver::Memory(size_t place) {
  return {memory_.info().base + place * kRoom, kRoom};
}

absl::Status FileReceiver::PostSummed(const FileExtent& chunk, Posted& posted) {
  if (!memory_.valid()) {
    auto memory = connection_.context().Allocate(kAhead * kRoom);
    if (!memory.ok()) return memory.status();
    memory_ = *std::move(memory);
  }
  const uint64_t here = connection_.buffered();
  const std::span<std::byte> room = Memory(posted.place);
  if (absl::Status status = connection_.ReadRaw(room.first(here)); !status.ok()) return status;
  const auto slice = memory_.slice(posted.place * kRoom + here, chunk.length + kTailBytes - here);
  if (!slice.ok()) return slice.status();
  const auto op = connection_.socket().Recv(*slice, esdp::RecvFlags::kWaitAll, connection_.Args());
  if (!op.ok()) return op.status();
  posted.data = *op;
  posted_.push_back(posted);
  return absl::OkStatus();
}

absl::Status FileReceiver::TakePosted() {
  const Posted one = posted_.front();
  posted_.pop_front();
  const auto data = connection_.Await(one.data);
  if (!data.ok()) return data.status();
  if (!data->ok()) return data->status();
  if (data->eof()) return absl::UnavailableError("the server has ended the connection");
  std::span<const std::byte, kTailBytes> bytes(tails_[one.place]);
  if (with_crc_) {
    bytes = Memory(one.place).subspan(one.chunk.length).first<kTailBytes>();
  } else {
    const auto tail = connection_.Await(one.tail);
    if (!tail.ok()) return tail.status();
    if (!tail->ok()) return tail->status();
    if (tail->eof()) return absl::UnavailableError("the server has ended the connection");
  }
  const esdp_files::Tail tail = esdp_files::LoadTail(bytes);
  if (absl::Status status = Check(tail, one.chunk); !status.ok()) return status;
  if (!with_crc_) return moved_(one.rest), absl::OkStatus();
  return WriteSummed(one.chunk, tail.crc, Memory(one.place).first(one.chunk.length));
}

absl::Status FileReceiver::Check(const esdp_files::Tail& tail, const FileExtent& chunk) {
  if (tail.offset != chunk.offset) {
    return absl::DataLossError("the server's chunks are not where they are to be");
  }
  if (tail.status == 0) return absl::OkStatus();
  const auto status = static_cast<wire::Status>(tail.status);
  return EndEarly(StatusOf(status, status == wire::CHANGED  ? "the file was written to meanwhile"
                                   : status == wire::FAILED ? "the server cannot read on"
                                                            : "the server has ended it"));
}

// The server sends nothing more: what is posted is taken back.
absl::Status FileReceiver::EndEarly(const absl::Status& reason) {
  if (!posted_.empty()) {
    if (auto asked = connection_.socket().CancelAll(esdp::Direction::kReceive); !asked.ok()) {
      return asked.status();
    }
  }
  for (const Posted& one : posted_) {
    for (const esdp::OpId op : {one.data, one.tail}) {
      if (op == esdp::OpId::kNone) continue;
      const auto event = connection_.Await(op);
      if (!event.ok()) return event.status();
      if (event->bytes > 0) return absl::DataLossError("the server goes on behind its last word");
      if (event->kind != esdp::ErrorKind::kCancelled) return event->status();
    }
  }
  posted_.clear();
  if (absl::Status status = connection_.Resync(); !status.ok()) return status;
  whole_ = true;
  return reason;
}

absl::Status FileReceiver::Write(uint64_t offset, std::span<const std::byte> bytes) {
  const uint64_t length = bytes.size();
  while (!bytes.empty()) {
    const ssize_t count = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "cannot be written");
    offset += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  moved_(length);
  return absl::OkStatus();
}

}  // namespace esdp_get
