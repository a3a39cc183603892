#ifndef ESDP_IMPL_FABRIC_VERBS_RENDEZVOUS_H_
#define ESDP_IMPL_FABRIC_VERBS_RENDEZVOUS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/bytes.h"
#include "impl/base/handle_table.h"
#include "impl/base/time.h"
#include "impl/fabric/types.h"
#include "impl/fabric/verbs/commons.h"
#include "impl/fabric/verbs/queue_pair.h"

namespace esdp::fabric::verbs {

// Finds the queue pair that a connection attempt is for.
class QueuePairs {
 public:
  virtual QueuePair* Find(QueuePairId id) = 0;
  // The queue pair has its number on the device from now on.
  virtual void OnAdopted(QueuePair& queue_pair, QueuePairId id) = 0;

 protected:
  ~QueuePairs() = default;
};

// Listens, connects, accepts and rejects, through librdmacm.
//
//   Owns:     listeners' and requests' ids, and those of attempts until a queue pair adopts them.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    –
//   Errors:   those of the port.
class Rendezvous {
 public:
  Rendezvous(Commons& commons, QueuePairs& queue_pairs, rdma_port_space port_space)
      : commons_(commons), queue_pairs_(queue_pairs), port_space_(port_space) {}
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  absl::Status Open();
  int fd() const { return channel_->fd; }

  absl::StatusOr<ListenerId> Listen(const Address& address, int backlog);
  absl::StatusOr<Address> ListenerAddress(ListenerId id) const;
  absl::Status StopListening(ListenerId id);

  absl::StatusOr<Address> Reserve(QueuePairId id, const Address& local);
  absl::Status Connect(QueuePairId id, const Address& local, const Address& peer,
                       ConstBytes private_data, Time deadline);
  absl::Status Accept(RequestId id, QueuePairId queue_pair, ConstBytes private_data);
  absl::Status Reject(RequestId id, ConstBytes private_data);
  // Gives up the queue pair's attempt, if there is one, before it is destroyed.
  void GiveUp(QueuePairId id);

  // The next event of the connection manager; false when there is none. `before` is called before
  // what it says is believed: the device may have told more of the same end.
  template <typename Before>
  bool OnEvent(Before before) {
    const std::optional<Told> told = Next();
    if (!told) return false;
    before();
    Believe(*told);
    return true;
  }
  // Not after the first deadline of an attempt; one that is over may still count.
  Time next_deadline() const { return next_deadline_; }
  void OnDeadlines(Time now);

 private:
  enum class Kind : uint8_t { kListener, kRequest, kQueuePair, kKept };
  struct Owner {
    Kind kind = Kind::kListener;
    uint64_t handle = 0;
  };
  struct Listener {
    rdma_cm_id* id = nullptr;
  };
  struct Request {
    ListenerId listener = ListenerId::kNone;
    rdma_cm_id* id = nullptr;
    uint32_t initiator_depth = 0;
    uint32_t responder_resources = 0;
  };
  // A connection attempt of ours, or an accepted one that is not established yet.
  struct Attempt {
    rdma_cm_id* id = nullptr;
    bool adopted = false;
    bool accepts = false;
    bool asked = false;  // the peer's answer is on its way
    Time deadline = kTimeInfinite;
    uint32_t initiator_depth = 0;
    uint32_t responder_resources = 0;
    std::vector<std::byte> private_data;
  };
  // siw blocks whoever takes away a connection that the peer has not answered, for up to 5 s. So on
  // iWARP such a one is kept, without its queue pair, until the manager has something to say of it.
  bool IsKept(const Attempt& attempt) const {
    return attempt.asked && !attempt.accepts && commons_.device->is_iwarp();
  }
  void Keep(QueuePair& queue_pair, rdma_cm_id* id);
  // What is kept of an event once it is acknowledged.
  struct Told {
    rdma_cm_event_type type{};
    int status = 0;
    rdma_cm_id* id = nullptr;
    rdma_cm_id* listener = nullptr;
    uint32_t initiator_depth = 0;
    uint32_t responder_resources = 0;
    std::vector<std::byte> private_data;
  };

  std::optional<Told> Next();
  void Believe(const Told& told);
  void OnRequest(const Told& told);
  void OnAttempt(QueuePairId id, const Told& told);
  void OnAddress(QueuePairId id, Attempt& attempt);
  void OnRoute(QueuePairId id, Attempt& attempt);
  void OnEstablished(QueuePairId id, Attempt& attempt, const Told& told);
  void Fail(QueuePairId id, Cause cause, std::string detail, ConstBytes private_data);
  void Discard(rdma_cm_id* id);
  void DiscardKept(rdma_cm_id* id);
  int Milliseconds(Time deadline) const;
  void Add(QueuePairId id, const Attempt& attempt);

  Commons& commons_;
  QueuePairs& queue_pairs_;
  const rdma_port_space port_space_;
  rdma_event_channel* channel_ = nullptr;
  HandleTable<Listener> listeners_;
  HandleTable<Request> requests_;
  absl::flat_hash_map<QueuePairId, rdma_cm_id*> reserved_;  // bound, for a Connect to come
  absl::flat_hash_map<QueuePairId, Attempt> attempts_;
  absl::flat_hash_map<rdma_cm_id*, QueuePair::Left> kept_;
  Time next_deadline_ = kTimeInfinite;
  absl::flat_hash_map<rdma_cm_id*, Owner> owners_;
};

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_RENDEZVOUS_H_
