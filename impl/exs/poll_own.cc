#include "impl/exs/poll_own.h"

#include <array>
#include <utility>

#include "esdp/status.h"
#include "sys/exs.h"

namespace esdp::exs {
namespace {

constexpr std::array<std::pair<int, uint32_t>, 4> kBits = {{{EXS_POLLIN, kPollReadable},
                                                            {EXS_POLLOUT, kPollWritable},
                                                            {EXS_POLLPRI, kPollUrgent},
                                                            {EXS_POLLRDHUP, kPollPeerEnded}}};

}  // namespace

absl::StatusOr<OpId> PollOwn(Socket& socket, short events, const OpArgs& args) {
  uint32_t mask = kPollFailed;
  for (const auto& [here, below] : kBits) {
    if ((events & here) != 0) mask |= below;
  }
  return socket.Poll(mask, args);
}

short ReadyOf(const Event& event) {
  if (!event.ok()) return event.kind == ErrorKind::kShutDown ? EXS_POLLHUP : EXS_POLLERR;
  int ready = 0;
  for (const auto& [here, below] : kBits) {
    if ((event.bytes & below) != 0) ready |= here;
  }
  if ((event.bytes & kPollFailed) != 0) ready |= EXS_POLLERR | EXS_POLLHUP;
  return static_cast<short>(ready);
}

short RefusedOf(const absl::Status& status) {
  // Not connected is no error, as poll(2) has it.
  const ErrorKind kind = KindOf(status);
  const bool unconnected = kind == ErrorKind::kWrongState || kind == ErrorKind::kShutDown;
  return unconnected ? EXS_POLLHUP : EXS_POLLERR | EXS_POLLHUP;
}

}  // namespace esdp::exs
