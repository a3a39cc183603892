#ifndef ESDP_IMPL_FABRIC_QPIP_SILENT_REQUESTS_H_
#define ESDP_IMPL_FABRIC_QPIP_SILENT_REQUESTS_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "impl/base/time.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::qpip {

// Connections that were accepted and whose MPA Request has not fully arrived, and which of them is
// the first to go where there is no room for more.
//
//   Owns:     nothing.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    instants of the fabric's clock.
//   Errors:   –
class SilentRequests {
 public:
  // Nobody goes who had less.
  static constexpr Duration kTimeToSpeak = std::chrono::seconds(1);

  size_t size() const { return silent_.size(); }
  void Add(uint64_t owner, const Address& peer, Time now) {
    silent_.push_back({owner, now, peer.bytes});
  }
  // It has spoken, or is gone.
  void Remove(uint64_t owner) {
    std::erase_if(silent_, [&](const Silent& silent) { return silent.owner == owner; });
  }
  // The oldest of the address that has most of them; nothing where all are young.
  std::optional<uint64_t> Choose(Time now) const;

 private:
  struct Silent {
    uint64_t owner = 0;
    Time since{};
    std::array<uint8_t, 16> address{};
  };

  std::deque<Silent> silent_;  // the oldest first
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_SILENT_REQUESTS_H_
