#include <optional>

#include "impl/exs/convert.h"
#include "impl/exs/entry.h"

// exs_connect, exs_accept, exs_shutdown, exs_close, exs_cancel.

namespace esdp::exs {
namespace {

int Connect(ExsSocket& socket, Queue& queue, const Operation& filled, const sockaddr* address,
            socklen_t len, int flags) {
  if (flags != 0) return EINVAL;
  if (address == nullptr) return EFAULT;
  const std::optional<Address> to = ToAddress(address, len);
  if (!to.has_value()) return len < sizeof(sa_family_t) ? EINVAL : EAFNOSUPPORT;
  return socket.Post(queue, filled, [to = *to](Socket& below, const OpArgs& args) {
    return below.Connect(to, args);
  });
}

int Accept(ExsSocket& socket, Queue& queue, Operation& filled, exs_acceptaddr_t* addresses,
           int count, int flags) {
  if (flags != 0 || count < 1) return EINVAL;
  if (!socket.listening()) return EINVAL;
  filled.addresses = addresses;
  filled.accepts_left = count;
  return socket.Post(queue, filled, [count](Socket& below, const OpArgs& args) {
    return below.Accept(count, args);
  });
}

int Shutdown(ExsSocket& socket, Queue& queue, const Operation& filled, int how, int flags) {
  if (flags != 0 || how != EXS_SHUT_WR) return EINVAL;
  return socket.Post(queue, filled,
                     [](Socket& below, const OpArgs& args) { return below.Shutdown(args); });
}

Answer CloseUnheard(Library& library, ExsSocket& socket, CloseMode mode) {
  const std::shared_ptr<ExsSocket> kept = socket.shared_from_this();
  if (!socket.Abandon(mode)) return Failed(EBADF);
  library.numbers().RemoveSocket(socket.number(), &socket);
  socket.GiveUpNumber();
  return Value(0);
}

}  // namespace
}  // namespace esdp::exs

using esdp::exs::EnterPost;

extern "C" {

int exs_connect(int fd, const struct sockaddr* address, socklen_t len, int flags,
                exs_qhandle_t queue, exs_ahandle_t handle) {
  return EnterPost({fd, queue, EXS_EVT_CONNECT, handle}, 1,
                   [&](auto&, auto& socket, auto& found, auto& filled) {
                     return esdp::exs::Connect(socket, found, filled, address, len, flags);
                   });
}

int exs_accept(int fd, exs_acceptaddr_t* addresses, int count, int flags, exs_qhandle_t queue,
               exs_ahandle_t handle) {
  return EnterPost({fd, queue, EXS_EVT_ACCEPT, handle}, count < 1 ? 0 : count,
                   [&](auto&, auto& socket, auto& found, auto& filled) {
                     return esdp::exs::Accept(socket, found, filled, addresses, count, flags);
                   });
}

int exs_shutdown(int fd, int how, int flags, exs_qhandle_t queue, exs_ahandle_t handle) {
  return EnterPost({fd, queue, EXS_EVT_SHUTDOWN, handle}, 1,
                   [&](auto&, auto& socket, auto& found, auto& filled) {
                     return esdp::exs::Shutdown(socket, found, filled, how, flags);
                   });
}

int exs_close(int fd, int flags, exs_qhandle_t queue, exs_ahandle_t handle) {
  using esdp::CloseMode;
  const bool aborts = (flags & EXSX_CLOSE_ABORT) != 0;
  const CloseMode mode = aborts ? CloseMode::kAbort : CloseMode::kGraceful;
  const bool known = (flags & ~EXSX_CLOSE_ABORT) == 0;
  if (queue == EXS_QHANDLE_INVALID) {
    return esdp::exs::EnterSocket(fd, [&](auto& library, auto& socket) {
      return known ? esdp::exs::CloseUnheard(library, socket, mode) : esdp::exs::Failed(EINVAL);
    });
  }
  return EnterPost({fd, queue, EXS_EVT_CLOSE, handle}, 1,
                   [&](auto&, auto& socket, auto& found, auto& filled) {
                     if (!known) return EINVAL;
                     return socket.PostLast(found, filled, [mode](auto& below, const auto& args) {
                       return below.Close(mode, args);
                     });
                   });
}

int exs_cancel(int fd, exs_ahandle_t handle, int flags) {
  return esdp::exs::EnterSocket(fd, [&](auto&, auto& socket) {
    const bool known = (flags & ~(EXS_CAF_FILDES | EXS_CAF_AHANDLE)) == 0;
    if (!known || flags == 0) return esdp::exs::Failed(EINVAL);
    return esdp::exs::Value(socket.Cancel((flags & EXS_CAF_AHANDLE) != 0, handle));
  });
}

}  // extern "C"
