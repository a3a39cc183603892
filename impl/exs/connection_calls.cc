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

int PostShutdown(ExsSocket& socket, Queue& queue, const Operation& filled, int how, int flags) {
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

Answer CloseStream(Library& library, PlainStream& stream, const Posting& posting, bool aborts) {
  if (posting.queue == EXS_QHANDLE_INVALID) return Failed(stream.CloseUnheard(aborts));
  return PostTo(library, posting, 1, [&](Queue& queue, Operation& filled) {
    filled.number = posting.fd;
    return stream.Close(queue.shared_from_this(), filled, aborts);
  });
}

Answer CloseAny(Library& library, const Posting& posting, bool aborts) {
  const CloseMode mode = aborts ? CloseMode::kAbort : CloseMode::kGraceful;
  std::shared_ptr<ExsSocket> socket;
  int error = library.numbers().Find(posting.fd, &socket);
  if (error == EOPNOTSUPP) {
    const PlainKind kind = PlainKindOf(posting.fd);
    if (kind == PlainKind::kListens) return ClosePlainListener(library, posting);
    if (kind == PlainKind::kConnected) {
      const auto stream = library.streams().FindOrMake(library, posting.fd);
      return stream == nullptr ? Failed(errno) : CloseStream(library, *stream, posting, aborts);
    }
    error = Adopt(library, posting.fd, &socket);
  }
  if (error != 0) return Failed(error);
  if (posting.queue == EXS_QHANDLE_INVALID) return CloseUnheard(library, *socket, mode);
  return PostOn(library, *socket, posting, 1,
                [&](auto&, auto& found_socket, auto& queue, auto& filled) {
                  return Close(found_socket, queue, filled, mode);
                });
}

int Cancel(Library& library, int fd, bool by_handle, exs_ahandle_t handle, int* asked) {
  if (const auto listener = library.listeners().Find(fd); listener != nullptr) {
    *asked += listener->Cancel(by_handle, handle);
    return 0;
  }
  if (const auto stream = library.streams().Find(fd); stream != nullptr) {
    *asked += stream->Cancel(by_handle, handle);
    return 0;
  }
  std::shared_ptr<ExsSocket> socket;
  const int error = library.numbers().Find(fd, &socket);
  if (error == 0) *asked += socket->Cancel(by_handle, handle);
  // One on which nothing was posted.
  return error == EOPNOTSUPP && PlainKindOf(fd) == PlainKind::kConnected ? 0 : error;
}

}  // namespace
}  // namespace esdp::exs

using esdp::exs::EnterPost;

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
  return EnterPost(
      {fd, queue, EXS_EVT_SHUTDOWN, handle}, 1,
      [&](auto&, auto& socket, auto& found, auto& filled) {
        return esdp::exs::PostShutdown(socket, found, filled, how, flags);
      },
      [&](auto&, auto& stream, auto& found, auto& filled) {
        if (flags != 0 || how != EXS_SHUT_WR) return EINVAL;
        return stream.Shutdown(found.shared_from_this(), filled);
      });
}

int exs_close(int fd, int flags, exs_qhandle_t queue, exs_ahandle_t handle) {
  const esdp::exs::Posting posting = {fd, queue, EXS_EVT_CLOSE, handle};
  return esdp::exs::Enter([&](auto& library) {
    if ((flags & ~EXSX_CLOSE_ABORT) != 0) return esdp::exs::Failed(EINVAL);
    return esdp::exs::CloseAny(library, posting, (flags & EXSX_CLOSE_ABORT) != 0);
  });
}

int exs_cancel(int fd, exs_ahandle_t handle, int flags) {
  return esdp::exs::Enter([&](auto& library) {
    const bool known = (flags & ~(EXS_CAF_FILDES | EXS_CAF_AHANDLE)) == 0;
    if (!known || flags == 0) return esdp::exs::Failed(EINVAL);
    const bool by_handle = (flags & EXS_CAF_AHANDLE) != 0;
    int asked = library.polls().Cancel(fd, by_handle, handle);
    const int error = esdp::exs::Cancel(library, fd, by_handle, handle, &asked);
    return error != 0 && asked == 0 ? esdp::exs::Failed(error) : esdp::exs::Value(asked);
  });
}

}  // extern "C"
