#ifndef ESDP_IMPL_EXS_PROBER_H_
#define ESDP_IMPL_EXS_PROBER_H_

#include <cstdint>
#include <mutex>

#include "absl/status/statusor.h"
#include "esdp/context.h"
#include "esdp/socket.h"

namespace esdp::exs {

// Asks what could be done with a socket now.
//
//   Owns:     an event queue.
//   Threads:  any, one after the other.
//   Blocks:   never.
//   Units:    -
//   Errors:   those of Socket::Poll.
class Prober {
 public:
  explicit Prober(Context& context) : context_(context) {}
  // Bits of PollMask.
  absl::StatusOr<uint32_t> Ask(Socket& socket);

 private:
  Context& context_;
  std::mutex mutex_;
  EventQueue events_;
  bool open_ = false;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_PROBER_H_
