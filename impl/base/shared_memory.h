#ifndef ESDP_IMPL_BASE_SHARED_MEMORY_H_
#define ESDP_IMPL_BASE_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace esdp {

// A file descriptor, closed at its end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this == &other) return *this;
    Close();
    number_ = std::exchange(other.number_, -1);
    return *this;
  }
  ~Descriptor() { Close(); }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void Close();

 private:
  int number_ = -1;
};

// A mapping of a whole memory file, undone at its end. No child of fork has it.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* base, size_t length) : base_(base), length_(length) {}
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), length_(std::exchange(other.length_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(length_, other.length_);
    return *this;
  }
  ~Mapping();

  std::byte* base() const { return base_; }
  size_t length() const { return length_; }
  // To be undone by the caller.
  std::byte* Release() && { return std::exchange(base_, nullptr); }

 private:
  std::byte* base_ = nullptr;
  size_t length_ = 0;
};

// Memory that we write and others may read: a file without a name. Its seals keep everybody, us
// included, from another writable mapping, from writing by system calls, from cutting it short and
// from taking pages out of it: whoever maps it cannot be hit by SIGBUS from our side.
struct WritableMemory {
  Descriptor file;  // to be passed on
  Mapping mapping;
};

// `resident` bytes from the start are there from now on; the rest comes with the first touch.
// Unimplemented where the system has no such seals, ResourceExhausted where it has no memory or
// descriptor left.
absl::StatusOr<WritableMemory> MakeWritableMemory(size_t length, size_t resident);

// The reader's touch of [offset, offset + bytes) would not be answered by a signal: these pages are
// there from now on. False where there is no memory for them.
bool MakeResident(const Mapping& mapping, size_t offset, size_t bytes);

// How long such a file is; nothing for one that is not made like that.
std::optional<uint64_t> SealedBytes(int file);

// The other side of it. PermissionDenied where the file is not what MakeWritableMemory makes: of
// another size, of another kind, or without its seals.
absl::StatusOr<Mapping> MapReadOnly(const Descriptor& file, size_t length, size_t resident);

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_SHARED_MEMORY_H_
