#include "tools/esdp_get/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

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
  offset_ = std::min(static_cast<uint64_t>(about.st_size), size_);
  offset_ -= offset_ % esdp_files::kChunkBytes;
  return absl::OkStatus();
}

absl::StatusOr<PartFile> PartFile::Create(const std::string& target, uint64_t etag, uint64_t size) {
  PartFile part(target, etag, size);
  unlink(part.path_.c_str());
  if (absl::Status status = part.Open(O_CREAT | O_EXCL); !status.ok()) return status;
  return part;
}

absl::StatusOr<PartFile> PartFile::Continue(const std::string& target, uint64_t etag,
                                            uint64_t size) {
  PartFile part(target, etag, size);
  if (absl::Status status = part.Open(0); !status.ok()) return status;
  return part;
}

absl::Status PartFile::Reserve(uint64_t length) {
  errno = esdp_files::ReserveRoom(fd(), offset_, length);
  return errno == 0 ? absl::OkStatus() : Failed("no room for it");
}

absl::Status PartFile::Finish(int64_t mtime_ns, bool sync) {
  if (ftruncate(fd(), static_cast<off_t>(size_)) != 0) return Failed("cannot be cut");
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t within = ((mtime_ns % kSecond) + kSecond) % kSecond;
  const timespec mtime{.tv_sec = (mtime_ns - within) / kSecond, .tv_nsec = within};
  const std::array<timespec, 2> times = {mtime, mtime};
  if (futimens(fd(), times.data()) != 0) return Failed("cannot be given its time");
  if (sync && fsync(fd()) != 0) return Failed("cannot be brought to disk");
  if (std::rename(path_.c_str(), target_.c_str()) != 0) return Failed("cannot be named");
  return absl::OkStatus();
}

void PartFile::Remove() { unlink(path_.c_str()); }

}  // namespace esdp_get
