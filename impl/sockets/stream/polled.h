#ifndef ESDP_IMPL_SOCKETS_STREAM_POLLED_H_
#define ESDP_IMPL_SOCKETS_STREAM_POLLED_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "esdp/event.h"
#include "esdp/operation.h"
#include "impl/sockets/stream/operation.h"

namespace esdp::sockets {

// Takes the first Poll out that these bits end, and says in its event which of them it asked for:
// nullptr where they end none. Under the lock of what it polls.
inline Operation* TakePolled(std::vector<Operation*>& polls, uint32_t bits, Event& event) {
  const auto found = std::ranges::find_if(
      polls, [&](const Operation* it) { return (bits & (it->poll_mask | kPollFailed)) != 0; });
  if (found == polls.end()) return nullptr;
  Operation* const operation = *found;
  polls.erase(found);
  event.bytes = bits & (operation->poll_mask | kPollFailed);
  return operation;
}

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_STREAM_POLLED_H_
