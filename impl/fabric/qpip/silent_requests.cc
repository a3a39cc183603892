#include "impl/fabric/qpip/silent_requests.h"

#include <map>

namespace esdp::fabric::qpip {

std::optional<uint64_t> SilentRequests::Choose(Time now) const {
  std::map<std::array<uint8_t, 16>, size_t> of_address;
  for (const Silent& silent : silent_) ++of_address[silent.address];
  const Silent* chosen = nullptr;
  for (const Silent& silent : silent_) {
    if (AddSaturating(silent.since, kTimeToSpeak) > now) break;  // those behind it are younger
    if (chosen == nullptr || of_address[silent.address] > of_address[chosen->address]) {
      chosen = &silent;
    }
  }
  return chosen == nullptr ? std::nullopt : std::optional(chosen->owner);
}

}  // namespace esdp::fabric::qpip
