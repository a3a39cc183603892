#ifndef ESDP_IMPL_EXS_TRANSFER_H_
#define ESDP_IMPL_EXS_TRANSFER_H_

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "esdp/region.h"

namespace esdp::exs {

enum class Way : uint8_t { kSending, kReceiving };

// A descriptor that is closed with its holder.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() {
    if (fd_ >= 0) close(fd_);
  }

  int Release() { return std::exchange(fd_, -1); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A part of a transfer: registered memory, memory that nobody registered, or a range of a file.
struct Part {
  Region region = {};  // keeps the slice's
  Slice slice = {};
  std::byte* base = nullptr;  // that nobody registered
  OwnedFd file = {};          // a duplicate
  bool is_regular = false;    // of a file
  uint64_t offset = 0;        // in the file; in memory that nobody registered
  uint64_t length = 0;        // from there on
};

// Of a part that is memory: what is left of it.
inline absl::Span<std::byte> MemoryOf(const Part& part) {
  std::byte* base = part.base;
  if (base == nullptr) {
    base = static_cast<std::byte*>(part.region.info().base) + part.slice.offset();
  }
  return absl::MakeSpan(base + part.offset, part.length);
}

// What one post moves.
struct Transfer {
  Way way = Way::kSending;
  bool urgent = false;    // a send's last byte
  bool wait_all = false;  // of a receive
  bool peeks = false;     // of a receive: takes nothing
  bool copies = false;    // what nobody registered: it cannot be, or is not worth it
  std::vector<Part> parts = {};
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_TRANSFER_H_
