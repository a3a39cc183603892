#ifndef ESDP_IMPL_FABRIC_VERBS_MANAGER_H_
#define ESDP_IMPL_FABRIC_VERBS_MANAGER_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/fabric/types.h"
#include "impl/fabric/verbs/calls.h"

namespace esdp::fabric::verbs {

// What is kept of an event of the connection manager once it is acknowledged.
struct Told {
  rdma_cm_event_type type{};
  int status = 0;
  rdma_cm_id* id = nullptr;
  rdma_cm_id* listener = nullptr;
  uint32_t initiator_depth = 0;
  uint32_t responder_resources = 0;
  std::vector<std::byte> private_data;
};

// To whom ids of the connection manager belong: a fabric on one device.
class ManagerClient {
 public:
  virtual const ibv_context* device() const = 0;
  virtual void OnTold(const Told& told) = 0;

 protected:
  ~ManagerClient() = default;
};

// The connection manager, as the fabrics of one Context share it: the channel of its events, and
// its listeners. A listener on a wildcard hears of every device's requests, and there can be only
// one on a port: so the fabrics share it, and each is told of those through its own device.
//
//   Owns:     the channel and the listeners' ids; not the clients, which have left every listener
//             and destroyed their other ids before they end.
//   Threads:  the clients' turn, which is one.
//   Blocks:   never.
//   Units:    –
//   Errors:   Open: Unavailable without a channel, as where rdma_ucm is not loaded. Listen:
//             AlreadyExists where the port is taken, InvalidArgument for an address that is not of
//             the client's device. Else what the manager says of its own errors.
class Manager {
 public:
  explicit Manager(const Calls& calls) : calls_(calls) {}
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // The first call opens the channel.
  absl::Status Open();
  int fd() const { return channel_->fd; }

  // The next event goes to the client whose id it is of. A request goes to the one of those that
  // listen whose device it came through, and where there is none to the first. False: no event.
  bool TakeEvent();

  absl::StatusOr<rdma_cm_id*> CreateId(ManagerClient& client, rdma_port_space port_space) {
    return Create(&client, port_space);
  }

  absl::StatusOr<rdma_cm_id*> Listen(ManagerClient& client, rdma_port_space port_space,
                                     const Address& address, int backlog);
  // The last client to stop destroys the id.
  void StopListening(ManagerClient& client, rdma_cm_id* id);

 private:
  struct Listener {
    rdma_cm_id* id = nullptr;
    rdma_port_space port_space{};
    Address address;
    std::vector<ManagerClient*> clients;
  };

  absl::StatusOr<rdma_cm_id*> Create(ManagerClient* client, rdma_port_space port_space);
  absl::StatusOr<rdma_cm_id*> ListenAt(const ManagerClient& client, rdma_port_space port_space,
                                       const Address& address, int backlog);
  std::optional<Told> Next();
  ManagerClient* ListenerFor(const Told& request);
  Listener* FindShared(rdma_port_space port_space, const Address& address);

  const Calls& calls_;
  rdma_event_channel* channel_ = nullptr;
  std::list<Listener> listeners_;  // few
};

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_MANAGER_H_
