#ifndef ESDP_IMPL_SOCKETS_STREAM_WAITING_POLLS_H_
#define ESDP_IMPL_SOCKETS_STREAM_WAITING_POLLS_H_

#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "esdp/operation.h"
#include "impl/sockets/stream/operation.h"

namespace esdp::sockets {

class ContextState;

// The Polls that wait, of a stream or a listener. Whoever changes what their bits are calls Tell
// behind the change, and so does whoever adds one: one of the two sees the other.
//
//   Owns:     nothing but the list; operations belong to the Context.
//   Threads:  any. Its lock is never held while others are called.
//   Blocks:   never.
//   Units:    –
//   Errors:   those of Socket::Poll.
class WaitingPolls {
 public:
  explicit WaitingPolls(ContextState& context) : context_(context) {}

  absl::StatusOr<OpId> Add(SocketId socket, uint32_t mask, const OpArgs& args);
  // Ends those that bits() ends; one after the other, since each may be the last holder of its
  // queue.
  template <typename Bits>
  void Tell(const Bits& bits) {
    while (TellFirst(bits())) continue;
  }
  void Finish(OpId op, const absl::Status& status);
  void Close();  // nobody will look any more

 private:
  bool TellFirst(uint32_t bits);

  ContextState& context_;
  std::mutex mutex_;
  std::vector<Operation*> polls_;
  bool closed_ = false;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_STREAM_WAITING_POLLS_H_
