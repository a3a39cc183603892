#include "tools/esdp_get/download.h"

#include <utility>

#include "absl/status/status.h"

namespace esdp_get {

namespace wire = esdp_files::wire;

absl::Status Downloader::Ask(const std::string& name) { return Ask(name, 0, 0); }

absl::Status Downloader::Ask(const std::string& name, uint64_t offset, uint64_t etag) {
  wire::Request request;
  wire::Get& get = *request.mutable_get();
  get.set_name(name);
  get.set_offset(offset);
  get.set_if_match(etag);
  get.set_sparse(true);
  get.set_chunk_crc(options_.crc);
  return connection_.Ask(std::move(request));
}

absl::Status Downloader::Take(const std::string& name, const std::string& target) {
  whole_ = false;
  const auto answer = connection_.NextAnswer();
  if (!answer.ok()) return answer.status();
  whole_ = answer->status() != wire::OK;
  if (whole_) return StatusOf(*answer);
  auto part = PartFile::Create(target, answer->etag(), answer->size());
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
    auto part = PartFile::Continue(target, about->etag(), about->size());
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
  const auto moved = [&](uint64_t bytes) { progress_(name, done += bytes, size); };
  absl::Status status = receiver_.Receive(answer, options_.crc, part.fd(), moved);
  whole_ = receiver_.connection_is_whole();
  // Of a file that is another one by now nothing is of use.
  if (absl::IsAborted(status) && whole_) part.Remove();
  if (!status.ok()) return status;
  return part.Finish(answer.mtime_ns(), options_.sync);
}

}  // namespace esdp_get
