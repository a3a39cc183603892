#ifndef ESDP_IMPL_EXS_WAITERS_H_
#define ESDP_IMPL_EXS_WAITERS_H_

#include <memory>
#include <mutex>
#include <vector>

#include "impl/exs/queue.h"

namespace esdp::exs {

// The queues that calls of libc wait in: as many as have waited at a time.
//
//   Owns:     those that nobody waits in.
//   Threads:  any.
//   Blocks:   never.
//   Units:    -
//   Errors:   null: none could be made.
class Waiters {
 public:
  // From one call until its end.
  class Place {
   public:
    explicit Place(Library& library);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    Queue* queue() const { return queue_.get(); }

   private:
    Waiters& waiters_;
    std::shared_ptr<Queue> queue_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Queue>> free_;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_WAITERS_H_
