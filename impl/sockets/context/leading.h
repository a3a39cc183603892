#ifndef ESDP_IMPL_SOCKETS_CONTEXT_LEADING_H_
#define ESDP_IMPL_SOCKETS_CONTEXT_LEADING_H_

#include "impl/provider/shard.h"

namespace esdp::sockets {

// The lead of a shard, for as long as this thread may wait.
class Leading {
 public:
  explicit Leading(provider::Shard& shard) : shard_(shard), leads_(shard.TryLead()) {}
  ~Leading() {
    if (leads_) shard_.EndLead(hands_over_);
  }
  Leading(const Leading&) = delete;
  Leading& operator=(const Leading&) = delete;

  bool leads() const { return leads_; }
  // This thread goes to sleep: somebody else has to lead.
  void HandOver() { hands_over_ = true; }

 private:
  provider::Shard& shard_;
  const bool leads_;
  bool hands_over_ = false;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_CONTEXT_LEADING_H_
