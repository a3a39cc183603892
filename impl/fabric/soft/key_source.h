#ifndef ESDP_IMPL_FABRIC_SOFT_KEY_SOURCE_H_
#define ESDP_IMPL_FABRIC_SOFT_KEY_SOURCE_H_

#include <cstdint>
#include <optional>

#include "impl/base/secure_random.h"

namespace esdp::fabric::soft {

// Where a region table takes its keys from.
//
//   Owns:     nothing.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    –
//   Errors:   Draw: nothing when no number can be had.
class KeySource {
 public:
  KeySource() = default;
  virtual ~KeySource() = default;
  KeySource(const KeySource&) = delete;
  KeySource& operator=(const KeySource&) = delete;

  // Any number: the table draws again where it cannot be a key.
  virtual std::optional<uint32_t> Draw() = 0;
  // Of a region's first byte, in the space of the region's own key.
  virtual uint64_t FirstAddress() { return 0; }
};

// Keys that a peer cannot guess.
class SecureKeys final : public KeySource {
 public:
  std::optional<uint32_t> Draw() override { return random_.Next32(); }

 private:
  SecureRandom random_;
};

}  // namespace esdp::fabric::soft

#endif  // ESDP_IMPL_FABRIC_SOFT_KEY_SOURCE_H_
