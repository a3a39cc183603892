#ifndef ESDP_IMPL_SOCKETS_SHARD_TURN_H_
#define ESDP_IMPL_SOCKETS_SHARD_TURN_H_

namespace esdp::sockets {

// Marks that this thread is inside a call of the shard's observer and so has its turn: it must not
// wait for it again.
class ShardTurn {
 public:
  ShardTurn() : outer_(held_) { held_ = true; }
  ~ShardTurn() { held_ = outer_; }
  ShardTurn(const ShardTurn&) = delete;
  ShardTurn& operator=(const ShardTurn&) = delete;

  static bool HeldByThisThread() { return held_; }

 private:
  const bool outer_;
  inline static thread_local bool held_ = false;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_SHARD_TURN_H_
