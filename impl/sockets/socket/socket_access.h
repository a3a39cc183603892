#ifndef ESDP_IMPL_SOCKETS_SOCKET_SOCKET_ACCESS_H_
#define ESDP_IMPL_SOCKETS_SOCKET_SOCKET_ACCESS_H_

#include <memory>
#include <utility>

#include "esdp/socket.h"

namespace esdp::sockets {

// The door of this room into the public handles.
class SocketAccess {
 public:
  static Socket Make(std::shared_ptr<SocketState> state) {
    Socket socket;
    socket.state_ = std::move(state);
    return socket;
  }
  static const std::shared_ptr<SocketState>& StateOf(const Socket& socket) { return socket.state_; }
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_SOCKET_SOCKET_ACCESS_H_
