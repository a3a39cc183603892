#ifndef ESDP_IMPL_FABRIC_LOCAL_OPTIONS_H_
#define ESDP_IMPL_FABRIC_LOCAL_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "impl/base/clock.h"
#include "impl/base/time.h"

namespace esdp::fabric::local {

// Who may take what a transfer shows out of our memory by itself.
enum class Share : uint8_t {
  kProved,  // whoever the system lets read all our memory anyway
  kUser,    // whoever is connected: of regions in files all that is in them
  kNever,   // nobody
};

// How a local fabric behaves. The defaults suit a program that gives them no thought.
struct LocalOptions {
  // How long a peer that has connected may take to send its request.
  Duration startup_timeout = std::chrono::seconds(10);
  // How long an orderly Disconnect waits for the peer to make room for what was sent.
  Duration close_timeout = std::chrono::seconds(3);
  // Read what peers show where the system lets us read their memory, and let them do the same.
  bool reads_peers = true;
  Share share = Share::kProved;
  // Told what the system withholds and no call could answer. May be empty.
  std::function<void(const std::string&)> log{};
  // Outlives the fabric. Null: the system's clock.
  const Clock* clock = nullptr;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_OPTIONS_H_
