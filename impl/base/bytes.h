#ifndef ESDP_IMPL_BASE_BYTES_H_
#define ESDP_IMPL_BASE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

// Byte spans and big-endian integers at fixed places. Every wire format here is big-endian and is
// read and written by offset, never by overlaying a struct.

namespace esdp {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

// Reads an unsigned integer of T's size. The caller has checked that offset + sizeof(T) lies inside
// `bytes`.
template <typename T>
constexpr T LoadBigEndian(ConstBytes bytes, size_t offset) {
  static_assert(std::is_unsigned_v<T>);
  T value = 0;
#pragma GCC unroll 8  // lets gcc see one load or store and one byte swap
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>((static_cast<uint64_t>(value) << 8) |
                           std::to_integer<uint64_t>(bytes[offset + i]));
  }
  return value;
}

// Writes an unsigned integer of T's size. The caller has checked that offset + sizeof(T) lies
// inside `bytes`.
template <typename T>
constexpr void StoreBigEndian(Bytes bytes, size_t offset, T value) {
  static_assert(std::is_unsigned_v<T>);
#pragma GCC unroll 8  // lets gcc see one load or store and one byte swap
  for (size_t i = 0; i < sizeof(T); ++i) {
    bytes[offset + i] =
        static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * (sizeof(T) - 1 - i)));
  }
}

// The one place that copies raw memory, so that every payload copy can be found and counted.
// `to` holds at least `from.size()` bytes; the two do not overlap.
inline void CopyBytes(Bytes to, ConstBytes from) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_BYTES_H_
