#include <algorithm>
#include <string>
#include <utility>

#include "impl/base/status.h"
#include "impl/provider/session/failures.h"
#include "impl/provider/setup/rendezvous.h"

// Listeners: one for the application, on the same port of each fabric that has the address.

namespace esdp::provider {
namespace {

constexpr int kPortsTried = 16;

absl::Status NoSuchListener() { return absl::NotFoundError("no such listener, or it was stopped"); }

bool ListenTogether(const fabric::Fabric& one, const fabric::Fabric& other) {
  return one.limits().of_one_device && other.limits().of_one_device;
}

// Fabrics of the family of iWARP have the ports of TCP, and speak the same.
bool SharePorts(const fabric::Fabric& one, const fabric::Fabric& other) {
  return ListenTogether(one, other) ||
         (one.limits().initiator_speaks_first && other.limits().initiator_speaks_first);
}

}  // namespace

absl::StatusOr<ListenerId> Rendezvous::Listen(const Address& address, int backlog,
                                              const ConnectionOptions& options,
                                              const std::function<void(ListenerId)>& named) {
  backlog = std::max(backlog, 1);
  ESDP_ASSIGN_OR_RETURN(const auto at, ListenOnAFreePort(address, backlog));
  const ListenerId id{listeners_.Insert({at, backlog, 0, options, false})};
  const auto places = static_cast<uint8_t>(at.size());
  for (uint8_t place = 0; place < places; ++place) {
    by_fabric_listener_[{place, static_cast<uint64_t>(at[place])}] = id;
  }
  if (named) named(id);
  return id;
}

absl::StatusOr<ListenerId> Rendezvous::ListenOver(int descriptor, const ConnectionOptions& options,
                                                  const std::function<void(ListenerId)>& named) {
  ESDP_ASSIGN_OR_RETURN(const uint8_t place, PlaceOverTcp());
  ESDP_ASSIGN_OR_RETURN(const fabric::ListenerId over, fabrics_[place]->ListenOver(descriptor));
  Listener listener;
  listener.over = true;
  listener.options = options;
  listener.at.assign(fabrics_.size(), fabric::ListenerId::kNone);
  listener.at[place] = over;
  const ListenerId id{listeners_.Insert(std::move(listener))};
  by_fabric_listener_[{place, static_cast<uint64_t>(over)}] = id;
  over_at_.resize(fabrics_.size());
  ++over_at_[place];
  if (named) named(id);
  return id;
}

void Rendezvous::OnTurnedAway(uint8_t place, const fabric::RendezvousEvent& event) {
  SayRejected(event, event.detail);
  FailureDetails details;
  details.cause = event.cause;
  details.detail = event.detail;
  FailOver(place, event,
           Explain(sdp::Outcome::kConnectFailed, "", details, event.peer, SetUp::kIncoming));
}

void Rendezvous::FailOver(uint8_t place, const fabric::RendezvousEvent& event,
                          const Failure& failure) {
  const auto known = by_fabric_listener_.find({place, static_cast<uint64_t>(event.listener)});
  if (known == by_fabric_listener_.end()) return;
  if (listeners_.Find(static_cast<uint64_t>(known->second))->over) {
    observer_.OnListenerFailed(known->second, failure);
  }
}

absl::StatusOr<std::vector<fabric::ListenerId>> Rendezvous::ListenOnAFreePort(
    const Address& address, int backlog) {
  auto at = ListenOnOnePort(address, backlog);
  for (int i = 1; i < kPortsTried && address.port == 0 && absl::IsAlreadyExists(at.status()); ++i) {
    at = ListenOnOnePort(address, backlog);
  }
  return at;
}

// An address is listened on by the device that has it, alone where it shares its ports with the
// last fabric. Else that one picks the port, and the others follow it.
absl::StatusOr<std::vector<fabric::ListenerId>> Rendezvous::ListenOnOnePort(const Address& address,
                                                                            int backlog) {
  std::vector<fabric::ListenerId> at(fabrics_.size(), fabric::ListenerId::kNone);
  fabric::Fabric& last = *fabrics_.back();
  for (size_t place = 0; place + 1 < fabrics_.size(); ++place) {
    if (!SharePorts(*fabrics_[place], last) || IsWildcard(address)) continue;
    const auto alone = fabrics_[place]->Listen(address, backlog);
    if (absl::IsAlreadyExists(alone.status())) return alone.status();
    if (!alone.ok()) continue;  // an address that is not its device's
    at[place] = *alone;
    return at;
  }
  ESDP_ASSIGN_OR_RETURN(at.back(), last.Listen(address, backlog));
  if (fabrics_.size() == 1) return at;
  const absl::Status followed = Follow(address, backlog, at);
  if (followed.ok()) return at;
  StopAt(at);
  return followed;
}

absl::Status Rendezvous::Follow(const Address& address, int backlog,
                                std::vector<fabric::ListenerId>& at) {
  Address same_port = address;
  ESDP_ASSIGN_OR_RETURN(const Address picked, fabrics_.back()->ListenerAddress(at.back()));
  same_port.port = picked.port;
  for (size_t place = 0; place + 1 < fabrics_.size(); ++place) {
    fabric::Fabric& fabric = *fabrics_[place];
    const fabric::Fabric& last = *fabrics_.back();
    const bool together = IsWildcard(address) && ListenTogether(fabric, last);
    if (SharePorts(fabric, last) && !together) continue;
    const auto listener = fabric.Listen(same_port, backlog);
    const bool is_alone = !IsWildcard(address) && !fabric.limits().of_this_host;
    // On a wildcard the port may be taken on a device of iWARP, which has those of TCP; and the
    // name of a port on this host by anybody, who is not to keep others away from us.
    if (absl::IsAlreadyExists(listener.status()) && is_alone) return listener.status();
    if (listener.ok()) {
      at[place] = *listener;
      if (is_alone) return absl::OkStatus();  // it is an address of this device alone
    } else {
      driver_.WriteLog(std::string(fabric.name()) + " does not listen on " +
                       fabric::ToString(same_port) + ": " +
                       std::string(FromAbsl(listener.status().message())));
    }
  }
  return absl::OkStatus();
}

void Rendezvous::StopAt(const std::vector<fabric::ListenerId>& at) {
  const auto places = static_cast<uint8_t>(at.size());
  for (uint8_t place = 0; place < places; ++place) {
    if (at[place] == fabric::ListenerId::kNone) continue;
    (void)fabrics_[place]->StopListening(at[place]);
    by_fabric_listener_.erase({place, static_cast<uint64_t>(at[place])});
  }
}

absl::StatusOr<Address> Rendezvous::ListenerAddress(ListenerId listener) {
  const Listener* found = listeners_.Find(static_cast<uint64_t>(listener));
  if (found == nullptr) return NoSuchListener();
  const uint8_t place = FabricOf(listener);
  return fabrics_[place]->ListenerAddress(found->at[place]);
}

uint8_t Rendezvous::FabricOf(ListenerId listener) const {
  const Listener* found = listeners_.Find(static_cast<uint64_t>(listener));
  if (found == nullptr) return 0;
  uint8_t only = 0;  // the last of those that reach this host alone, or the first other
  for (size_t place = 0; place < found->at.size(); ++place) {
    if (found->at[place] == fabric::ListenerId::kNone) continue;
    only = static_cast<uint8_t>(place);
    if (!fabrics_[place]->limits().of_this_host) break;
  }
  return only;
}

absl::Status Rendezvous::StopListening(ListenerId listener) {
  const Listener* found = listeners_.Find(static_cast<uint64_t>(listener));
  if (found == nullptr) return NoSuchListener();
  StopAt(found->at);
  for (size_t place = 0; found->over && place < over_at_.size(); ++place) {
    if (found->at[place] != fabric::ListenerId::kNone) --over_at_[place];
  }
  listeners_.Erase(static_cast<uint64_t>(listener));
  connections_.ForEach([&](Session& session) {
    if (!session.connecting && session.listener == listener &&
        session.visibility == Visibility::kUnannounced) {
      Move(session.visibility, VisibilityCue::kListenerStopped);
    }
  });
  return absl::OkStatus();
}

void Rendezvous::ReleaseBacklogSlot(Session& session) {
  if (!std::exchange(session.counted, false)) return;
  if (Listener* listener = listeners_.Find(static_cast<uint64_t>(session.listener)))
    --listener->waiting;
}

void Rendezvous::Ended(Session& session) {
  ReleaseBacklogSlot(session);
  const Listener* const listener = listeners_.Find(static_cast<uint64_t>(session.listener));
  if (listener != nullptr && listener->over && session.visibility == Visibility::kDropped) {
    observer_.OnListenerFailed(session.listener, driver_.RootCause(session, session.cause));
  }
  half_open_.Remove(std::exchange(session.half_open, kNoHandle));
  if (session.admitted) admission_.Leave(*std::exchange(session.admitted, std::nullopt));
  connections_.EndMove(session);
}

}  // namespace esdp::provider
