#ifndef ESDP_IMPL_BASE_TIMER_QUEUE_H_
#define ESDP_IMPL_BASE_TIMER_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "impl/base/pooled_map.h"
#include "impl/base/time.h"

namespace esdp {

// Deadlines by key, at most one for each key. It reads no clock: whoever owns it says what time it
// is.
//
//   Owns:     nothing beyond its numbers.
//   Threads:  not thread-safe.
//   Blocks:   never; allocates only while there are more deadlines than ever before.
//   Units:    a key is any number the owner chooses.
//   Errors:   –
class TimerQueue {
 public:
  struct Due {
    uint64_t key;
    Time deadline;
  };

  size_t size() const { return heap_.size(); }
  bool empty() const { return heap_.empty(); }

  // Room for so many deadlines.
  void Reserve(size_t deadlines);
  // Gives back what is beyond room for so many, or for those that are there. std::bad_alloc:
  // nothing has changed.
  void ShrinkTo(size_t deadlines);

  // Sets the key's deadline, in place of the one it may have. kTimeInfinite is the same as Cancel.
  void Set(uint64_t key, Time deadline);

  // Returns whether there was a deadline.
  bool Cancel(uint64_t key);

  // The earliest deadline; kTimeInfinite when there is none.
  Time NextDeadline() const { return heap_.empty() ? kTimeInfinite : heap_.front().deadline; }

  // Takes out the earliest deadline if it is not after `now`. Equal deadlines come in the order
  // they were set.
  std::optional<Due> PopDue(Time now);

 private:
  struct Entry {
    Time deadline;
    uint64_t order;  // breaks ties, so that the same calls give the same answers
    uint64_t key;
  };

  static bool Before(const Entry& a, const Entry& b);
  void Put(size_t place, const Entry& entry);
  void SiftUp(size_t place);
  void SiftDown(size_t place);
  void RemoveAt(size_t place);

  std::vector<Entry> heap_;  // binary, the earliest first
  PooledMap<uint64_t, size_t> place_of_;
  uint64_t next_order_ = 0;
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_TIMER_QUEUE_H_
