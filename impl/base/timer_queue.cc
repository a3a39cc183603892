#include "impl/base/timer_queue.h"

#include <algorithm>

namespace esdp {
namespace {

// The table of a few keys grows with the keys that ever were, a larger one only with those that
// are.
constexpr size_t kRoomMin = 32;

}  // namespace

void TimerQueue::Reserve(size_t deadlines) {
  if (deadlines <= heap_.capacity()) return;
  const size_t room = std::max({deadlines, 2 * heap_.capacity(), kRoomMin});
  heap_.reserve(room);
  place_of_.Reserve(room);
}

void TimerQueue::ShrinkTo(size_t deadlines) {
  const size_t room = std::max({deadlines, heap_.size(), kRoomMin});
  if (room >= heap_.capacity()) return;
  std::vector<Entry> smaller;
  smaller.reserve(room);
  smaller = heap_;
  place_of_.ShrinkTo(room);
  heap_.swap(smaller);
}

void TimerQueue::Set(uint64_t key, Time deadline) {
  if (deadline == kTimeInfinite) {
    Cancel(key);
    return;
  }
  if (heap_.size() == heap_.capacity()) Reserve(heap_.size() + 1);  // both grow, or neither
  const Entry entry{deadline, next_order_++, key};
  const auto found = place_of_.find(key);
  const size_t place = found == place_of_.end() ? heap_.size() : found->second;
  if (place == heap_.size()) {
    place_of_.Set(key, place);
    heap_.push_back(entry);
  } else {
    heap_[place] = entry;
  }
  SiftUp(place);
  SiftDown(place_of_.find(key)->second);
}

bool TimerQueue::Cancel(uint64_t key) {
  const auto found = place_of_.find(key);
  if (found == place_of_.end()) return false;
  RemoveAt(found->second);
  return true;
}

std::optional<TimerQueue::Due> TimerQueue::PopDue(Time now) {
  if (heap_.empty() || heap_.front().deadline > now) return std::nullopt;
  const Due due{heap_.front().key, heap_.front().deadline};
  RemoveAt(0);
  return due;
}

bool TimerQueue::Before(const Entry& a, const Entry& b) {
  return a.deadline != b.deadline ? a.deadline < b.deadline : a.order < b.order;
}

void TimerQueue::Put(size_t place, const Entry& entry) {
  heap_[place] = entry;
  place_of_.find(entry.key)->second = place;
}

void TimerQueue::SiftUp(size_t place) {
  const Entry entry = heap_[place];
  while (place > 0 && Before(entry, heap_[(place - 1) / 2])) {
    Put(place, heap_[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  Put(place, entry);
}

void TimerQueue::SiftDown(size_t place) {
  const Entry entry = heap_[place];
  while (2 * place + 1 < heap_.size()) {
    size_t child = 2 * place + 1;
    if (child + 1 < heap_.size() && Before(heap_[child + 1], heap_[child])) ++child;
    if (!Before(heap_[child], entry)) break;
    Put(place, heap_[child]);
    place = child;
  }
  Put(place, entry);
}

void TimerQueue::RemoveAt(size_t place) {
  place_of_.Erase(heap_[place].key);
  const Entry last = heap_.back();
  heap_.pop_back();
  if (place == heap_.size()) return;
  Put(place, last);
  SiftUp(place);
  SiftDown(place_of_.find(last.key)->second);
}

}  // namespace esdp
