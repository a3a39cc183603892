#include "tools/esdp_serve/replies.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tools/esdp_files/frame.h"
#include "tools/esdp_serve/listing.h"
#include "tools/esdp_serve/request_queue.h"

namespace esdp_serve {

namespace wire = esdp_files::wire;
using esdp_files::FileExtent;
using esdp_files::kChunkBytes;
using esdp_files::kTailBytes;
using esdp_files::Tail;

namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kSmallFileMax = 64 * 1024;  // goes with its answer in one piece

// Reads all of it where there is so much; zeros take the place of the rest.
wire::Status ReadAll(int fd, uint64_t offset, std::span<std::byte> bytes) {
  size_t done = 0;
  wire::Status status = wire::OK;
  while (done < bytes.size()) {
    const ssize_t count =
        pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      status = wire::FAILED;
      break;
    }
    done += static_cast<size_t>(count);
  }
  std::fill(bytes.begin() + static_cast<ptrdiff_t>(done), bytes.end(), std::byte{0});
  return status;
}

void Describe(const struct stat& about, wire::Answer& answer) {
  answer.set_kind(S_ISREG(about.st_mode)   ? wire::FILE
                  : S_ISDIR(about.st_mode) ? wire::FOLDER
                                           : wire::OTHER);
  answer.set_size(static_cast<uint64_t>(about.st_size));
  answer.set_mtime_ns(esdp_files::ModifiedNs(about));
  answer.set_etag(esdp_files::EtagOf(about));
}

// A file that is short enough goes with its answer.
void AddSmallFile(Reply& reply, std::span<std::byte> block) {
  OpenedFile& opened = *reply.opened;
  size_t at = reply.bytes;
  while (!opened.chunks.done()) {
    const FileExtent chunk = opened.chunks.Peek();
    opened.chunks.Skip();
    const size_t bytes = chunk.length + kTailBytes;
    const wire::Status status =
        ReadChunk(opened, chunk, opened.chunks.done(), block.subspan(at, bytes));
    at += bytes;
    reply.file_bytes += chunk.length;
    if (status == wire::OK) continue;
    reply.tail_failed = true;
    break;
  }
  reply.bytes = at;
  if (!reply.tail_failed && !opened.has_holes) {
    reply.small = std::move(opened.file);
    reply.small_about = opened.about;
  }
  reply.opened.reset();
}

// What of the file is asked for.
absl::Status Describe(const wire::Get& get, const struct stat& about, wire::Answer& answer) {
  Describe(about, answer);
  if (get.if_match() != 0 && get.if_match() != answer.etag()) {
    return absl::AbortedError("the file is not the one that was there before");
  }
  if (get.offset() > answer.size()) {
    return absl::InvalidArgumentError("the offset is behind the end");
  }
  const uint64_t rest = answer.size() - get.offset();
  answer.set_offset(get.offset());
  answer.set_length(get.length() == 0 ? rest : std::min(get.length(), rest));
  return absl::OkStatus();
}

void DescribeExtents(const std::vector<FileExtent>& extents, wire::Answer& answer) {
  answer.set_sparse(true);
  uint64_t sum = 0;
  for (const FileExtent& extent : extents) {
    if (extent.length == 0) continue;
    auto* const told = answer.add_extents();
    told->set_offset(extent.offset);
    told->set_length(extent.length);
    sum += extent.length;
  }
  answer.set_length(sum);
}

absl::Status Open(const wire::Get& get, const esdp_files::Root& root, wire::Answer& answer,
                  OpenedFile& opened) {
  auto file = root.OpenFile(get.name());
  if (!file.ok()) return file.status();
  opened.file = *std::move(file);
  struct stat& about = opened.about;
  if (fstat(opened.file.get(), &about) != 0) return esdp_files::FileStatus(errno);
  if (absl::Status status = Describe(get, about, answer); !status.ok()) return status;
  opened.etag = answer.etag();
  opened.has_holes = static_cast<uint64_t>(about.st_blocks) * 512 < answer.size();
  const uint64_t end = answer.offset() + answer.length();
  std::vector<FileExtent> extents = {{answer.offset(), answer.length()}};
  if (get.sparse()) {
    extents = esdp_files::DataOf(opened.file.get(), get.offset(), end);
    DescribeExtents(extents, answer);
  }
  opened.chunks = esdp_files::Chunks(std::move(extents));
  opened.with_crc = get.chunk_crc();
  opened.with_sha256 = get.whole_sha256();
  opened.request = answer.id();
  return absl::OkStatus();
}

Reply Say(const wire::Answer& answer, std::span<std::byte> block) {
  Reply reply;
  reply.bytes = PutAnswer(answer, block);
  reply.status = answer.status();
  return reply;
}

Reply ReplyToGet(const wire::Request& request, const esdp_files::Root& root,
                 std::span<std::byte> block) {
  wire::Answer answer;
  answer.set_id(request.id());
  auto opened = std::make_unique<OpenedFile>();
  const absl::Status status = Open(request.get(), root, answer, *opened);
  if (!status.ok()) {
    wire::Answer refusal = Refusal(request.id(), status);
    refusal.set_etag(answer.etag());
    return Say(refusal, block);
  }
  Reply reply = Say(answer, block);
  const auto extents = static_cast<size_t>(std::max(answer.extents_size(), 1));
  const bool sums_whole = request.get().whole_sha256();
  if (answer.length() == 0 && !sums_whole) return reply;
  reply.opened = std::move(opened);
  const bool small = !sums_whole && answer.length() <= kSmallFileMax &&
                     reply.bytes + answer.length() + extents * kTailBytes <= block.size();
  if (small) {
    AddSmallFile(reply, block);
  } else {
    // Its chunks are read one by one: the system is to read ahead of them all the same.
    (void)posix_fadvise(reply.opened->file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  return reply;
}

Reply ReplyToStat(const wire::Request& request, const esdp_files::Root& root,
                  std::span<std::byte> block) {
  const auto about = root.Stat(request.stat().name());
  if (!about.ok()) return Say(Refusal(request.id(), about.status()), block);
  wire::Answer answer;
  answer.set_id(request.id());
  Describe(*about, answer);
  return Say(answer, block);
}

Reply ReplyToHello(const wire::Request& request, std::span<std::byte> block) {
  if (request.hello().version() == 0) {
    return Say(Refusal(request.id(), absl::InvalidArgumentError("Hello without a version")), block);
  }
  wire::Answer answer;
  answer.set_id(request.id());
  answer.set_version(kVersion);
  answer.set_requests_max(kRequestsMax);
  answer.set_features(wire::FEATURE_WHOLE_SHA256);
  return Say(answer, block);
}

}  // namespace

std::optional<Reply> ReplyAtOnce(const wire::Request& request, int fd, const struct stat& about,
                                 std::span<std::byte> block) {
  wire::Answer answer;
  answer.set_id(request.id());
  const wire::Get& get = request.get();
  if (!Describe(get, about, answer).ok()) return std::nullopt;
  const uint64_t length = answer.length();
  if (length == 0 || length > kSmallFileMax) return std::nullopt;
  if (get.sparse()) DescribeExtents({{answer.offset(), length}}, answer);
  Reply reply = Say(answer, block);
  const std::span<std::byte> room = block.subspan(reply.bytes, length + kTailBytes);
  const std::span<std::byte> bytes = room.first(length);
  iovec place{bytes.data(), bytes.size()};
  const ssize_t count = preadv2(fd, &place, 1, static_cast<off_t>(get.offset()), RWF_NOWAIT);
  if (count != static_cast<ssize_t>(length)) return std::nullopt;
  // What was read, and what the answer says, is of that etag where the file still has it.
  struct stat now {};
  if (fstat(fd, &now) != 0 || esdp_files::EtagOf(now) != answer.etag()) return std::nullopt;
  const Tail tail{.crc = get.chunk_crc() ? esdp_files::Crc32c(bytes) : 0, .offset = get.offset()};
  esdp_files::StoreTail(tail, room.last<kTailBytes>());
  reply.bytes += room.size();
  reply.file_bytes = length;
  return reply;
}

wire::Status WireStatus(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return wire::OK;
    case absl::StatusCode::kNotFound:
      return wire::NOT_FOUND;
    case absl::StatusCode::kPermissionDenied:
      return wire::PERMISSION_DENIED;
    case absl::StatusCode::kInvalidArgument:
      return wire::INVALID;
    case absl::StatusCode::kUnimplemented:
      return wire::UNIMPLEMENTED;
    case absl::StatusCode::kUnavailable:
      return wire::UNAVAILABLE;
    case absl::StatusCode::kAborted:
      return wire::CHANGED;
    case absl::StatusCode::kResourceExhausted:
      return wire::NO_SPACE;
    case absl::StatusCode::kCancelled:
      return wire::CANCELLED;
    case absl::StatusCode::kAlreadyExists:
      return wire::EXISTS;
    default:
      return wire::FAILED;
  }
}

wire::Answer Refusal(uint64_t id, const absl::Status& status) {
  constexpr uint32_t kRetryAfterMs = 1000;
  wire::Answer answer;
  answer.set_id(id);
  answer.set_status(WireStatus(status));
  answer.set_text(std::string(status.message()));
  if (absl::IsUnavailable(status)) answer.set_retry_after_ms(kRetryAfterMs);
  return answer;
}

size_t PutAnswer(const wire::Answer& answer, std::span<std::byte> block) {
  size_t length = 0;
  if (esdp_files::WriteFrame(answer, block, &length)) return length;
  // An answer that is nothing but zeros has no bytes: one with an empty text has.
  wire::Answer other = Refusal(answer.id(), absl::InternalError("the answer is too long"));
  if (answer.ByteSizeLong() == 0) other.set_status(wire::INVALID), other.set_text("no id");
  esdp_files::WriteFrame(other, block, &length);
  return length;
}

wire::Status CheckUnchanged(const OpenedFile& opened) {
  struct stat about {};
  if (fstat(opened.file.get(), &about) != 0) return wire::FAILED;
  return esdp_files::EtagOf(about) == opened.etag ? wire::OK : wire::CHANGED;
}

wire::Status ReadChunk(const OpenedFile& opened, const FileExtent& chunk, bool last,
                       std::span<std::byte> room) {
  const std::span<std::byte> bytes = room.first(chunk.length);
  Tail tail{.offset = chunk.offset};
  wire::Status status = ReadAll(opened.file.get(), chunk.offset, bytes);
  if (status == wire::OK && last) status = CheckUnchanged(opened);
  if (opened.with_crc) tail.crc = esdp_files::Crc32c(bytes);
  tail.status = static_cast<uint32_t>(status);
  esdp_files::StoreTail(tail, room.subspan(chunk.length).first<kTailBytes>());
  return status;
}

Reply ReplyTo(const wire::Request& request, const esdp_files::Root& root,
              std::span<std::byte> block) {
  switch (request.what_case()) {
    case wire::Request::kHello:
      return ReplyToHello(request, block);
    case wire::Request::kGet:
      return ReplyToGet(request, root, block);
    case wire::Request::kStat:
      return ReplyToStat(request, root, block);
    case wire::Request::kList: {
      wire::Answer answer;
      answer.set_id(request.id());
      const absl::Status status = ListPage(request.list(), root, answer);
      return Say(status.ok() ? answer : Refusal(request.id(), status), block);
    }
    case wire::Request::kResync: {
      wire::Answer answer;
      answer.set_id(request.id());
      return Say(answer, block);
    }
    default:
      return Say(Refusal(request.id(), absl::UnimplementedError("no request that is known here")),
                 block);
  }
}

}  // namespace esdp_serve
