#include "impl/base/secure_random.h"

#include <sys/random.h>
#include <sys/types.h>

#include <cerrno>
#include <span>

namespace esdp {

bool FillSecureRandom(Bytes out) {
  while (!out.empty()) {
    const ssize_t got = getrandom(out.data(), out.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out = out.subspan(static_cast<size_t>(got));
  }
  return true;
}

std::optional<uint64_t> SecureRandomSeed() {
  uint64_t seed = 0;
  if (!FillSecureRandom(std::as_writable_bytes(std::span(&seed, 1)))) return std::nullopt;
  return seed;
}

std::optional<uint32_t> SecureRandom::Next32() {
  if (left_ == 0) {
    if (!FillSecureRandom(std::as_writable_bytes(std::span(numbers_)))) return std::nullopt;
    left_ = numbers_.size();
  }
  uint32_t& slot = numbers_[--left_];
  const uint32_t number = slot;
  slot = 0;
  return number;
}

}  // namespace esdp
