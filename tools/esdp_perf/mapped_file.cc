#include "tools/esdp_perf/mapped_file.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "absl/status/status.h"

namespace esdp_perf {
namespace {

absl::Status FileError(const std::string& what, const std::string& path) {
  return absl::ErrnoToStatus(errno, what + " " + path);
}

// Closes the descriptor: the mapping outlives it.
absl::StatusOr<std::span<std::byte>> Map(int fd, uint64_t length, int protection,
                                         const std::string& path) {
  void* address = mmap(nullptr, length, protection, MAP_SHARED | MAP_POPULATE, fd, 0);
  const absl::Status failure =
      address == MAP_FAILED ? FileError("cannot map", path) : absl::OkStatus();
  close(fd);
  if (!failure.ok()) return failure;
  return std::span(static_cast<std::byte*>(address), length);
}

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError("cannot open", path);
  struct stat about {};
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) {
    close(fd);
    return absl::InvalidArgumentError(path + " is no plain file with bytes in it");
  }
  auto bytes = Map(fd, static_cast<uint64_t>(about.st_size), PROT_READ, path);
  if (!bytes.ok()) return bytes.status();
  return MappedFile(*bytes);
}

absl::StatusOr<MappedFile> MappedFile::Create(const std::string& path, uint64_t length) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return FileError("cannot create", path);
  // Space is taken now: a disk that is full must not show as a fault in the middle of a transfer.
  if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(length)); error != 0) {
    close(fd);
    errno = error;
    return FileError("no space for", path);
  }
  auto bytes = Map(fd, length, PROT_READ | PROT_WRITE, path);
  if (!bytes.ok()) return bytes.status();
  return MappedFile(*bytes);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

std::string MappedFile::Sha256() const {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size(), digest.data());
  std::string text;
  for (unsigned char byte : digest) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", byte);
    text += two;
  }
  return text;
}

}  // namespace esdp_perf
