#ifndef ESDP_IMPL_BASE_RING_SLOTS_H_
#define ESDP_IMPL_BASE_RING_SLOTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace esdp {

// What Ring and GrowingRing (ring.h) have in common. kDoubles: the capacity is 0 or a power of two,
// so that a place is found without a comparison.
template <typename T, bool kDoubles>
class RingSlots {
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
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == capacity_; }

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
    // A short queue keeps to the slots that are warm.
    head_ = --size_ == 0 ? 0 : kDoubles ? head_ + 1 : static_cast<uint32_t>(Place(1));
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
    if constexpr (kHolds) {
      while (!empty()) PopFront();
    }
    head_ = size_ = 0;
  }

  friend bool operator==(const RingSlots& a, const RingSlots& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }

 protected:
  explicit RingSlots(size_t capacity)
      : slots_(std::make_unique<T[]>(capacity)),
        capacity_(static_cast<uint32_t>(capacity)),
        mask_(capacity_ - 1) {}
  RingSlots() = default;
  ~RingSlots() = default;
  RingSlots(const RingSlots& other) : RingSlots(other.capacity_) { CopyFrom(other); }
  RingSlots& operator=(const RingSlots& other) {
    if (this == &other) return *this;
    if (capacity_ != other.capacity_) return *this = RingSlots(other);
    clear();
    CopyFrom(other);
    return *this;
  }
  // What was moved from is empty and has no slots.
  RingSlots(RingSlots&& other) noexcept
      : slots_(std::move(other.slots_)),
        capacity_(std::exchange(other.capacity_, 0)),
        mask_(std::exchange(other.mask_, 0)),
        head_(std::exchange(other.head_, 0)),
        size_(std::exchange(other.size_, 0)) {}
  RingSlots& operator=(RingSlots&& other) noexcept {
    slots_ = std::move(other.slots_);
    capacity_ = std::exchange(other.capacity_, 0);
    mask_ = std::exchange(other.mask_, 0);
    head_ = std::exchange(other.head_, 0);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  static T& Renewed(T& slot) {
    if constexpr (kHolds) return slot = T{};
    return *std::construct_at(&slot);
  }
  // A place behind the tail, for a value to be moved there.
  T& Append() { return slots_[Place(size_++)]; }
  T& Prepend() {
    head_ = kDoubles ? head_ - 1 : static_cast<uint32_t>(Place(capacity_ - 1));
    ++size_;
    return front();
  }

  [[gnu::noinline, gnu::cold]] void Grow(size_t capacity) {
    RingSlots larger(capacity);
    for (; larger.size_ < size_; ++larger.size_) {
      larger.slots_[larger.size_] = std::move((*this)[larger.size_]);
    }
    *this = std::move(larger);
  }

 private:
  size_t Place(size_t index) const {
    if constexpr (kDoubles) {
      return (head_ + static_cast<uint32_t>(index)) & mask_;
    } else {
      const size_t place = head_ + index;
      return place < capacity_ ? place : place - capacity_;
    }
  }
  void CopyFrom(const RingSlots& other) {
    for (const T& value : other) Append() = value;
  }

  static constexpr bool kHolds = !std::is_trivially_destructible_v<T>;
  std::unique_ptr<T[]> slots_;
  uint32_t capacity_ = 0;
  uint32_t mask_ = 0;
  uint32_t head_ = 0;  // kDoubles: counts on, and only the masked bits say where
  uint32_t size_ = 0;
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_RING_SLOTS_H_
