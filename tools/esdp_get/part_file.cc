#include "tools/esdp_get/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tools/esdp_files/chunks.h"
#include "tools/esdp_files/names.h"
#include "tools/esdp_files/room.h"

namespace esdp_get {

PartFile::PartFile(std::string target, uint64_t etag, uint64_t size)
    : target_(std::move(target)), size_(size) {
  const esdp_files::SplitName split = esdp_files::Split(target_);
  const std::string folder = target_.substr(0, target_.size() - split.last.size());
  path_ = folder + esdp_files::PartName(split.last, etag, size);
}

absl::Status PartFile::Failed(const char* what) const {
  return absl::ErrnoToStatus(errno, target_ + ": " + what);
}

absl::Status PartFile::Open(int flags) {
  constexpr mode_t kMode = 0644;
  file_ = esdp_files::Descriptor(
      open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, kMode));
  if (!file_.valid()) return Failed("cannot be opened");
  struct stat about {};
  if (fstat(file_.get(), &about) != 0) return Failed("cannot be looked at");
  if (!S_ISREG(about.st_mode)) return absl::InvalidArgumentError(path_ + ": not a plain file");
  // Several chunks are on their way to the medium at once: what lies behind the first hole may be
  // there without what belongs before it. Room that was taken and not written is a hole, too.
  const off_t hole = lseek(file_.get(), 0, SEEK_HOLE);
  const off_t written = hole >= 0 ? std::min(hole, about.st_size) : 0;
  offset_ = std::min(static_cast<uint64_t>(written), size_);
  offset_ -= offset_ % esdp_files::kChunkBytes;
  return absl::OkStatus();
}

std::string PartFile::SumsPath() const { return esdp_files::SumsName(path_); }

// What comes after it is written anew, from there on.
absl::Status PartFile::OpenSums(bool resume) {
  offset_ = 0;
  if (size_ <= esdp_files::kChunkBytes)
    return absl::OkStatus();  // it is there as a whole or not at all
  auto sums = esdp_files::ChunkSums::Open(AT_FDCWD, SumsPath());
  if (!sums.ok()) return sums.status();
  sums_ = *std::move(sums);
  using Entries = std::vector<esdp_files::ChunkSums::Entry>;
  for (const auto& entry : resume ? sums_->Load() : Entries()) {
    if (!entry.crc || entry.chunk.offset < offset_) break;
    const auto is_there = esdp_files::ChunkSums::IsThere(fd(), entry);
    if (!is_there.ok()) return is_there.status();
    if (!*is_there) break;
    offset_ = entry.chunk.offset + entry.chunk.length;
    ++next_sum_;
  }
  return sums_->Cut(next_sum_);
}

absl::StatusOr<PartFile> PartFile::Create(const std::string& target, uint64_t etag, uint64_t size,
                                          bool sums) {
  PartFile part(target, etag, size);
  unlink(part.path_.c_str());
  if (absl::Status status = part.Open(O_CREAT | O_EXCL); !status.ok()) return status;
  // Those of an earlier one are of another file.
  if (!sums) {
    unlink(part.SumsPath().c_str());
    return part;
  }
  if (absl::Status status = part.OpenSums(false); !status.ok()) return status;
  return part;
}

absl::StatusOr<PartFile> PartFile::Continue(const std::string& target, uint64_t etag, uint64_t size,
                                            bool sums) {
  PartFile part(target, etag, size);
  if (absl::Status status = part.Open(0); !status.ok()) return status;
  if (!sums) {
    unlink(part.SumsPath().c_str());
    return part;
  }
  if (absl::Status status = part.OpenSums(true); !status.ok()) return status;
  // What lies behind is not known to be as it is to be, and a hole there may stay one.
  if (ftruncate(part.fd(), static_cast<off_t>(part.offset_)) != 0) {
    return part.Failed("cannot be cut");
  }
  return part;
}

absl::Status PartFile::Settle(const esdp_files::FileExtent& chunk, uint32_t crc) {
  return sums_ ? sums_->Set(next_sum_++, {chunk, crc}) : absl::OkStatus();
}

absl::Status PartFile::Extend() {
  return ftruncate(fd(), static_cast<off_t>(size_)) == 0 ? absl::OkStatus()
                                                         : Failed("cannot be cut");
}

absl::Status PartFile::Reserve(uint64_t length) {
  errno = esdp_files::ReserveRoom(fd(), offset_, length);
  return errno == 0 ? absl::OkStatus() : Failed("no room for it");
}

absl::Status PartFile::Finish(int64_t mtime_ns, bool sync) {
  if (absl::Status status = Extend(); !status.ok()) return status;
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t within = ((mtime_ns % kSecond) + kSecond) % kSecond;
  const timespec mtime{.tv_sec = (mtime_ns - within) / kSecond, .tv_nsec = within};
  const std::array<timespec, 2> times = {mtime, mtime};
  if (futimens(fd(), times.data()) != 0) return Failed("cannot be given its time");
  // What could not be brought to the medium may be lost by now, though it can be read until the page
  // cache forgets it, and the next fsync would go well.
  if (sync && fsync(fd()) != 0) {
    absl::Status failed = Failed("cannot be brought to disk");
    Remove();
    return failed;
  }
  if (std::rename(path_.c_str(), target_.c_str()) != 0) return Failed("cannot be named");
  if (sums_) unlink(SumsPath().c_str());
  return absl::OkStatus();
}

void PartFile::Remove() {
  unlink(path_.c_str());
  unlink(SumsPath().c_str());
}

}  // namespace esdp_get
