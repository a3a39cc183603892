#include "impl/fabric/sim/rendezvous.h"

#include <algorithm>
#include <utility>

namespace esdp::fabric::sim {

absl::StatusOr<ListenerId> Rendezvous::Listen(const Address& address) {
  const ListenerId listener{around_.world.NextNumber()};
  absl::StatusOr<Address> entered = around_.world.addresses().Enter(address, this, listener);
  if (!entered.ok()) return entered.status();
  listeners_[listener] = *entered;
  return listener;
}

absl::StatusOr<Address> Rendezvous::AddressOf(ListenerId listener) const {
  const auto found = listeners_.find(listener);
  if (found == listeners_.end()) return absl::NotFoundError("no listener has this handle");
  return found->second;
}

absl::Status Rendezvous::Stop(ListenerId listener) {
  if (listeners_.erase(listener) == 0) return absl::NotFoundError("no listener has this handle");
  around_.world.addresses().Remove(this, listener);
  around_.outbox.ForgetListener(listener);
  for (auto request = requests_.begin(); request != requests_.end();) {
    if (request->second.listener != listener) {
      ++request;
      continue;
    }
    Reject(*request->second.handshake, {});
    request = requests_.erase(request);
  }
  return absl::OkStatus();
}

void Rendezvous::StopAll() {
  while (!listeners_.empty()) static_cast<void>(Stop(listeners_.begin()->first));
}

absl::StatusOr<std::shared_ptr<Handshake>> Rendezvous::TakeRequest(RequestId request) {
  auto node = requests_.extract(request);
  if (node.empty()) return absl::NotFoundError("no request with this handle waits for an answer");
  around_.outbox.ForgetRequest(request);
  return std::move(node.mapped().handshake);
}

void Rendezvous::Reject(const Handshake& handshake, ConstBytes private_data) {
  Answer answer{.cause = Cause::kRejected};
  answer.private_data.assign(private_data.begin(), private_data.end());
  World& world = around_.world;
  world.Schedule(world.Now() + world.DrawTransit(private_data.size()),
                 [initiator = handshake.initiator, answer = std::move(answer)] {
                   if (const auto queue_pair = initiator.lock()) queue_pair->OnAnswer(answer);
                 });
}

void Rendezvous::OnRequest(ListenerId listener, const std::shared_ptr<Handshake>& handshake) {
  const RequestId request{++last_request_};
  handshake->owner = weak_from_this();
  requests_[request] = {listener, handshake};

  RendezvousEvent event;
  event.type = RendezvousType::kConnectRequest;
  event.listener = listener;
  event.request = request;
  event.local = handshake->listener_address;
  event.peer = handshake->initiator_address;
  event.initiator_depth = handshake->responder_resources;  // our reads are what the peer answers
  event.responder_resources = handshake->initiator_depth;
  SetPrivateData(event, handshake->private_data);
  around_.outbox.Tell(event);
}

void Rendezvous::OnWithdrawn(const std::shared_ptr<Handshake>& handshake) {
  const auto found = std::find_if(requests_.begin(), requests_.end(), [&](const auto& request) {
    return request.second.handshake == handshake;
  });
  if (found == requests_.end()) return;
  around_.outbox.ForgetRequest(found->first);
  requests_.erase(found);
}

}  // namespace esdp::fabric::sim
