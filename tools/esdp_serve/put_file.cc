#include "tools/esdp_serve/put_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "absl/status/status.h"
#include "tools/esdp_files/names.h"
#include "tools/esdp_files/room.h"

namespace esdp_serve {

namespace wire = esdp_files::wire;
using esdp_files::FileStatus;
using esdp_files::kChunkBytes;

absl::StatusOr<PutFile> PutFile::Open(const wire::Put& put, const esdp_files::Root& root) {
  if (absl::Status status = esdp_files::CheckNewName(put.name()); !status.ok()) return status;
  if (put.size() > esdp_files::kFileBytesMax) {
    return absl::InvalidArgumentError("no file is so long");
  }
  const esdp_files::SplitName split = esdp_files::Split(put.name());
  auto folder = root.OpenFolder(split.folder);
  if (!folder.ok()) return folder.status();
  PutFile file;
  file.folder_ = *std::move(folder);
  file.last_ = split.last;
  file.part_ = esdp_files::PartName(split.last, put.tag(), put.size());
  file.size_ = put.size();
  file.replace_ = put.replace();
  file.sync_ = put.sync() != wire::Put::SYNC_NONE;
  struct stat about {};
  if (!put.replace() &&
      fstatat(file.folder_.get(), file.last_.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0) {
    return FileStatus(EEXIST);
  }
  if (absl::Status status = file.OpenPart(put.resume()); !status.ok()) return status;
  if (absl::Status status = file.Reserve(); !status.ok()) return status;
  return file;
}

absl::Status PutFile::OpenPart(bool resume) {
  constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  constexpr mode_t kMode = 0644;
  const char* const name = part_.c_str();
  file_ = esdp_files::Descriptor(openat(folder_.get(), name, kFlags));
  if (!file_.valid() && errno == ENOENT) {
    file_ = esdp_files::Descriptor(openat(folder_.get(), name, kFlags | O_CREAT | O_EXCL, kMode));
  }
  if (!file_.valid()) return FileStatus(errno == EEXIST ? EAGAIN : errno);
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError("another client is at the same file");
  }
  struct stat about {};
  struct stat named {};
  if (fstat(file_.get(), &about) != 0) return FileStatus(errno);
  // Of one that was finished or replaced before it was locked nothing is to be gone on with.
  const bool is_named = fstatat(folder_.get(), name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                        named.st_ino == about.st_ino && named.st_dev == about.st_dev;
  if (!is_named) return absl::UnavailableError("another client was at the same file");
  if (!S_ISREG(about.st_mode) || about.st_nlink != 1) {
    return absl::PermissionDeniedError("what is in its place is no part of a file");
  }
  const uint64_t there = std::min(static_cast<uint64_t>(about.st_size), size_);
  offset_ = resume ? there - there % kChunkBytes : 0;
  return ftruncate(fd(), static_cast<off_t>(offset_)) == 0 ? absl::OkStatus() : FileStatus(errno);
}

absl::Status PutFile::Reserve() const {
  const int error = esdp_files::ReserveRoom(fd(), offset_, size_ - offset_);
  return error == 0 ? absl::OkStatus() : FileStatus(error);
}

absl::Status PutFile::Verify(const esdp_files::FileExtent& chunk, uint32_t crc) const {
  std::vector<std::byte> bytes(chunk.length);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = pread(fd(), bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(chunk.offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return FileStatus(count == 0 ? EIO : errno);
    done += static_cast<size_t>(count);
  }
  if (esdp_files::Crc32c(bytes) == crc) return absl::OkStatus();
  // More is on its way behind it: nobody is to take that for a beginning.
  unlinkat(folder_.get(), part_.c_str(), 0);
  return absl::DataLossError("the CRC32C of a chunk differs");
}

absl::Status PutFile::Rename() const {
  const unsigned how = replace_ ? 0 : RENAME_NOREPLACE;
  const int at = folder_.get();
  if (renameat2(at, part_.c_str(), at, last_.c_str(), how) == 0) return absl::OkStatus();
  if (replace_ || errno != EINVAL) return FileStatus(errno);
  // A file system without it.
  if (linkat(at, part_.c_str(), at, last_.c_str(), 0) != 0) return FileStatus(errno);
  return unlinkat(at, part_.c_str(), 0) == 0 ? absl::OkStatus() : FileStatus(errno);
}

absl::Status PutFile::Finish() {
  // What could not be brought to the medium may be lost by now, and is not to be gone on behind.
  if (sync_ && fdatasync(fd()) != 0) {
    absl::Status failed = FileStatus(errno);
    unlinkat(folder_.get(), part_.c_str(), 0);
    return failed;
  }
  if (absl::Status status = Rename(); !status.ok()) return status;
  return sync_ && fsync(folder_.get()) != 0 ? FileStatus(errno) : absl::OkStatus();
}

}  // namespace esdp_serve
