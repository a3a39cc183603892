#ifndef ESDP_IMPL_PROVIDER_SESSION_CONNECTIONS_H_
#define ESDP_IMPL_PROVIDER_SESSION_CONNECTIONS_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "impl/base/handle_table.h"
#include "impl/base/pooled_map.h"
#include "impl/base/spare_mappings.h"
#include "impl/provider/session/session.h"
#include "impl/provider/types.h"

namespace esdp::provider {

// The connections of a shard by the names that others have for them.
//
//   Owns:     the sessions; also the removed, until the fabric lets go of their memory.
//   Threads:  the holder of the shard lock.
//   Blocks:   never.
//   Units:    –
//   Errors:   unknown names give nullptr.
class Connections {
 public:
  // So many may follow their peers at once, and so many that have ended leave what they used.
  Connections(uint32_t moving_max, uint32_t spare_max)
      : spare_mappings_(std::min<size_t>(spare_max, kSpareMappingsMax), kSpareBytesMax),
        moving_max_(moving_max) {}

  // All the memory that the next one takes, from Add to FreeReleased.
  void ReserveOne(uint8_t place) {
    by_id_.ReserveOne();
    const size_t most = removed_.size() + by_id_.size() + 1;
    if (most > removed_.capacity()) removed_.reserve(2 * most);
    Names& names = NamesAt(place);
    names.Reserve(names.size() + 1);
  }

  // What those that have ended leave for the next ones.
  SpareMappings& spare_mappings() { return spare_mappings_; }
  // Gives back what ReserveOne took for connections that are gone, and what those have left.
  void Shrink() {
    spare_mappings_.Clear();
    for (Names& names : by_queue_pair_) names.ShrinkTo(names.size());
  }

  // Gives the session its id. nullptr at 2^32 connections.
  Session* Add(std::unique_ptr<Session> session) {
    Session* added = session.get();
    const uint64_t handle = by_id_.Insert(std::move(session));
    if (handle == kNoHandle) return nullptr;
    added->id = ConnectionId{handle};
    NamesAt(added->transport.place())
        .Set(static_cast<uint64_t>(added->transport.queue_pair()), added);
    return added;
  }

  // Puts another session in the place of this one, which lives on until FreeReleased. The name
  // stays.
  Session* Replace(Session& session, std::unique_ptr<Session> next) {
    Session* added = next.get();
    added->id = session.id;
    session.transport.Note(QueuePairCue::kClosed);
    TakeName(session);
    NamesAt(added->transport.place())
        .Set(static_cast<uint64_t>(added->transport.queue_pair()), added);
    removed_.push_back(std::exchange(*by_id_.Find(static_cast<uint64_t>(added->id)), nullptr));
    *by_id_.Find(static_cast<uint64_t>(added->id)) = std::move(next);
    return added;
  }

  Session* Find(ConnectionId id) {
    const std::unique_ptr<Session>* found = by_id_.Find(static_cast<uint64_t>(id));
    return found == nullptr ? nullptr : found->get();
  }

  // `place` is the fabric's.
  Session* Find(uint8_t place, fabric::QueuePairId queue_pair) {
    // They come in runs.
    if (last_ != nullptr && last_->transport.queue_pair() == queue_pair &&
        last_->transport.place() == place)
      return last_;
    const Names& names = NamesAt(place);
    const auto found = names.find(static_cast<uint64_t>(queue_pair));
    if (found == names.end()) return nullptr;
    return last_ = found->second;
  }

  // The fabric at this place has connections, or memory of some that have gone.
  bool Uses(uint8_t place) {
    return !NamesAt(place).empty() || !farewells_.empty() ||
           std::any_of(removed_.begin(), removed_.end(), [place](const auto& session) {
             return session->transport.place() == place;
           });
  }

  // The connection that waits for its peer at this listener. Few ever do.
  Session* FindReturning(uint8_t place, fabric::ListenerId listener) {
    Session* returning = nullptr;
    ForEach([&](Session& session) {
      const auto& listeners = session.return_listeners;
      if (place < listeners.size() && listeners[place] == listener) returning = &session;
    });
    return returning;
  }

  // The session follows its peer to another queue pair, perhaps by another way than it has tried.
  // False: too many do already.
  bool BeginMove(Session& session) {
    if (session.follows) return true;
    if (moving_ >= moving_max_) return false;
    session.follows = true;
    ++moving_;
    return true;
  }
  void EndMove(Session& session) {
    if (std::exchange(session.follows, false)) --moving_;
  }
  // One of these comes from there, which is where it was told to go.
  bool Follows(const Address& from, uint16_t named_port) {
    bool found = false;
    if (moving_ == 0) return found;
    ForEach([&](const Session& session) {
      found |=
          session.follows && session.local.bytes == from.bytes && session.local.port == named_port;
    });
    return found;
  }

  // The session has another queue pair than this one, of the fabric at `place`.
  void Rename(Session& session, uint8_t place, fabric::QueuePairId before) {
    if (last_ == &session) last_ = nullptr;
    NamesAt(place).Erase(static_cast<uint64_t>(before));
    const fabric::QueuePairId now = session.transport.queue_pair();
    Names& names = NamesAt(session.transport.place());
    if (now != fabric::QueuePairId::kNone) names.Set(static_cast<uint64_t>(now), &session);
  }

  // Queue pairs that no connection has: see sdp::Farewell.
  void AddFarewell(uint8_t place, fabric::QueuePairId queue_pair) {
    farewells_.emplace_back(place, queue_pair);
  }
  // False: it is none of these.
  bool TakeFarewell(uint8_t place, fabric::QueuePairId queue_pair) {
    return std::erase(farewells_, std::pair(place, queue_pair)) > 0;
  }

  // Takes the session's names away; it lives on until FreeReleased.
  void Remove(Session& session) {
    TakeName(session);
    const uint64_t handle = static_cast<uint64_t>(session.id);
    removed_.push_back(std::move(*by_id_.Find(handle)));
    by_id_.Erase(handle);
  }

  // Of the removed, those whose memory the fabric has let go.
  void FreeReleased() {
    std::erase_if(removed_, [&](const std::unique_ptr<Session>& session) {
      return session->transport.Release().code() != absl::StatusCode::kFailedPrecondition;
    });
  }
  bool all_freed() const { return removed_.empty(); }
  bool empty() const { return by_id_.empty() && farewells_.empty(); }
  size_t size() const { return by_id_.size(); }

  template <typename Visit>
  void ForEach(Visit visit) {
    by_id_.ForEach([&](uint64_t, std::unique_ptr<Session>& session) { visit(*session); });
  }

 private:
  static constexpr size_t kSpareMappingsMax = 4, kSpareBytesMax = size_t{2} << 20;
  using Names = PooledMap<uint64_t, Session*>;  // queue pairs of one fabric

  Names& NamesAt(uint8_t place) {
    if (place >= by_queue_pair_.size()) by_queue_pair_.resize(place + 1u);
    return by_queue_pair_[place];
  }

  void TakeName(Session& session) {
    if (last_ == &session) last_ = nullptr;
    Move(session.visibility, VisibilityCue::kRemoved);
    NamesAt(session.transport.place()).Erase(static_cast<uint64_t>(session.transport.queue_pair()));
  }

  SpareMappings spare_mappings_;  // outlives the sessions
  HandleTable<std::unique_ptr<Session>> by_id_;
  std::vector<Names> by_queue_pair_;  // by the place of the fabric
  Session* last_ = nullptr;
  std::vector<std::unique_ptr<Session>> removed_;
  std::vector<std::pair<uint8_t, fabric::QueuePairId>> farewells_;  // few, if any
  const uint32_t moving_max_;
  uint32_t moving_ = 0;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SESSION_CONNECTIONS_H_
