#include "impl/base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace esdp {
namespace {

// Newer than the headers of some systems.
constexpr unsigned kNoExec = 0x0008;  // MFD_NOEXEC_SEAL
constexpr int kFutureWrite = 0x0010;  // F_SEAL_FUTURE_WRITE
constexpr int kPopulateRead = 22;     // MADV_POPULATE_READ
constexpr int kPopulateWrite = 23;

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | kFutureWrite | F_SEAL_SEAL;

absl::Status Failed(const char* what, int error) {
  const std::string text = std::string(what) + ": " + std::strerror(error);
  const bool is_short = error == ENOMEM || error == EMFILE || error == ENFILE || error == ENOSPC;
  return is_short ? absl::ResourceExhaustedError(text) : absl::UnimplementedError(text);
}

Descriptor MakeFile() {
  const int with_seal = memfd_create("esdp", MFD_CLOEXEC | MFD_ALLOW_SEALING | kNoExec);
  if (with_seal >= 0 || errno != EINVAL) return Descriptor(with_seal);
  return Descriptor(memfd_create("esdp", MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

// EINVAL: a system that does not know the advice, where a touch has to do.
bool Populate(std::byte* begin, size_t bytes, int advice) {
  return bytes == 0 || madvise(begin, bytes, advice) == 0 || errno == EINVAL;
}

}  // namespace

void Descriptor::Close() {
  if (number_ >= 0) close(std::exchange(number_, -1));
}

Mapping::~Mapping() {
  if (base_ != nullptr) munmap(base_, length_);
}

absl::StatusOr<WritableMemory> MakeWritableMemory(size_t length, size_t resident) {
  WritableMemory memory;
  memory.file = MakeFile();
  if (!memory.file.is_open()) return Failed("memory that can be shared (memfd_create)", errno);
  if (ftruncate(memory.file.number(), static_cast<off_t>(length)) != 0) {
    return Failed("cannot size shared memory", errno);
  }
  void* const base =
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, memory.file.number(), 0);
  if (base == MAP_FAILED) return Failed("cannot map shared memory", errno);
  memory.mapping = Mapping(static_cast<std::byte*>(base), length);
  if (madvise(base, length, MADV_DONTFORK) != 0) return Failed("MADV_DONTFORK", errno);
  if (!Populate(memory.mapping.base(), resident, kPopulateWrite)) {
    return Failed("no memory for what is shared", errno);
  }
  if (fcntl(memory.file.number(), F_ADD_SEALS, kSeals) != 0) {
    return Failed("shared memory cannot be sealed (F_SEAL_FUTURE_WRITE)", errno);
  }
  return memory;
}

bool MakeResident(const Mapping& mapping, size_t offset, size_t bytes) {
  return Populate(mapping.base() + offset, bytes, kPopulateRead);
}

std::optional<uint64_t> SealedBytes(int file) {
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return std::nullopt;
  struct stat status {};
  if (fstat(file, &status) != 0) return std::nullopt;
  return static_cast<uint64_t>(status.st_size);
}

absl::StatusOr<Mapping> MapReadOnly(const Descriptor& file, size_t length, size_t resident) {
  const std::optional<uint64_t> bytes = SealedBytes(file.number());
  if (!bytes) return absl::PermissionDeniedError("what the peer passed is no sealed memory");
  if (*bytes != length) {
    return absl::PermissionDeniedError("the peer's memory has another size than was agreed on");
  }
  void* const base = mmap(nullptr, length, PROT_READ, MAP_SHARED, file.number(), 0);
  if (base == MAP_FAILED) return Failed("cannot map the peer's memory", errno);
  Mapping mapping(static_cast<std::byte*>(base), length);
  if (madvise(base, length, MADV_DONTFORK) != 0) return Failed("MADV_DONTFORK", errno);
  if (!Populate(mapping.base(), resident, kPopulateRead)) {
    return Failed("no memory for what the peer shares", errno);
  }
  return mapping;
}

}  // namespace esdp
