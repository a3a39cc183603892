#include "tools/esdp_copy/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "tools/esdp_files/read_whole.h"
#include "tools/esdp_files/room.h"

namespace esdp_copy {

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

absl::Status File::Failed(int reason, const char* what) const {
  if (reason == 0) return absl::OutOfRangeError(path_ + ": became shorter while it was read");
  if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG) {
    const absl::Status told = absl::ErrnoToStatus(reason, path_ + ": " + what);
    return absl::ResourceExhaustedError(told.message());
  }
  return absl::ErrnoToStatus(reason, path_ + ": " + what);
}

bool WantsRoom(const absl::Status& status) { return absl::IsResourceExhausted(status); }

absl::StatusOr<File> File::OpenToRead(const std::string& path) {
  File file(path, open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd_ < 0) return file.Failed(errno, "cannot be opened");
  struct stat about {};
  if (fstat(file.fd_, &about) != 0) return file.Failed(errno, "cannot be looked at");
  if (!S_ISREG(about.st_mode)) return absl::InvalidArgumentError(path + ": not a plain file");
  return file;
}

absl::StatusOr<File> File::OpenToWrite(const std::string& path) {
  constexpr mode_t kMode = 0644;
  File file(path, open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (file.fd_ < 0) return file.Failed(errno, "cannot be opened");
  return file;
}

absl::StatusOr<uint64_t> File::Size() const {
  struct stat about {};
  if (fstat(fd_, &about) != 0) return Failed(errno, "cannot be looked at");
  return static_cast<uint64_t>(about.st_size);
}

absl::Status File::Read(uint64_t offset, std::byte* bytes, size_t length) const {
  const int error = esdp_files::ReadWhole(fd_, offset, {bytes, length});
  if (error == 0) return absl::OkStatus();
  return Failed(error == esdp_files::kEndsBefore ? 0 : error, "cannot be read");
}

absl::Status File::Reserve(uint64_t offset, uint64_t length) const {
  const int error = esdp_files::ReserveRoom(fd_, offset, length);
  return error == 0 ? absl::OkStatus() : Failed(error, "no room for it");
}

absl::Status File::Truncate(uint64_t length) const {
  return ftruncate(fd_, static_cast<off_t>(length)) == 0 ? absl::OkStatus()
                                                         : Failed(errno, "cannot be cut");
}

absl::Status File::Sync() const {
  return fsync(fd_) == 0 ? absl::OkStatus() : Failed(errno, "cannot be brought to disk");
}

}  // namespace esdp_copy
