#ifndef ESDP_IMPL_SOCKETS_BLOCKING_BLOCKING_LISTENER_H_
#define ESDP_IMPL_SOCKETS_BLOCKING_BLOCKING_LISTENER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "esdp/socket.h"
#include "impl/sockets/blocking/lane.h"

namespace esdp::sockets {

class ContextState;

// What stands behind a StreamListener.
//
//   Owns:     its socket.
//   Threads:  any. Those that accept come one after the other.
//   Blocks:   Accept.
//   Units:    –
//   Errors:   those of stream.h.
class BlockingListener {
 public:
  BlockingListener(std::shared_ptr<ContextState> context, Socket listening);

  absl::StatusOr<Socket> Accept(absl::Time deadline, OnSignal on_signal);
  const std::shared_ptr<ContextState>& context() const { return context_; }
  Address local() const { return socket_.local(); }
  void Close();

 private:
  const std::shared_ptr<ContextState> context_;
  Lane lane_;
  Socket socket_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BLOCKING_BLOCKING_LISTENER_H_
