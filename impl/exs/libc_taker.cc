#include "impl/exs/libc_taker.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <memory>
#include <new>

#include "impl/exs/call_options.h"
#include "impl/exs/library.h"
#include "impl/exs/setup_calls.h"
#include "impl/exs/stream_calls.h"
#include "impl/switch/libc_calls.h"
#include "impl/switch/taker.h"
#include "sys/exs.h"

namespace esdp::exs {
namespace {

// errno is set last, and not at all without an error.
template <typename T>
T Return(T value, int error, int before) {
  errno = error != 0 ? error : before;
  return error != 0 ? T{-1} : value;
}

// What libexs answers to calls of libc on its numbers.
class LibcTaker final : public libc::Taker {
 public:
  Count Receive(int fd, msghdr& message, int flags) noexcept override {
    return Move(fd, [&](Library& library, ExsSocket& socket) {
      const Moved moved = exs::Receive(library, socket, message, flags);
      socket.calls().readiness().Refresh(true);
      return moved;
    });
  }

  Count Send(int fd, const msghdr& message, int flags) noexcept override {
    return Move(fd, [&](Library& library, ExsSocket& socket) {
      return exs::Send(library, socket, message, flags);
    });
  }

  Answer Shutdown(int fd, int how) noexcept override {
    return Do(fd, [&](Library& library, ExsSocket& socket) {
      return exs::Shutdown(library, socket, how);
    });
  }

  // A child that shares our memory, or only the number, closes that alone.
  Answer Close(int fd) noexcept override {
    Library* const library = Library::Current();
    std::shared_ptr<ExsSocket> socket;
    if (library == nullptr) libc::taken_numbers.Remove(fd);
    if (library == nullptr || !library->IsOfThisProcess()) return std::nullopt;
    const int before = errno;
    if (library->numbers().Find(fd, &socket) != 0) {
      LosePlain(*library, fd);
      errno = before;
      return std::nullopt;
    }
    library->numbers().RemoveSocket(fd, socket.get());
    socket->GiveUpNumber();
    socket->AbandonAsClosed();
    errno = before;
    return 0;
  }

  Answer Bind(int fd, const sockaddr* address, socklen_t len) noexcept override {
    return IfOurs(fd, [&] { return exs_bind(fd, address, len); });
  }

  Answer Listen(int fd, int backlog) noexcept override {
    return IfOurs(fd, [&] { return exs_listen(fd, backlog); });
  }

  Answer Connect(int fd, const sockaddr* address, socklen_t len) noexcept override {
    return Do(fd, [&](Library& library, ExsSocket& socket) {
      return exs::Connect(library, socket, address, len);
    });
  }

  Answer Accept(int fd, sockaddr* address, socklen_t* len, int flags) noexcept override {
    int number = -1;
    const Answer done = Do(fd, [&](Library& library, ExsSocket& socket) {
      return exs::Accept(library, socket, address, len, flags, &number);
    });
    return done.value_or(-1) == 0 ? Answer(number) : done;
  }

  Answer GetSockName(int fd, sockaddr* address, socklen_t* len) noexcept override {
    return IfOurs(fd, [&] { return exs_getsockname(fd, address, len); });
  }

  Answer GetPeerName(int fd, sockaddr* address, socklen_t* len) noexcept override {
    return IfOurs(fd, [&] { return exs_getpeername(fd, address, len); });
  }

  Answer GetOption(int fd, int level, int name, void* value, socklen_t* len) noexcept override {
    std::optional<int> own;
    const Answer done = Do(fd, [&](Library&, ExsSocket& socket) {
      own = GetCallOption(socket, level, name, value, len);
      return own.value_or(0);
    });
    if (done.value_or(-1) != 0 || own.has_value()) return done;
    return exs_getsockopt(fd, level, name, value, len);
  }

  Answer SetOption(int fd, int level, int name, const void* value,
                   socklen_t len) noexcept override {
    std::optional<int> own;
    const Answer done = Do(fd, [&](Library&, ExsSocket& socket) {
      own = SetCallOption(socket, level, name, value, len);
      return own.value_or(0);
    });
    if (done.value_or(-1) != 0 || own.has_value()) return done;
    return exs_setsockopt(fd, level, name, value, len);
  }

  // Others are of the descriptor: FIONBIO.
  Answer Ioctl(int fd, unsigned long request, void* argument) noexcept override {
    if (request != FIONREAD && request != TIOCOUTQ) return std::nullopt;
    return Do(fd, [&](Library& library, ExsSocket& socket) {
      if (argument == nullptr) return EFAULT;
      const size_t bytes =
          request == FIONREAD ? BytesToRead(library, socket) : socket.calls().unsent();
      *static_cast<int*>(argument) = static_cast<int>(bytes);
      return 0;
    });
  }

  void ShowReadiness(int fd) noexcept override {
    const int before = errno;
    Library* library = nullptr;
    std::shared_ptr<ExsSocket> socket;
    if (Find(fd, &library, &socket) == 0) socket->calls().readiness().Show();
    errno = before;
  }

 private:
  // What was posted on a socket of the system ends before the system closes it.
  static void LosePlain(Library& library, int fd) noexcept {
    const std::shared_ptr<PlainStream> stream = library.streams().Find(fd);
    if (stream == nullptr) return;
    library.streams().Remove(*stream);
    stream->OnClose();
  }

  // EBADF: a parent's, as its calls of exs_* answer. ENOENT: not ours.
  static int Find(int fd, Library** library, std::shared_ptr<ExsSocket>* socket) noexcept {
    *library = Library::Current();
    if (*library == nullptr) return Library::IsParents(fd) ? EBADF : ENOENT;
    if (!(*library)->IsOfThisProcess()) return EBADF;
    if ((*library)->numbers().Find(fd, socket) == 0) return 0;
    return Library::IsParents(fd) ? EBADF : ENOENT;
  }

  // `call(library, socket)` is made for a number of ours.
  template <typename Call>
  static Count Move(int fd, const Call& call) noexcept {
    const int before = errno;
    Library* library = nullptr;
    std::shared_ptr<ExsSocket> socket;
    const int error = Find(fd, &library, &socket);
    if (error == ENOENT) {
      errno = before;
      return std::nullopt;
    }
    if (error != 0) return Return<ssize_t>(-1, error, before);
    try {
      const Moved moved = call(*library, *socket);
      return Return<ssize_t>(moved.bytes, moved.bytes > 0 ? 0 : moved.error, before);
    } catch (const std::bad_alloc&) {
      return Return<ssize_t>(-1, ENOBUFS, before);
    }
  }

  // The same for calls that answer an errno.
  template <typename Call>
  static Answer Do(int fd, const Call& call) noexcept {
    const Count done = Move(fd, [&](Library& library, ExsSocket& socket) {
      return Moved{0, call(library, socket)};
    });
    return done.has_value() ? Answer(static_cast<int>(*done)) : std::nullopt;
  }

  template <typename Call>
  static Answer IfOurs(int fd, const Call& call) noexcept {
    const Answer found = Do(fd, [](Library&, ExsSocket&) { return 0; });
    return found.value_or(-1) == 0 ? Answer(call()) : found;
  }
};

}  // namespace

void TakeCallsOfLibc() {
  // Never destroyed, for calls while the process exits. By one thread at a time: see Library::Open.
  if (libc::taker.load() == nullptr) libc::taker.store(new LibcTaker, std::memory_order_release);
}

}  // namespace esdp::exs
