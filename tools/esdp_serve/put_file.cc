#include "tools/esdp_serve/put_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tools/esdp_files/names.h"
#include "tools/esdp_files/room.h"

namespace esdp_serve {

namespace wire = esdp_files::wire;
using esdp_files::ChunkSums;
using esdp_files::FileExtent;
using esdp_files::FileStatus;
using esdp_files::kChunkBytes;

absl::StatusOr<PutFile> PutFile::Open(const wire::Put& put, const esdp_files::Root& root) {
  if (absl::Status status = esdp_files::CheckNewName(put.name()); !status.ok()) return status;
  if (put.size() > esdp_files::kFileBytesMax) {
    return absl::InvalidArgumentError("no file is so long");
  }
  std::vector<FileExtent> extents;
  for (const wire::Extent& extent : put.extents()) {
    extents.push_back({extent.offset(), extent.length()});
  }
  if (!put.sparse()) extents = {{0, put.size()}};
  uint64_t length = 0;
  for (const FileExtent& extent : extents) length += extent.length;
  if (put.sparse() && (extents.size() > esdp_files::kExtentsMax ||
                       !esdp_files::ExtentsAreSound(extents, 0, put.size(), length))) {
    return absl::InvalidArgumentError("the parts of the file are not in order");
  }
  const esdp_files::SplitName split = esdp_files::Split(put.name());
  auto folder = root.OpenFolder(split.folder);
  if (!folder.ok()) return folder.status();
  PutFile file;
  file.folder_ = *std::move(folder);
  file.last_ = split.last;
  file.part_ = esdp_files::PartName(split.last, put.tag(), put.size());
  file.size_ = put.size();
  file.is_sparse_ = put.sparse();
  file.chunks_ = esdp_files::Chunks(std::move(extents));
  file.replace_ = put.replace();
  file.sync_ = put.sync() != wire::Put::SYNC_NONE;
  struct stat about {};
  if (!put.replace() &&
      fstatat(file.folder_.get(), file.last_.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0) {
    return FileStatus(EEXIST);
  }
  if (absl::Status status = file.OpenPart(); !status.ok()) return status;
  if (absl::Status status = file.FindRest(put.resume()); !status.ok()) return status;
  if (absl::Status status = file.Reserve(); !status.ok()) return status;
  return file;
}

absl::Status PutFile::OpenPart() {
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
  return absl::OkStatus();
}

// What is summed is read again: who was killed with its machine may have left anything.
absl::Status PutFile::FindRest(bool resume) {
  uint64_t count = 0;
  if (chunks_.length() > kChunkBytes) {
    auto sums = ChunkSums::Open(folder_.get(), esdp_files::SumsName(part_));
    if (!sums.ok()) return sums.status();
    sums_ = *std::move(sums);
    for (const ChunkSums::Entry& entry : resume ? sums_->Load() : std::vector<ChunkSums::Entry>()) {
      if (chunks_.done() || chunks_.Peek() != entry.chunk) break;
      const auto is_there = ChunkSums::IsThere(fd(), entry);
      if (!is_there.ok()) return is_there.status();
      if (!*is_there) break;
      chunks_.Skip();
      ++count;
    }
    if (absl::Status status = sums_->Cut(count); !status.ok()) return status;
  }
  next_sum_ = count;
  const uint64_t keeps = count == 0 ? 0 : offset();
  return ftruncate(fd(), static_cast<off_t>(keeps)) == 0 ? absl::OkStatus() : FileStatus(errno);
}

absl::Status PutFile::Reserve() const {
  const int error = is_sparse_ ? 0 : esdp_files::ReserveRoom(fd(), offset(), size_ - offset());
  return error == 0 ? absl::OkStatus() : FileStatus(error);
}

absl::Status PutFile::Settle(const FileExtent& chunk, std::optional<uint32_t> crc) {
  const ChunkSums::Entry entry{chunk, crc};
  const auto is_there = ChunkSums::IsThere(fd(), entry);
  if (!is_there.ok()) return is_there.status();
  if (!*is_there) {
    RemovePart();
    return absl::DataLossError("the CRC32C of a chunk differs");
  }
  return sums_ ? sums_->Set(next_sum_++, entry) : absl::OkStatus();
}

void PutFile::RemoveSums() const {
  if (sums_) unlinkat(folder_.get(), esdp_files::SumsName(part_).c_str(), 0);
}

void PutFile::RemovePart() const {
  RemoveSums();
  unlinkat(folder_.get(), part_.c_str(), 0);
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

absl::Status PutFile::Finish(bool drop_behind) {
  if (ftruncate(fd(), static_cast<off_t>(size_)) != 0) return FileStatus(errno);
  // What could not be brought to the medium may be lost by now, and is not to be gone on behind.
  if (sync_ && fdatasync(fd()) != 0) {
    absl::Status failed = FileStatus(errno);
    RemovePart();
    return failed;
  }
  if (drop_behind) (void)posix_fadvise(fd(), 0, 0, POSIX_FADV_DONTNEED);
  if (absl::Status status = Rename(); !status.ok()) return status;
  RemoveSums();
  return sync_ && fsync(folder_.get()) != 0 ? FileStatus(errno) : absl::OkStatus();
}

absl::Status MakeFolder(const wire::MakeFolder& wanted, const esdp_files::Root& root) {
  if (absl::Status status = esdp_files::CheckNewName(wanted.name()); !status.ok()) return status;
  const esdp_files::SplitName split = esdp_files::Split(wanted.name());
  const auto folder = root.OpenFolder(split.folder);
  if (!folder.ok()) return folder.status();
  constexpr mode_t kMode = 0755;
  if (mkdirat(folder->get(), split.last.c_str(), kMode) == 0) return absl::OkStatus();
  if (errno != EEXIST) return FileStatus(errno);
  return root.OpenFolder(wanted.name()).ok() ? absl::OkStatus() : FileStatus(EEXIST);
}

}  // namespace esdp_serve
