#ifndef ESDP_IMPL_FABRIC_SOFT_QUEUE_PAIRS_H_
#define ESDP_IMPL_FABRIC_SOFT_QUEUE_PAIRS_H_

#include "impl/fabric/types.h"

namespace esdp::fabric::soft {

// Finds the queue pair that a connection attempt is for; null for one that is gone.
template <typename QueuePair>
class QueuePairs {
 public:
  virtual QueuePair* Find(QueuePairId id) = 0;

 protected:
  ~QueuePairs() = default;
};

}  // namespace esdp::fabric::soft

#endif  // ESDP_IMPL_FABRIC_SOFT_QUEUE_PAIRS_H_
