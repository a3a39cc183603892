#ifndef ESDP_IMPL_BASE_SECURE_RANDOM_H_
#define ESDP_IMPL_BASE_SECURE_RANDOM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/base/bytes.h"

namespace esdp {

// Fills `out` with bytes that nobody can predict, from the system's generator. False when the
// system has none to give; `out` is then not to be used. May block only in the first moments after
// the machine has started.
bool FillSecureRandom(Bytes out);

// A seed for Random that differs from run to run; nothing when the system has none to give.
std::optional<uint64_t> SecureRandomSeed();

// Numbers that a peer cannot guess, such as steering tags. It asks the system for many at a time
// and wipes each as it is handed out, so that a number is neither given twice nor left lying about.
// Not thread-safe; not copyable, since a copy would give the same numbers again.
class SecureRandom {
 public:
  SecureRandom() = default;
  SecureRandom(const SecureRandom&) = delete;
  SecureRandom& operator=(const SecureRandom&) = delete;

  // Nothing when the system has none to give.
  std::optional<uint32_t> Next32();

 private:
  std::array<uint32_t, 64> numbers_{};
  size_t left_ = 0;
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_SECURE_RANDOM_H_
