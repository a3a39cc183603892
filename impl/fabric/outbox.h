#ifndef ESDP_IMPL_FABRIC_OUTBOX_H_
#define ESDP_IMPL_FABRIC_OUTBOX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "impl/base/ring.h"
#include "impl/fabric/types.h"

namespace esdp::fabric {

// What waits to be polled: completions and rendezvous events. An event stands behind the
// completions that were there before it, so that kDisconnected is the last thing heard of a queue
// pair.
class Outbox {
 public:
  // Room for the completions of so much more posted work, so that it never grows while work goes
  // on.
  void ReserveMore(size_t completions) {
    reserved_ += completions;
    if (reserved_ > completions_.capacity()) {
      completions_.Reserve(std::max(reserved_, 2 * completions_.capacity()));
    }
  }
  void ReserveLess(size_t completions) { reserved_ -= completions; }

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
  void PushBack(RendezvousEvent event) { events_.push_back({pushed_, std::move(event)}); }
  // False when there is none, or when completions have to be polled before it.
  bool TakeEvent(RendezvousEvent& event) {
    if (events_.empty() || events_.front().after > taken_) return false;
    event = std::move(events_.front().event);
    events_.pop_front();
    return true;
  }
  template <typename Predicate>
  void EraseEventsIf(Predicate predicate) {
    std::erase_if(events_, [&](const Waiting& waiting) { return predicate(waiting.event); });
  }

 private:
  struct Waiting {
    uint64_t after = 0;  // completions to be polled first
    RendezvousEvent event;
  };

  GrowingRing<Completion> completions_;
  std::deque<Waiting> events_;
  size_t reserved_ = 0;
  uint64_t pushed_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace esdp::fabric

#endif  // ESDP_IMPL_FABRIC_OUTBOX_H_
