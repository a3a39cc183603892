#ifndef ESDP_IMPL_FABRIC_VERBS_RENDEZVOUS_H_
#define ESDP_IMPL_FABRIC_VERBS_RENDEZVOUS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/base/bytes.h"
#include "impl/base/handle_table.h"
#include "impl/base/time.h"
#include "impl/fabric/types.h"
#include "impl/fabric/verbs/commons.h"
#include "impl/fabric/verbs/held_port.h"
#include "impl/fabric/verbs/manager.h"
#include "impl/fabric/verbs/profile.h"
#include "impl/fabric/verbs/queue_pair.h"

namespace esdp::fabric::verbs {

// What the rendezvous wants of its fabric: above all the queue pair that an attempt is for.
class QueuePairs {
 public:
  virtual QueuePair* Find(QueuePairId id) = 0;
  // The queue pair has its number on the device from now on.
  virtual void OnAdopted(QueuePair& queue_pair, QueuePairId id) = 0;
  // The connection manager has told something of this fabric's: the device may have told more of
  // the same end, and is to be heard before.
  virtual void HearTheDevice() = 0;
  // Something may wait to be polled from now on; it is not this fabric that is being polled.
  virtual void Signal() = 0;

 protected:
  ~QueuePairs() = default;
};

// Listens, connects, accepts and rejects, through librdmacm.
//
//   Owns:     requests' ids, and those of attempts until a queue pair adopts them.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    –
//   Errors:   those of the port.
class Rendezvous final : private ManagerClient {
 public:
  Rendezvous(FabricShared& commons, QueuePairs& queue_pairs, std::shared_ptr<Manager> manager,
             Profile profile)
      : commons_(commons),
        queue_pairs_(queue_pairs),
        manager_(std::move(manager)),
        profile_(profile),
        port_space_(profile == Profile::kTcp ? RDMA_PS_TCP : RDMA_PS_IB) {}
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  absl::StatusOr<ListenerId> Listen(const Address& address, int backlog);
  absl::StatusOr<Address> ListenerAddress(ListenerId id) const;
  absl::Status StopListening(ListenerId id);

  absl::StatusOr<Address> Reserve(QueuePairId id, const Address& local, const Address& peer);
  absl::Status Connect(QueuePairId id, const Address& local, const Address& peer,
                       ConstBytes private_data, Time deadline);
  absl::Status Accept(RequestId id, QueuePairId queue_pair, ConstBytes private_data);
  absl::Status Reject(RequestId id, ConstBytes private_data);
  // Gives up the queue pair's attempt, if there is one, before it is destroyed.
  void GiveUp(QueuePairId id);

  // Not after the first deadline of an attempt; one that is over may still count while there are
  // others.
  Time next_deadline() const { return attempts_.empty() ? kTimeInfinite : next_deadline_; }
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
  // Bound, for a Connect to come.
  struct Reserved {
    rdma_cm_id* id = nullptr;
    HeldPort port;
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
    HeldPort port;
    bool adopted = false;
    bool accepts = false;
    bool asked = false;  // the peer's answer is on its way
    // Profile A: the id is that of SDP's service at the peer, and has no addresses of IP.
    bool has_service = false;
    Address local;
    Address peer;
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

  const ibv_context* device() const override { return commons_.device->context(); }
  void OnTold(const Told& told) override;

  void Believe(const Told& told);
  void OnRequest(const Told& told);
  void TurnAway(const Told& told, ListenerId listener);
  void OnAttempt(QueuePairId id, const Told& told);
  void OnAddress(QueuePairId id, Attempt& attempt);
  void SeekService(QueuePairId id, Attempt& attempt);
  void OnRoute(QueuePairId id, Attempt& attempt);
  void OnEstablished(QueuePairId id, Attempt& attempt, const Told& told);
  void Fail(QueuePairId id, Cause cause, std::string detail, ConstBytes private_data);
  void Discard(rdma_cm_id* id);
  void DiscardKept(rdma_cm_id* id);
  int Milliseconds(Time deadline) const;
  void Add(QueuePairId id, Attempt attempt);
  absl::StatusOr<rdma_cm_id*> Bind(const Address& address);

  FabricShared& commons_;
  QueuePairs& queue_pairs_;
  const std::shared_ptr<Manager> manager_;
  const Profile profile_;
  const rdma_port_space port_space_;
  HandleTable<Listener> listeners_;
  HandleTable<Request> requests_;
  absl::flat_hash_map<QueuePairId, Reserved> reserved_;
  absl::flat_hash_map<QueuePairId, Attempt> attempts_;
  absl::flat_hash_map<rdma_cm_id*, QueuePair::Left> kept_;
  Time next_deadline_ = kTimeInfinite;
  absl::flat_hash_map<rdma_cm_id*, Owner> owners_;
};

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_RENDEZVOUS_H_
