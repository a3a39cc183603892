#ifndef ESDP_TOOLS_ESDP_FILES_BIG_ENDIAN_H_
#define ESDP_TOOLS_ESDP_FILES_BIG_ENDIAN_H_

#include <cstddef>
#include <cstdint>
#include <span>

// Numbers of as many bytes as the span has, the highest first.

namespace esdp_files {

template <size_t kBytes>
void StoreBigEndian(uint64_t value, std::span<std::byte, kBytes> out) {
  for (size_t i = 0; i < kBytes; ++i) {
    out[kBytes - 1 - i] = static_cast<std::byte>(value >> (8 * i));
  }
}

template <size_t kBytes>
uint64_t LoadBigEndian(std::span<const std::byte, kBytes> bytes) {
  uint64_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<uint64_t>(byte);
  return value;
}

}  // namespace esdp_files

#endif  // ESDP_TOOLS_ESDP_FILES_BIG_ENDIAN_H_
