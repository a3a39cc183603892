#include "tools/esdp_get/upload.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tools/esdp_files/descriptor.h"
#include "tools/esdp_files/read_whole.h"

namespace esdp_get {

namespace wire = esdp_files::wire;
using esdp_files::FileExtent;
using esdp_files::kTailBytes;

namespace {

// What of the file is to be brought; tells the server where it has holes.
esdp_files::Chunks DescribeHoles(int fd, wire::Put& put) {
  std::vector<FileExtent> extents = esdp_files::DataOf(fd, 0, put.size());
  esdp_files::Chunks chunks(extents);
  put.set_sparse(chunks.length() < put.size());
  if (!put.sparse()) return esdp_files::Chunks({{0, put.size()}});
  for (const FileExtent& extent : extents) {
    auto* const told = put.add_extents();
    told->set_offset(extent.offset);
    told->set_length(extent.length);
  }
  return chunks;
}

}  // namespace

absl::Status Uploader::Bring(const std::string& path, const std::string& name) {
  const esdp_files::Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat about {};
  if (!file.valid() || fstat(file.get(), &about) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(about.st_mode)) return absl::InvalidArgumentError("not a plain file");
  size_ = static_cast<uint64_t>(about.st_size);
  wire::Request request;
  wire::Put& put = *request.mutable_put();
  put.set_name(name);
  put.set_size(size_);
  put.set_tag(esdp_files::EtagOf(about));
  put.set_resume(options_.resume);
  put.set_chunk_crc(options_.crc);
  put.set_replace(options_.replace);
  put.set_sync(options_.sync_on_the_way ? wire::Put::SYNC_EVERY : wire::Put::SYNC_END);
  const esdp_files::Chunks all = DescribeHoles(file.get(), put);
  whole_ = false;
  const uint64_t tag = put.tag();
  if (absl::Status status = connection_.Ask(std::move(request)); !status.ok()) return status;
  const auto answer = connection_.NextAnswer(/*another_follows=*/true);
  if (!answer.ok()) return answer.status();
  whole_ = answer->status() != wire::OK;
  if (whole_) return StatusOf(*answer);
  if (answer->offset() > size_) return absl::DataLossError("the server wants what there is not");
  esdp_files::Chunks wanted = all;
  wanted.SkipTo(answer->offset());
  done_ = size_ - wanted.length();
  absl::Status status = SendAll(file.get(), std::move(wanted), name);
  if (!status.ok()) return status;
  const auto last = connection_.NextAnswer();
  if (!last.ok()) return last.status();
  struct stat again {};
  whole_ = last->status() == wire::OK;
  if (whole_ && (fstat(file.get(), &again) != 0 || esdp_files::EtagOf(again) != tag)) {
    return absl::AbortedError("the file was written to meanwhile");
  }
  return StatusOf(*last);
}

// Ends early, and well, where the server has said why it ends: the answer tells.
absl::Status Uploader::SendAll(int fd, esdp_files::Chunks chunks, const std::string& name) {
  if (!memory_.valid()) {
    auto memory = connection_.context().Allocate(kAhead * kRoom);
    if (!memory.ok()) return memory.status();
    memory_ = *std::move(memory);
  }
  if (absl::Status status = connection_.Listen(); !status.ok()) return status;
  sent_.clear();
  size_t place = 0;
  progress_(name, done_, size_);
  while (!chunks.done() || !sent_.empty()) {
    while (!chunks.done() && sent_.size() < kAhead) {
      const FileExtent chunk = chunks.Peek();
      chunks.Skip();
      absl::Status status = Send(fd, chunk, place);
      if (!status.ok()) return connection_.heard() ? absl::OkStatus() : status;
      place = (place + 1) % kAhead;
    }
    const Sent one = sent_.front();
    sent_.pop_front();
    const auto event = connection_.Await(one.op);
    if (connection_.heard()) return absl::OkStatus();
    if (!event.ok()) return event.status();
    if (!event->ok()) return event->status();
    progress_(name, done_ += one.length, size_);
  }
  return absl::OkStatus();
}

absl::Status Uploader::Send(int fd, const FileExtent& chunk, size_t place) {
  absl::StatusOr<esdp::OpId> op;
  if (options_.crc) {
    op = SendSummed(fd, chunk, place);
  } else {
    std::byte* const at = memory_.info().base + place * kRoom;
    esdp_files::StoreTail({.offset = chunk.offset},
                          std::span<std::byte, kTailBytes>(at, kTailBytes));
    const auto tail = memory_.slice(place * kRoom, kTailBytes);
    if (!tail.ok()) return tail.status();
    const esdp::FileRange range{fd, chunk.offset, chunk.length};
    op = connection_.socket().SendFile({.ranges = {&range, 1}, .trailer = {&*tail, 1}},
                                       connection_.Args());
  }
  if (op.ok()) sent_.push_back({*op, chunk.length});
  return op.status();
}

absl::StatusOr<esdp::OpId> Uploader::SendSummed(int fd, const FileExtent& chunk, size_t place) {
  const std::span<std::byte> room(memory_.info().base + place * kRoom, kRoom);
  const int error = esdp_files::ReadWhole(fd, chunk.offset, room.first(chunk.length));
  if (error == esdp_files::kEndsBefore) {
    return absl::AbortedError("became shorter while it was read");
  }
  if (error != 0) return absl::ErrnoToStatus(error, "cannot be read");
  esdp_files::StoreTail(
      {.crc = esdp_files::Crc32c(room.first(chunk.length)), .offset = chunk.offset},
      room.subspan(chunk.length).first<kTailBytes>());
  const auto slice = memory_.slice(place * kRoom, chunk.length + kTailBytes);
  if (!slice.ok()) return slice.status();
  return connection_.socket().Send(*slice, esdp::SendFlags::kNone, connection_.Args());
}

}  // namespace esdp_get
