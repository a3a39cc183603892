#include "tools/esdp_files/chunk_sums.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>

#include "absl/status/status.h"
#include "tools/esdp_files/big_endian.h"
#include "tools/esdp_files/read_whole.h"
#include "tools/esdp_files/root.h"

namespace esdp_files {
namespace {

// Of an entry: what it is and the sum, u32 each; offset and length of its chunk, u64 each.
constexpr size_t kEntryBytes = 24;
constexpr uint64_t kWhole = 1;
constexpr uint64_t kSummed = 2;
using Bytes = std::array<std::byte, kEntryBytes>;

}  // namespace

absl::StatusOr<ChunkSums> ChunkSums::Open(int folder, const std::string& name) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  constexpr mode_t kMode = 0600;
  ChunkSums sums;
  sums.file_ = Descriptor(openat(folder, name.c_str(), kFlags, kMode));
  struct stat about {};
  if (!sums.file_.valid() || fstat(sums.file_.get(), &about) != 0) {
    return FileStatus(errno);
  }
  if (!S_ISREG(about.st_mode) || about.st_nlink != 1) {
    return absl::PermissionDeniedError("what is in place of its sums is none");
  }
  return sums;
}

std::vector<ChunkSums::Entry> ChunkSums::Load() const {
  std::vector<Entry> entries;
  Bytes bytes;
  const std::span all(bytes);
  while (true) {
    const auto at = static_cast<off_t>(entries.size() * kEntryBytes);
    if (pread(file_.get(), bytes.data(), bytes.size(), at) != kEntryBytes) return entries;
    const uint64_t state = LoadBigEndian<4>(all.first<4>());
    if (state != kWhole && state != kSummed) return entries;
    Entry entry;
    entry.chunk = {LoadBigEndian<8>(all.subspan<8, 8>()), LoadBigEndian<8>(all.subspan<16, 8>())};
    if (state == kSummed) {
      entry.crc = static_cast<uint32_t>(LoadBigEndian<4>(all.subspan<4, 4>()));
    }
    entries.push_back(entry);
  }
}

absl::Status ChunkSums::Cut(uint64_t count) const {
  const auto length = static_cast<off_t>(count * kEntryBytes);
  return ftruncate(file_.get(), length) == 0 ? absl::OkStatus() : FileStatus(errno);
}

absl::Status ChunkSums::Set(uint64_t number, const Entry& entry) const {
  Bytes bytes;
  const std::span all(bytes);
  StoreBigEndian(entry.crc ? kSummed : kWhole, all.first<4>());
  StoreBigEndian(entry.crc.value_or(0), all.subspan<4, 4>());
  StoreBigEndian(entry.chunk.offset, all.subspan<8, 8>());
  StoreBigEndian(entry.chunk.length, all.subspan<16, 8>());
  const auto at = static_cast<off_t>(number * kEntryBytes);
  const ssize_t count = pwrite(file_.get(), bytes.data(), bytes.size(), at);
  return count == kEntryBytes ? absl::OkStatus() : FileStatus(count < 0 ? errno : ENOSPC);
}

absl::StatusOr<bool> ChunkSums::IsThere(int fd, const Entry& entry) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return FileStatus(errno);
  if (static_cast<uint64_t>(about.st_size) < entry.chunk.offset + entry.chunk.length) return false;
  if (!entry.crc) return true;
  if (entry.chunk.length > kChunkBytes) return false;
  std::vector<std::byte> bytes(entry.chunk.length);
  const int error = ReadWhole(fd, entry.chunk.offset, bytes);
  if (error != 0) return FileStatus(error == kEndsBefore ? EIO : error);
  return Crc32c(bytes) == *entry.crc;
}

}  // namespace esdp_files
