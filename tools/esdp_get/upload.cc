#include "tools/esdp_get/upload.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "absl/status/status.h"
#include "tools/esdp_files/descriptor.h"

namespace esdp_get {

namespace wire = esdp_files::wire;
using esdp_files::FileExtent;
using esdp_files::kTailBytes;

absl::Status Uploader::Bring(const std::string& path, const std::string& name) {
  const esdp_files::Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat about {};
  if (!file.valid() || fstat(file.get(), &about) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(about.st_mode)) return absl::InvalidArgumentError("not a plain file");
  const auto size = static_cast<uint64_t>(about.st_size);
  wire::Request request;
  wire::Put& put = *request.mutable_put();
  put.set_name(name);
  put.set_size(size);
  put.set_tag(esdp_files::EtagOf(about));
  put.set_resume(options_.resume);
  put.set_chunk_crc(options_.crc);
  put.set_replace(options_.replace);
  put.set_sync(options_.sync ? wire::Put::SYNC_END : wire::Put::SYNC_NONE);
  whole_ = false;
  const uint64_t tag = put.tag();
  if (absl::Status status = connection_.Ask(std::move(request)); !status.ok()) return status;
  const auto answer = connection_.NextAnswer(/*another_follows=*/true);
  if (!answer.ok()) return answer.status();
  whole_ = answer->status() != wire::OK;
  if (whole_) return StatusOf(*answer);
  if (answer->offset() > size) return absl::DataLossError("the server wants what there is not");
  absl::Status status = SendAll(file.get(), answer->offset(), size, name);
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
absl::Status Uploader::SendAll(int fd, uint64_t offset, uint64_t size, const std::string& name) {
  if (!memory_.valid()) {
    auto memory = connection_.context().Allocate(kAhead * kRoom);
    if (!memory.ok()) return memory.status();
    memory_ = *std::move(memory);
  }
  if (absl::Status status = connection_.Listen(); !status.ok()) return status;
  sent_.clear();
  esdp_files::Chunks chunks({{offset, size - offset}});
  size_t place = 0;
  uint64_t done = offset;
  progress_(name, done, size);
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
    progress_(name, done += one.length, size);
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
  size_t done = 0;
  while (done < chunk.length) {
    const ssize_t count =
        pread(fd, room.data() + done, chunk.length - done, static_cast<off_t>(chunk.offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "cannot be read");
    if (count == 0) return absl::AbortedError("became shorter while it was read");
    done += static_cast<size_t>(count);
  }
  esdp_files::StoreTail(
      {.crc = esdp_files::Crc32c(room.first(chunk.length)), .offset = chunk.offset},
      room.subspan(chunk.length).first<kTailBytes>());
  const auto slice = memory_.slice(place * kRoom, chunk.length + kTailBytes);
  if (!slice.ok()) return slice.status();
  return connection_.socket().Send(*slice, esdp::SendFlags::kNone, connection_.Args());
}

}  // namespace esdp_get
