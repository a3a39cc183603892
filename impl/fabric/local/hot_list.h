#ifndef ESDP_IMPL_FABRIC_LOCAL_HOT_LIST_H_
#define ESDP_IMPL_FABRIC_LOCAL_HOT_LIST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "impl/fabric/types.h"

namespace esdp::fabric::local {

// The queue pairs that moved lately: their blocks are looked at in every Poll. All others have told
// their peers to wake them.
//
//   Owns:     nothing.
//   Threads:  not thread-safe.
//   Blocks:   never; allocates only when there are more of them than ever before.
//   Units:    –
//   Errors:   –
class HotList {
 public:
  bool empty() const { return pairs_.empty(); }
  size_t size() const { return pairs_.size(); }

  void Add(QueuePairId id) {
    const auto is_it = [id](const Pair& pair) { return pair.id == id; };
    if (std::any_of(pairs_.begin(), pairs_.end(), is_it)) return;
    pairs_.push_back({id, 0});
  }

  void Forget(QueuePairId id) {
    std::erase_if(pairs_, [id](const Pair& pair) { return pair.id == id; });
  }

  // Calls visit(id) for each; what it answers says whether the queue pair has moved. It must not
  // add or forget.
  template <typename Visitor>
  void Visit(Visitor visit) {
    for (Pair& pair : pairs_) pair.idle = visit(pair.id) ? 0 : pair.idle + 1;
  }

  // Calls leaves(id, idle) for each, with the number of visits since it moved last; forgets those
  // for which it is true.
  template <typename Leaves>
  void ForgetIf(Leaves leaves) {
    std::erase_if(pairs_, [&](const Pair& pair) { return leaves(pair.id, pair.idle); });
  }

 private:
  struct Pair {
    QueuePairId id = QueuePairId::kNone;
    uint32_t idle = 0;
  };

  std::vector<Pair> pairs_;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_HOT_LIST_H_
