#include <atomic>
#include <memory>

#include "impl/switch/engine/acquaintances.h"
#include "impl/switch/engine/direct_stream.h"
#include "impl/switch/engine/engine.h"
#include "impl/switch/engine/relay.h"
#include "impl/switch/engine/status_table.h"

// What a process has one of. Never destroyed. A child of fork has its own, since a thread of the
// parent may have held a lock.

namespace esdp::switching {
namespace {

std::atomic<Engine*> current{nullptr};
std::atomic<StatusTable*> status{new StatusTable};
std::atomic<DirectStreams*> directs{new DirectStreams};

}  // namespace

Engine& Engine::Current() {
  Engine* known = current.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  // Without a lock, which a fork at this moment would leave to nobody. It has no thread yet.
  std::unique_ptr<Engine> fresh(new Engine);
  if (current.compare_exchange_strong(known, fresh.get())) known = fresh.release();
  return *known;
}

bool Engine::Exists() { return current.load(std::memory_order_acquire) != nullptr; }

StatusTable& Status() { return *status.load(std::memory_order_relaxed); }

DirectStreams& Directs() { return *directs.load(std::memory_order_relaxed); }

void Engine::AbandonParents() {
  current.store(nullptr);
  status.store(new StatusTable);
  ForgetPeers();
  directs.store(new DirectStreams);
}

}  // namespace esdp::switching
