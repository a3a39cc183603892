#ifndef ESDP_IMPL_PROVIDER_CONNECTIONS_H_
#define ESDP_IMPL_PROVIDER_CONNECTIONS_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "impl/base/handle_table.h"
#include "impl/base/ring.h"
#include "impl/provider/endpoint.h"
#include "impl/provider/types.h"

namespace esdp::provider {

// What is left of a connection, for requests that come late.
struct Epitaph {
  ConnectionId id = ConnectionId::kNone;
  Failure failure;
  ConnectionCounters counters;
};

// The connections of a shard by the names that others have for them.
//
//   Owns:     the endpoints, also those that were taken out until the fabric lets go of their
//   memory. Threads:  the holder of the turn. Blocks:   never. Units:    – Errors:   unknown names
//   give nullptr. The last kEpitaphs ended connections are remembered.
class Connections {
 public:
  static constexpr size_t kEpitaphs = 64;

  // Gives the endpoint its id. nullptr at 2^32 connections.
  Endpoint* Add(std::unique_ptr<Endpoint> endpoint) {
    Endpoint* added = endpoint.get();
    const uint64_t handle = by_id_.Insert(std::move(endpoint));
    if (handle == kNoHandle) return nullptr;
    added->id = ConnectionId{handle};
    by_queue_pair_[static_cast<uint64_t>(added->queue_pair)] = added;
    return added;
  }

  Endpoint* Find(ConnectionId id) {
    const std::unique_ptr<Endpoint>* found = by_id_.Find(static_cast<uint64_t>(id));
    return found == nullptr ? nullptr : found->get();
  }

  Endpoint* Find(fabric::QueuePairId queue_pair) {
    if (last_ != nullptr && last_->queue_pair == queue_pair) return last_;  // they come in runs
    const auto found = by_queue_pair_.find(static_cast<uint64_t>(queue_pair));
    if (found == by_queue_pair_.end()) return nullptr;
    return last_ = found->second;
  }

  // The connection that waits for its peer at this listener. Few ever do.
  Endpoint* FindReturning(fabric::ListenerId listener) {
    Endpoint* returning = nullptr;
    ForEach([&](Endpoint& endpoint) {
      if (endpoint.return_listener == listener) returning = &endpoint;
    });
    return returning;
  }

  // The endpoint has another queue pair.
  void Rename(Endpoint& endpoint, fabric::QueuePairId queue_pair) {
    if (last_ == &endpoint) last_ = nullptr;
    by_queue_pair_.erase(static_cast<uint64_t>(endpoint.queue_pair));
    endpoint.queue_pair = queue_pair;
    if (queue_pair != fabric::QueuePairId::kNone) {
      by_queue_pair_[static_cast<uint64_t>(queue_pair)] = &endpoint;
    }
  }

  const Epitaph* FindEnded(ConnectionId id) const {
    for (const Epitaph& epitaph : ended_) {
      if (epitaph.id == id) return &epitaph;
    }
    return nullptr;
  }

  // Takes the endpoint's names away; it lives on until Bury.
  void Remove(Endpoint& endpoint, Epitaph epitaph) {
    if (ended_.full()) ended_.PopFront();
    (void)ended_.PushBack(std::move(epitaph));
    if (last_ == &endpoint) last_ = nullptr;
    by_queue_pair_.erase(static_cast<uint64_t>(endpoint.queue_pair));
    const uint64_t handle = static_cast<uint64_t>(endpoint.id);
    removed_.push_back(std::move(*by_id_.Find(handle)));
    by_id_.Erase(handle);
  }

  // Frees what was removed and whose memory the fabric has let go. True if anything is left.
  bool Bury(fabric::Fabric& fabric) {
    std::erase_if(removed_, [&](const std::unique_ptr<Endpoint>& endpoint) {
      return endpoint->pool.Close(fabric).code() != absl::StatusCode::kFailedPrecondition;
    });
    return !removed_.empty();
  }

  bool empty() const { return by_id_.empty(); }
  size_t size() const { return by_id_.size(); }

  template <typename Visit>
  void ForEach(Visit visit) {
    by_id_.ForEach([&](uint64_t, std::unique_ptr<Endpoint>& endpoint) { visit(*endpoint); });
  }

 private:
  HandleTable<std::unique_ptr<Endpoint>> by_id_;
  absl::flat_hash_map<uint64_t, Endpoint*> by_queue_pair_;
  Endpoint* last_ = nullptr;
  std::vector<std::unique_ptr<Endpoint>> removed_;
  Ring<Epitaph> ended_{kEpitaphs};
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_CONNECTIONS_H_
