#ifndef ESDP_IMPL_EXS_INNER_QUEUE_H_
#define ESDP_IMPL_EXS_INNER_QUEUE_H_

#include <atomic>
#include <memory>
#include <mutex>

#include "impl/exs/queue.h"

namespace esdp::exs {

// What an operation of the InnerQueue ends at: its application's handle is this.
class InnerEnd {
 public:
  InnerEnd() = default;
  virtual ~InnerEnd() = default;
  InnerEnd(const InnerEnd&) = delete;
  InnerEnd& operator=(const InnerEnd&) = delete;
  virtual void OnEnd(const exs_event_t& event) = 0;
};

// Of what nobody hears of.
class Unheard final : public InnerEnd {
 public:
  void OnEnd(const exs_event_t& /*event*/) override {}
};

// The queue of operations that calls of libc have begun and do not wait for: what send(2) took. Who
// comes by takes the events; only while somebody has an interest in them the helper does.
//
//   Owns:     its queue.
//   Threads:  any. OnEnd is called on any, without a lock.
//   Blocks:   never.
//   Units:    -
//   Errors:   null: none could be made.
class InnerQueue {
 public:
  explicit InnerQueue(Library& library) : library_(library) {}

  // Made at the first call.
  std::shared_ptr<Queue> queue();
  void Collect();
  void BeginInterest();
  void EndInterest() { interests_.fetch_sub(1); }
  InnerEnd& unheard() { return unheard_; }

 private:
  void Watch();

  Library& library_;
  std::atomic<int> interests_{0};
  std::mutex mutex_;
  std::shared_ptr<Queue> queue_;
  bool watched_ = false;
  Unheard unheard_;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_INNER_QUEUE_H_
