#ifndef ESDP_IMPL_BASE_RING_H_
#define ESDP_IMPL_BASE_RING_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <new>
#include <utility>

#include "impl/base/ring_slots.h"

// First-in first-out queues over one block of slots. Ring has a fixed capacity, and full is an
// answer; GrowingRing has kFirst slots from its first value on, doubles when full, and shrinks when
// told.
//
// T must be default-constructible and movable. A slot that is left is set to T{}, so that what it
// held is released at once, if it can hold anything. Indices count from the head. Both are values:
// copyable when T is, equal when their elements are. Not thread-safe. As with the standard
// containers, an element that is not there must not be asked for.

namespace esdp {

template <typename T>
class Ring : public RingSlots<T, false> {
 public:
  // Allocates all its slots now and nothing later.
  explicit Ring(size_t capacity) : RingSlots<T, false>(capacity) {}

  // False when full: the value is dropped, the ring is as before.
  [[nodiscard]] bool PushBack(T value) {
    if (this->full()) return false;
    this->Append() = std::move(value);
    return true;
  }
};

template <typename T, size_t kFirst = 16>
class GrowingRing : public RingSlots<T, true> {
  static_assert(std::has_single_bit(kFirst));

 public:
  GrowingRing() = default;

  // Room for so many at once, if there is less.
  void Reserve(size_t capacity) {
    if (capacity > this->capacity()) this->Grow(std::bit_ceil(capacity));
  }

  // Gives back what is beyond room for so many, or for those that are there; nothing where there is
  // no memory for the smaller block.
  void ShrinkTo(size_t capacity) {
    capacity = std::bit_ceil(std::max({capacity, this->size(), kFirst}));
    if (capacity >= this->capacity()) return;
    try {
      this->Grow(capacity);
    } catch (const std::bad_alloc&) {
    }
  }

  void PushBack(T value) {
    MakeRoom();
    this->Append() = std::move(value);
  }

  // The new tail, a T{} to be filled in: cheaper than PushBack where T is large.
  T& PushBack() {
    MakeRoom();
    return this->Renewed(this->Append());
  }

  // The value becomes the head.
  void PushFront(T value) {
    MakeRoom();
    this->Prepend() = std::move(value);
  }

 private:
  void MakeRoom() {
    if (this->full()) this->Grow(this->empty() ? kFirst : 2 * this->capacity());
  }
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_RING_H_
