#ifndef ESDP_TESTS_FUZZ_DRAWN_H_
#define ESDP_TESTS_FUZZ_DRAWN_H_

#include <cstddef>
#include <cstdint>

namespace esdp::sdp::fuzz {

inline void Require(bool holds) {
  if (!holds) __builtin_trap();
}

// Decisions from the bytes of an input, in order; zeros behind its end.
class Drawn {
 public:
  Drawn(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool empty() const { return at_ >= size_; }
  uint8_t Byte() { return empty() ? 0 : data_[at_++]; }
  uint32_t Below(uint32_t limit) { return Byte() % limit; }
  bool Flag() { return (Byte() & 1) != 0; }
  uint32_t Word() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | Byte();
    return value;
  }
  template <typename T, size_t kCount>
  T OneOf(const T (&values)[kCount]) {
    return values[Below(kCount)];
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

}  // namespace esdp::sdp::fuzz

#endif  // ESDP_TESTS_FUZZ_DRAWN_H_
