#include "tools/esdp_get/download.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "tools/esdp_files/read_whole.h"

namespace esdp_get {

namespace wire = esdp_files::wire;

absl::Status Downloader::Ask(const std::string& name) { return Ask(name, 0, 0); }

absl::Status Downloader::Ask(const std::string& name, uint64_t offset, uint64_t etag) {
  if (options_.sha256 && !connection_.has(wire::FEATURE_WHOLE_SHA256)) {
    return absl::UnimplementedError("the server does not tell the SHA-256 of files");
  }
  wire::Request request;
  wire::Get& get = *request.mutable_get();
  get.set_name(name);
  get.set_offset(offset);
  get.set_if_match(etag);
  get.set_sparse(true);
  get.set_chunk_crc(options_.crc);
  get.set_whole_sha256(options_.sha256);
  return connection_.Ask(std::move(request));
}

absl::Status Downloader::Take(const std::string& name, const std::string& target) {
  whole_ = false;
  const auto answer = connection_.NextAnswer();
  if (!answer.ok()) return answer.status();
  whole_ = answer->status() != wire::OK;
  if (whole_) return StatusOf(*answer);
  auto part = PartFile::Create(target, answer->etag(), answer->size(), options_.crc);
  if (!part.ok()) return part.status();
  return Store(name, *answer, *part);
}

absl::Status Downloader::Fetch(const std::string& name, const std::string& target) {
  if (options_.resume) {
    wire::Request request;
    request.mutable_stat()->set_name(name);
    const auto about = connection_.Get(std::move(request));
    whole_ = about.ok();
    if (!about.ok()) return about.status();
    if (about->status() != wire::OK) return StatusOf(*about);
    auto part = PartFile::Continue(target, about->etag(), about->size(), options_.crc);
    if (part.ok() && part->offset() > 0) {
      if (absl::Status status = Ask(name, part->offset(), about->etag()); !status.ok()) {
        whole_ = false;
        return status;
      }
      const auto answer = connection_.NextAnswer();
      whole_ = answer.ok() && answer->status() != wire::OK;
      if (!answer.ok()) return answer.status();
      if (whole_) return StatusOf(*answer);
      if (answer->offset() != part->offset() || answer->size() != about->size()) {
        return absl::DataLossError("the server answers with another part of the file");
      }
      return Store(name, *answer, *part);
    }
  }
  if (absl::Status status = Ask(name); !status.ok()) return status;
  return Take(name, target);
}

absl::Status Downloader::Store(const std::string& name, const wire::Answer& answer,
                               PartFile& part) {
  const uint64_t size = answer.size();
  const bool dense = answer.offset() + answer.length() == size;
  if (dense) {
    if (absl::Status status = part.Reserve(answer.length()); !status.ok()) return status;
  }
  // Holes count as there.
  uint64_t done = size - answer.length();
  progress_(name, done, size);
  std::optional<esdp_files::FileDigest> digest;
  if (options_.sha256) {
    digest.emplace([fd = part.fd()](uint64_t offset, std::byte* bytes, size_t length) {
      const int error = esdp_files::ReadWhole(fd, offset, {bytes, length});
      if (error == 0) return absl::OkStatus();
      return absl::ErrnoToStatus(error == esdp_files::kEndsBefore ? EIO : error,
                                 "cannot be read again");
    });
  }
  // Beside the transfer, as far as nothing is missing before.
  const auto moved = [&](uint64_t bytes) {
    progress_(name, done += bytes, size);
    if (digest && dense) digest->Allow(done);
  };
  const auto settled = [&](const esdp_files::FileExtent& chunk, uint32_t crc) {
    return part.Settle(chunk, crc);
  };
  absl::Status status = receiver_.Receive(answer, options_.crc, part.fd(), moved, settled);
  whole_ = receiver_.connection_is_whole();
  // Of a file that is another one by now nothing is of use.
  if (status.ok() && digest) status = CompareWhole(answer.id(), part, *digest, size);
  if (absl::IsAborted(status) && whole_) part.Remove();
  if (!status.ok()) return status;
  return part.Finish(answer.mtime_ns(), options_.sync);
}

absl::Status Downloader::CompareWhole(uint64_t id, PartFile& part, esdp_files::FileDigest& digest,
                                      uint64_t size) {
  const auto told = connection_.SecondAnswer(id);
  whole_ = told.ok();
  if (!told.ok()) return told.status();
  if (told->status() != wire::OK) return StatusOf(*told);
  if (absl::Status status = part.Extend(); !status.ok()) return status;
  digest.Allow(size);
  while (true) {
    const auto summed = digest.WaitFor(size, absl::Seconds(10));
    if (!summed.ok()) return summed.status();
    if (*summed) break;
  }
  const esdp_files::Sum sum = digest.Finish();
  const auto theirs = std::as_bytes(std::span(told->sha256()));
  if (std::ranges::equal(sum, theirs)) return absl::OkStatus();
  part.Remove();
  return absl::DataLossError("the SHA-256 of what came differs from that of the file there");
}

}  // namespace esdp_get
