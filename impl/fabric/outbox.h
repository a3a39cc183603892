#ifndef ESDP_IMPL_FABRIC_OUTBOX_H_
#define ESDP_IMPL_FABRIC_OUTBOX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <utility>

#include "impl/base/ring.h"
#include "impl/fabric/types.h"

namespace esdp::fabric {

// What waits to be polled: completions and rendezvous events. An event stands behind the
// completions that were there before it, so that kDisconnected is the last thing heard of a queue
// pair.
class Outbox {
 public:
  // One more queue pair: room for the completions of so much posted work, so that it never grows
  // while work goes on, and for the event that tells of its end, which must not be lost.
  void ReserveMore(size_t completions) {
    const size_t needed = reserved_ + completions;
    if (needed > completions_.capacity()) {
      completions_.Reserve(std::max(needed, 2 * completions_.capacity()));
    }
    spare_.emplace_back();
    reserved_ = needed;
    ++queue_pairs_;
  }
  // The same, for a queue pair that is there already.
  void ReserveAlso(size_t completions) {
    reserved_ += completions;
    if (reserved_ > completions_.capacity()) {
      completions_.Reserve(std::max(reserved_, 2 * completions_.capacity()));
    }
  }
  void ReserveLess(size_t completions) {
    reserved_ -= completions;
    --queue_pairs_;
    if (completions_.capacity() > kFew && completions_.capacity() / 4 > reserved_) {
      completions_.ShrinkTo(std::max(2 * reserved_, kFew));
    }
    if (!spare_.empty()) spare_.pop_back();
  }

  bool HasCompletions() const { return !completions_.empty(); }
  void PushBack(const Completion& completion) {
    completions_.PushBack(completion);
    ++pushed_;
  }
  Completion TakeCompletion() {
    ++taken_;
    return completions_.TakeFront();
  }

  bool HasEvents() const { return !events_.empty(); }
  void PushBack(RendezvousEvent event) {
    if (spare_.empty()) spare_.emplace_back();
    spare_.back() = {pushed_, std::move(event)};
    events_.splice(events_.end(), spare_, std::prev(spare_.end()));
  }
  // False when there is none, or when completions have to be polled before it.
  bool TakeEvent(RendezvousEvent& event) {
    if (events_.empty() || events_.front().after > taken_) return false;
    event = std::move(events_.front().event);
    spare_.splice(spare_.end(), events_, events_.begin());
    if (spare_.size() > queue_pairs_) spare_.pop_back();
    return true;
  }
  template <typename Predicate>
  void EraseEventsIf(Predicate predicate) {
    std::erase_if(events_, [&](const Waiting& waiting) { return predicate(waiting.event); });
  }

 private:
  static constexpr size_t kFew = 1024;

  struct Waiting {
    uint64_t after = 0;  // completions to be polled first
    RendezvousEvent event;
  };

  GrowingRing<Completion> completions_;
  std::list<Waiting> events_;
  std::list<Waiting> spare_;  // at least one for each queue pair whose end has not been pushed
  size_t reserved_ = 0;
  size_t queue_pairs_ = 0;
  uint64_t pushed_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace esdp::fabric

#endif  // ESDP_IMPL_FABRIC_OUTBOX_H_
