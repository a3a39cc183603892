#include "impl/fabric/verbs/manager.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "impl/base/status.h"
#include "impl/fabric/socket_address.h"
#include "impl/fabric/verbs/held_port.h"
#include "impl/fabric/verbs/manager_error.h"

namespace esdp::fabric::verbs {

absl::Status Manager::Open() {
  if (channel_ != nullptr) return absl::OkStatus();
  rdma_event_channel* const channel = calls_.create_event_channel();
  if (channel == nullptr) {
    return MakeStatus(absl::StatusCode::kUnavailable,
                      std::string("no channel to the connection manager: ") + strerror(errno) +
                          " (is rdma_ucm loaded?)");
  }
  const int flags = fcntl(channel->fd, F_GETFL);
  if (flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    calls_.destroy_event_channel(channel);
    return absl::UnavailableError("the connection manager's descriptor cannot be polled");
  }
  channel_ = channel;
  return absl::OkStatus();
}

Manager::~Manager() {
  if (channel_ != nullptr) calls_.destroy_event_channel(channel_);
}

// --- ids ---

absl::StatusOr<rdma_cm_id*> Manager::Create(ManagerClient* client, rdma_port_space port_space) {
  rdma_cm_id* id = nullptr;
  if (calls_.create_id(channel_, &id, client, port_space) != 0) {
    return ManagerError("no id of the connection manager");
  }
  return id;
}

Manager::Listener* Manager::FindShared(rdma_port_space port_space, const Address& address) {
  if (!IsWildcard(address) || address.port == 0) return nullptr;
  const auto found = std::find_if(listeners_.begin(), listeners_.end(), [&](const Listener& each) {
    return each.port_space == port_space && each.address == address;
  });
  return found == listeners_.end() ? nullptr : &*found;
}

absl::StatusOr<rdma_cm_id*> Manager::Listen(ManagerClient& client, rdma_port_space port_space,
                                            const Address& address, int backlog) {
  if (Listener* const shared = FindShared(port_space, address)) {
    std::vector<ManagerClient*>& clients = shared->clients;
    if (std::find(clients.begin(), clients.end(), &client) != clients.end()) {
      return MakeStatus(absl::StatusCode::kAlreadyExists,
                        "this Context listens on " + ToString(address) + " already");
    }
    clients.push_back(&client);
    return shared->id;
  }
  HeldPort held;
  ESDP_ASSIGN_OR_RETURN(
      rdma_cm_id* const id,
      BindToFreePort(address, *client.device()->device, held,
                     [&](const Address& at) { return ListenAt(client, port_space, at, backlog); }));
  listeners_.push_back({id, port_space, FromSystem(rdma_get_local_addr(id)), {&client}});
  return id;
}

absl::StatusOr<rdma_cm_id*> Manager::ListenAt(const ManagerClient& client,
                                              rdma_port_space port_space, const Address& address,
                                              int backlog) {
  ESDP_ASSIGN_OR_RETURN(rdma_cm_id* const id, Create(nullptr, port_space));
  SocketAddress system = ToSystem(address);
  absl::Status status;
  if (calls_.bind_address(id, system.pointer()) != 0) {
    status = BindError("cannot listen on " + ToString(address), address);
  } else if (!IsWildcard(address) && id->verbs != client.device()) {
    // The manager would listen on other devices of the system.
    status = MakeStatus(absl::StatusCode::kInvalidArgument,
                        ToString(address) + " is no address of " + client.device()->device->name);
  } else if (calls_.listen(id, backlog) != 0) {
    status = ManagerError("cannot listen on " + ToString(address));
  }
  if (status.ok()) return id;
  calls_.destroy_id(id);
  return status;
}

void Manager::StopListening(ManagerClient& client, rdma_cm_id* id) {
  const auto found = std::find_if(listeners_.begin(), listeners_.end(),
                                  [id](const Listener& each) { return each.id == id; });
  if (found == listeners_.end()) return;
  std::erase(found->clients, &client);
  if (!found->clients.empty()) return;
  calls_.destroy_id(id);
  listeners_.erase(found);
}

// --- events ---

std::optional<Told> Manager::Next() {
  rdma_cm_event* event = nullptr;
  if (calls_.get_cm_event(channel_, &event) != 0) return std::nullopt;
  Told told;
  told.type = event->event;
  told.status = event->status;
  told.id = event->id;
  told.listener = event->listen_id;
  const bool has_data = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ||
                        event->event == RDMA_CM_EVENT_ESTABLISHED ||
                        event->event == RDMA_CM_EVENT_REJECTED;
  if (has_data) {
    const rdma_conn_param& parameters = event->param.conn;
    told.initiator_depth = parameters.initiator_depth;
    told.responder_resources = parameters.responder_resources;
    const auto* data = static_cast<const std::byte*>(parameters.private_data);
    if (data != nullptr) told.private_data.assign(data, data + parameters.private_data_len);
  }
  calls_.ack_cm_event(event);
  return told;
}

ManagerClient* Manager::ListenerFor(const Told& request) {
  for (const Listener& listener : listeners_) {
    if (listener.id != request.listener) continue;
    const auto its =
        std::find_if(listener.clients.begin(), listener.clients.end(),
                     [&](const auto* each) { return each->device() == request.id->verbs; });
    return its == listener.clients.end() ? listener.clients.front() : *its;
  }
  return nullptr;
}

bool Manager::TakeEvent() {
  const std::optional<Told> told = Next();
  if (!told) return false;
  ManagerClient* client = static_cast<ManagerClient*>(told->id->context);
  if (told->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
    client = ListenerFor(*told);
    if (client == nullptr) {  // nobody listens any more
      calls_.reject(told->id, nullptr, 0);
      calls_.destroy_id(told->id);
      return true;
    }
    told->id->context = client;  // what is told of it later is the same one's
  }
  if (client != nullptr) client->OnTold(*told);  // of a listener itself there is nothing to hear
  return true;
}

}  // namespace esdp::fabric::verbs
