#ifndef ESDP_IMPL_SOCKETS_IN_OBSERVER_CALL_H_
#define ESDP_IMPL_SOCKETS_IN_OBSERVER_CALL_H_

namespace esdp::sockets {

// Marks that this thread is inside a call of the shard's observer and so holds its lock: it must
// not wait for it again.
class InObserverCall {
 public:
  InObserverCall() : outer_(held_) { held_ = true; }
  ~InObserverCall() { held_ = outer_; }
  InObserverCall(const InObserverCall&) = delete;
  InObserverCall& operator=(const InObserverCall&) = delete;

  static bool HeldByThisThread() { return held_; }

 private:
  const bool outer_;
  inline static thread_local bool held_ = false;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_IN_OBSERVER_CALL_H_
