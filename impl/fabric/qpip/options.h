#ifndef ESDP_IMPL_FABRIC_QPIP_OPTIONS_H_
#define ESDP_IMPL_FABRIC_QPIP_OPTIONS_H_

#include <chrono>
#include <functional>
#include <string>

#include "impl/base/clock.h"
#include "impl/base/time.h"

namespace esdp::fabric::qpip {

// How a qpip fabric behaves. The defaults suit a program that gives them no thought.
struct QpipOptions {
  // TCP_CONGESTION of every connection, such as "cubic". Empty: the system's choice.
  std::string congestion_control{};
  // SO_SNDBUF and SO_RCVBUF in bytes. 0: the system sizes them by itself, which is usually best.
  int send_buffer_bytes = 0;
  int receive_buffer_bytes = 0;
  // Ask every peer for CRC32C on every frame. A peer that asks for it is always given it.
  bool checksum = false;
  // Lend the memory of what peers read to the system instead of copying it (lender.h).
  bool lend_pages = false;
  // A peer from which nothing is heard is probed after this time, and given up after 4 times this.
  Duration keep_alive_idle = std::chrono::seconds(15);
  // How long a peer may take over its part of the MPA start-up.
  Duration startup_timeout = std::chrono::seconds(10);
  // How long an orderly Disconnect waits for the peer to take what was sent and to close as well.
  Duration close_timeout = std::chrono::seconds(3);
  // Told what the system withholds and no call could answer. May be empty.
  std::function<void(const std::string&)> log{};
  // Outlives the fabric. Null: the system's clock.
  const Clock* clock = nullptr;
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_OPTIONS_H_
