#ifndef ESDP_IMPL_BASE_RING_H_
#define ESDP_IMPL_BASE_RING_H_

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

// First-in first-out queues over one block of slots. Ring has a fixed capacity, and full is an
// answer; GrowingRing has kFirst slots from its first value on, doubles when full, never shrinks.
//
// T must be default-constructible and movable. A slot that is left is set to T{}, so that what it
// held is released at once, if it can hold anything. Indices count from the head. Both are values:
// copyable when T is, equal when their elements are. Not thread-safe. As with the standard
// containers, an element that is not there must not be asked for.

namespace esdp {

template <typename T>
class RingSlots {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to refer to");
  template <typename Slots, typename Value>
  class Cursor {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = Value*;
    using reference = Value&;

    Cursor() = default;
    Cursor(Slots* slots, size_t index) : slots_(slots), index_(index) {}
    reference operator*() const { return (*slots_)[index_]; }
    pointer operator->() const { return &(*slots_)[index_]; }
    Cursor& operator++() {
      ++index_;
      return *this;
    }
    Cursor operator++(int) {
      Cursor before = *this;
      ++index_;
      return before;
    }
    friend bool operator==(const Cursor&, const Cursor&) = default;

   private:
    Slots* slots_ = nullptr;
    size_t index_ = 0;
  };

 public:
  using value_type = T;
  using iterator = Cursor<RingSlots, T>;
  using const_iterator = Cursor<const RingSlots, const T>;

  size_t size() const { return size_; }
  size_t capacity() const { return slots_.size(); }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == slots_.size(); }

  T& operator[](size_t index) { return slots_[Place(index)]; }
  const T& operator[](size_t index) const { return slots_[Place(index)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  iterator begin() { return iterator(this, 0); }
  iterator end() { return iterator(this, size_); }
  const_iterator begin() const { return const_iterator(this, 0); }
  const_iterator end() const { return const_iterator(this, size_); }

  void PopFront() {
    if constexpr (kHolds) front() = T{};
    head_ = --size_ == 0 ? 0 : Place(1);  // a short queue keeps to the slots that are warm
  }

  // Takes the head out and returns it.
  T TakeFront() {
    T taken = std::move(front());
    PopFront();
    return taken;
  }

  // Takes the tail out and returns it.
  T TakeBack() {
    T taken = std::move(back());
    EraseAt(size_ - 1);
    return taken;
  }

  // Takes out the element at `index`; those behind it move up by one.
  void EraseAt(size_t index) {
    for (size_t i = index; i + 1 < size_; ++i) (*this)[i] = std::move((*this)[i + 1]);
    if constexpr (kHolds) back() = T{};
    --size_;
  }

  // Keeps the slots.
  void clear() {
    while (!empty()) PopFront();
  }

  friend bool operator==(const RingSlots& a, const RingSlots& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }

 protected:
  explicit RingSlots(size_t capacity) : slots_(capacity) {}
  ~RingSlots() = default;
  RingSlots(const RingSlots&) = default;
  RingSlots& operator=(const RingSlots&) = default;
  // What was moved from is empty and has no slots.
  RingSlots(RingSlots&& other) noexcept
      : slots_(std::exchange(other.slots_, {})),
        head_(std::exchange(other.head_, 0)),
        size_(std::exchange(other.size_, 0)) {}
  RingSlots& operator=(RingSlots&& other) noexcept {
    slots_ = std::exchange(other.slots_, {});
    head_ = std::exchange(other.head_, 0);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  void Append(T&& value) {
    slots_[Place(size_)] = std::move(value);
    ++size_;
  }

  void Prepend(T&& value) {
    head_ = head_ == 0 ? slots_.size() - 1 : head_ - 1;
    slots_[head_] = std::move(value);
    ++size_;
  }

  void Grow(size_t capacity) {
    std::vector<T> larger(capacity);
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_ = std::move(larger);
    head_ = 0;
  }

 private:
  size_t Place(size_t index) const {
    const size_t place = head_ + index;
    return place < slots_.size() ? place : place - slots_.size();
  }

  static constexpr bool kHolds = !std::is_trivially_destructible_v<T>;
  std::vector<T> slots_;
  size_t head_ = 0;
  size_t size_ = 0;
};

template <typename T>
class Ring : public RingSlots<T> {
 public:
  // Allocates all its slots now and nothing later.
  explicit Ring(size_t capacity) : RingSlots<T>(capacity) {}

  // False when full: the value is dropped, the ring is as before.
  [[nodiscard]] bool PushBack(T value) {
    if (this->full()) return false;
    this->Append(std::move(value));
    return true;
  }
};

template <typename T, size_t kFirst = 16>
class GrowingRing : public RingSlots<T> {
 public:
  GrowingRing() : RingSlots<T>(0) {}

  // Room for so many at once, if there is less.
  void Reserve(size_t capacity) {
    if (capacity > this->capacity()) this->Grow(capacity);
  }

  void PushBack(T value) {
    MakeRoom();
    this->Append(std::move(value));
  }

  // The value becomes the head.
  void PushFront(T value) {
    MakeRoom();
    this->Prepend(std::move(value));
  }

 private:
  void MakeRoom() {
    if (this->full()) this->Grow(this->empty() ? kFirst : 2 * this->capacity());
  }
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_RING_H_
