#ifndef ESDP_IMPL_FABRIC_SIM_ADDRESS_BOOK_H_
#define ESDP_IMPL_FABRIC_SIM_ADDRESS_BOOK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::sim {

struct Handshake;

// Who is told of connection requests: the rendezvous of the fabric that listens.
class ListenerOwner {
 public:
  virtual ~ListenerOwner() = default;
  virtual void OnRequest(ListenerId listener, const std::shared_ptr<Handshake>& handshake) = 0;
  // The connecting side has given up; the request may have been answered or never have come.
  virtual void OnWithdrawn(const std::shared_ptr<Handshake>& handshake) = 0;
};

// The address space of a world: every fabric listens and connects in the same one, at any address.
// An address of zero bytes stands for all addresses of its family.
class AddressBook {
 public:
  struct Entry {
    Address address;
    ListenerOwner* owner = nullptr;
    ListenerId listener = ListenerId::kNone;
  };

  // Enters a listener; port 0 picks a free one. Returns the address with its port. AlreadyExists
  // when it is taken, ResourceExhausted when no port is free.
  absl::StatusOr<Address> Enter(const Address& address, ListenerOwner* owner, ListenerId listener);
  void Remove(const ListenerOwner* owner, ListenerId listener);
  // Who listens there: an exact address goes before a wildcard. Null when nobody does.
  const Entry* Find(const Address& address) const;

  // A port for the connecting side, different for each of many connections one after the other.
  uint16_t NextPort();

 private:
  bool Taken(const Address& address) const;

  std::vector<Entry> entries_;  // in order of entry: the order of search is the order of calls
  uint16_t last_port_ = 49151;  // the dynamic ports of RFC 6335 begin behind it
};

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_ADDRESS_BOOK_H_
