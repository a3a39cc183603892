#include <unistd.h>

#include <optional>

#include "impl/exs/convert.h"
#include "impl/exs/entry.h"

// exs_connect, exs_accept, exs_shutdown, exs_close, exs_cancel.

namespace esdp::exs {
namespace {

using Lane = ExsSocket::Lane;

int CheckConnect(const sockaddr* address, socklen_t len, int flags) {
  if (flags != 0) return EINVAL;
  if (address == nullptr) return EFAULT;
  if (ToAddress(address, len).has_value()) return 0;
  return len < sizeof(sa_family_t) ? EINVAL : EAFNOSUPPORT;
}

int Connect(ExsSocket& socket, Queue& queue, const Operation& filled, const sockaddr* address,
            socklen_t len, int flags) {
  if (const int error = CheckConnect(address, len, flags); error != 0) return error;
  const Address to = *ToAddress(address, len);
  return socket.Post(Lane::kOther, queue, filled,
                     [to](Socket& below, const OpArgs& args) { return below.Connect(to, args); });
}

// What is to be connected; a wrong argument leaves a socket of the program as it is.
int FindToConnect(Library& library, const Posting& posting, const sockaddr* address, socklen_t len,
                  int flags, std::shared_ptr<ExsSocket>* socket) {
  int error = library.numbers().Find(posting.fd, socket);
  if (error != EOPNOTSUPP) return error;
  error = CheckConnect(address, len, flags);
  std::shared_ptr<Queue> queue;
  if (error == 0) error = library.numbers().Find(posting.queue, &queue);
  if (error == 0) error = Adopt(library, posting.fd, socket);
  const bool connected = error == EOPNOTSUPP && PlainKindOf(posting.fd) != PlainKind::kOther;
  return connected ? EISCONN : error;
}

int Accept(ExsSocket& socket, Queue& queue, Operation& filled, exs_acceptaddr_t* addresses,
           int count, int flags) {
  if (flags != 0 || count < 1) return EINVAL;
  if (!socket.listening()) return EINVAL;
  filled.addresses = addresses;
  filled.accepts_left = count;
  return socket.Post(Lane::kOther, queue, filled, [count](Socket& below, const OpArgs& args) {
    return below.Accept(count, args);
  });
}

// On a socket of the system that listens.
Answer AcceptPlain(Library& library, const Posting& posting, exs_acceptaddr_t* addresses, int count,
                   int flags) {
  if (flags != 0 || count < 1) return Failed(EINVAL);
  return PostTo(library, posting, count, [&](Queue& queue, Operation& filled) {
    const auto listener = library.listeners().FindOrMake(library, posting.fd);
    if (listener == nullptr) return errno;
    filled.number = posting.fd;
    filled.addresses = addresses;
    filled.accepts_left = count;
    return listener->Accept(queue.shared_from_this(), filled);
  });
}

// What accepts wait for ends, then the number is free, and the event there.
Answer ClosePlainListener(Library& library, const Posting& posting) {
  const auto close_now = [&] {
    if (const auto listener = library.listeners().Find(posting.fd); listener != nullptr) {
      listener->Close();
      library.listeners().Remove(posting.fd);
    }
    close(posting.fd);
  };
  if (posting.queue == EXS_QHANDLE_INVALID) {
    close_now();
    return Value(0);
  }
  return PostTo(library, posting, 1, [&](Queue& queue, Operation& filled) {
    filled.number = posting.fd;
    close_now();
    queue.Deliver(Finished(filled, 0, 0, 0));
    queue.Announce();
    return 0;
  });
}

// Whether the system's listener is meant.
bool IsPlainListener(Library& library, int fd) {
  std::shared_ptr<ExsSocket> socket;
  return library.numbers().Find(fd, &socket) == EOPNOTSUPP &&
         PlainKindOf(fd) == PlainKind::kListens;
}

int Shutdown(ExsSocket& socket, Queue& queue, const Operation& filled, int how, int flags) {
  if (flags != 0 || how != EXS_SHUT_WR) return EINVAL;
  return socket.Post(Lane::kSending, queue, filled,
                     [](Socket& below, const OpArgs& args) { return below.Shutdown(args); });
}

int Close(ExsSocket& socket, Queue& queue, const Operation& filled, CloseMode mode) {
  const int error =
      socket.Post(Lane::kLast, queue, filled,
                  [mode](Socket& below, const OpArgs& args) { return below.Close(mode, args); });
  if (error == 0 && mode == CloseMode::kAbort) socket.StopSending();
  return error;
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
using esdp::exs::Plain;

extern "C" {

int exs_connect(int fd, const struct sockaddr* address, socklen_t len, int flags,
                exs_qhandle_t queue, exs_ahandle_t handle) {
  const esdp::exs::Posting posting = {fd, queue, EXS_EVT_CONNECT, handle};
  return esdp::exs::Enter([&](auto& library) {
    std::shared_ptr<esdp::exs::ExsSocket> socket;
    const int error = esdp::exs::FindToConnect(library, posting, address, len, flags, &socket);
    if (error != 0) return esdp::exs::Failed(error);
    return esdp::exs::PostOn(
        library, *socket, posting, 1, [&](auto&, auto& found_socket, auto& found, auto& filled) {
          return esdp::exs::Connect(found_socket, found, filled, address, len, flags);
        });
  });
}

int exs_accept(int fd, exs_acceptaddr_t* addresses, int count, int flags, exs_qhandle_t queue,
               exs_ahandle_t handle) {
  const esdp::exs::Posting posting = {fd, queue, EXS_EVT_ACCEPT, handle};
  return esdp::exs::Enter([&](auto& library) {
    std::shared_ptr<esdp::exs::ExsSocket> socket;
    const int error = esdp::exs::WhyNoPost(fd, EXS_EVT_ACCEPT, library.numbers().Find(fd, &socket));
    if (error == EOPNOTSUPP && esdp::exs::PlainKindOf(fd) == esdp::exs::PlainKind::kListens) {
      return esdp::exs::AcceptPlain(library, posting, addresses, count, flags);
    }
    if (error != 0) return esdp::exs::Failed(error);
    return esdp::exs::PostOn(library, *socket, posting, count < 1 ? 0 : count,
                             [&](auto&, auto& listener, auto& found, auto& filled) {
                               return esdp::exs::Accept(listener, found, filled, addresses, count,
                                                        flags);
                             });
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
  constexpr int kNone = 1;
  const Plain plain = known ? Plain::kTakes : Plain::kRefuses;
  const int closed = esdp::exs::Enter([&](auto& library) {
    if (!known || !esdp::exs::IsPlainListener(library, fd)) return esdp::exs::Value(kNone);
    return esdp::exs::ClosePlainListener(library, {fd, queue, EXS_EVT_CLOSE, handle});
  });
  if (closed != kNone) return closed;
  if (queue == EXS_QHANDLE_INVALID) {
    return esdp::exs::EnterSocket(
        fd,
        [&](auto& library, auto& socket) {
          return known ? esdp::exs::CloseUnheard(library, socket, mode) : esdp::exs::Failed(EINVAL);
        },
        plain);
  }
  return EnterPost(
      {fd, queue, EXS_EVT_CLOSE, handle}, 1,
      [&](auto&, auto& socket, auto& found, auto& filled) {
        return known ? esdp::exs::Close(socket, found, filled, mode) : EINVAL;
      },
      plain);
}

int exs_cancel(int fd, exs_ahandle_t handle, int flags) {
  return esdp::exs::Enter([&](auto& library) {
    const bool known = (flags & ~(EXS_CAF_FILDES | EXS_CAF_AHANDLE)) == 0;
    if (!known || flags == 0) return esdp::exs::Failed(EINVAL);
    const bool by_handle = (flags & EXS_CAF_AHANDLE) != 0;
    const int polls = library.polls().Cancel(fd, by_handle, handle);
    const auto listener = library.listeners().Find(fd);
    if (listener != nullptr) return esdp::exs::Value(polls + listener->Cancel(by_handle, handle));
    std::shared_ptr<esdp::exs::ExsSocket> socket;
    const int error = library.numbers().Find(fd, &socket);
    if (error != 0) return polls > 0 ? esdp::exs::Value(polls) : esdp::exs::Failed(error);
    return esdp::exs::Value(polls + socket->Cancel(by_handle, handle));
  });
}

}  // extern "C"
