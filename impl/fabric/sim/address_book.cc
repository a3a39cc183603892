#include "impl/fabric/sim/address_book.h"

#include <algorithm>

namespace esdp::fabric::sim {
namespace {

constexpr uint16_t kDynamicPortFirst = 49152;
constexpr int kDynamicPorts = 16384;

}  // namespace

absl::StatusOr<Address> AddressBook::Enter(const Address& address, ListenerOwner* owner,
                                           ListenerId listener) {
  Address wanted = address;
  if (wanted.port == 0) {
    for (int tries = 0; tries < kDynamicPorts; ++tries) {
      wanted.port = NextPort();
      if (!Taken(wanted)) break;
    }
    if (Taken(wanted)) return absl::ResourceExhaustedError("no free port in the simulated world");
  } else if (Taken(wanted)) {
    return absl::AlreadyExistsError(ToString(wanted) + " is taken in the simulated world");
  }
  entries_.push_back({wanted, owner, listener});
  return wanted;
}

void AddressBook::Remove(const ListenerOwner* owner, ListenerId listener) {
  std::erase_if(entries_, [&](const Entry& entry) {
    return entry.owner == owner && entry.listener == listener;
  });
}

const AddressBook::Entry* AddressBook::Find(const Address& address) const {
  const Entry* wildcard = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.address.family != address.family || entry.address.port != address.port) continue;
    if (entry.address.bytes == address.bytes) return &entry;
    if (IsWildcard(entry.address)) wildcard = &entry;
  }
  return wildcard;
}

uint16_t AddressBook::NextPort() {
  last_port_ = last_port_ == UINT16_MAX ? kDynamicPortFirst : static_cast<uint16_t>(last_port_ + 1);
  return last_port_;
}

bool AddressBook::Taken(const Address& address) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.address.family == address.family && entry.address.port == address.port &&
           (entry.address.bytes == address.bytes || IsWildcard(entry.address) ||
            IsWildcard(address));
  });
}

}  // namespace esdp::fabric::sim
