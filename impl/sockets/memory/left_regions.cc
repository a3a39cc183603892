#include "impl/sockets/memory/left_regions.h"

#include <new>
#include <utility>

#include "impl/sockets/context/context_call.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/in_observer_call.h"

namespace esdp::sockets {

void LeftRegions::Add(ContextState& context, Left left) {
  if (!InObserverCall::HeldByThisThread()) {
    Reap(context);
    return Deregister(context, left);
  }
  try {
    const std::lock_guard lock(mutex_);
    left_.push_back(std::move(left));
    any_.store(true, std::memory_order_release);
  } catch (const std::bad_alloc&) {
    // It stays registered, so that its memory must stay too.
    (void)left.owned.release();
  }
}

void LeftRegions::Reap(ContextState& context) {
  if (!any_.load(std::memory_order_acquire)) return;
  std::vector<Left> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(left_);
    any_.store(false, std::memory_order_release);
  }
  for (Left& left : all) Deregister(context, left);
}

void LeftRegions::Deregister(ContextState& context, Left& left) {
  const ContextCall call(&context);
  if (!call.ok() || !context.shard().Deregister(*left.memory).ok()) return;
  spare_memory_.Give(std::move(left.owned));
}

}  // namespace esdp::sockets
