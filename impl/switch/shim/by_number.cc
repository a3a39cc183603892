#include "impl/switch/shim/by_number.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "impl/switch/entry.h"

// libuv closes by number, and so does everything that stands on it: what moves, waits for or closes
// a descriptor is the call of that name, which is interposed.

namespace esdp::switching {
namespace {

using Words = std::array<long, 6>;
using Named = long (*)(const Words&);

template <typename Argument>
Argument As(long word) {
  if constexpr (std::is_pointer_v<Argument>) {
    return reinterpret_cast<Argument>(word);  // NOLINT(performance-no-int-to-ptr)
  } else {
    return static_cast<Argument>(word);
  }
}

template <typename R, typename... A, size_t... I>
long Spread(R (*call)(A...), const Words& words, std::index_sequence<I...>) {
  return call(As<A>(words[I])...);
}

template <typename R, typename... A>
long Spread(R (*call)(A...), const Words& words) {
  return Spread(call, words, std::index_sequence_for<A...>());
}

template <auto Call>
long By(const Words& words) {
  return Spread(Call, words);
}

// The kernel's has its last two arguments in one.
long PselectBy(const Words& words) {
  struct Mask {
    const sigset_t* set;
    size_t bytes;
  };
  const auto* const mask = As<const Mask*>(words[5]);
  return ::pselect(As<int>(words[0]), As<fd_set*>(words[1]), As<fd_set*>(words[2]),
                   As<fd_set*>(words[3]), As<const timespec*>(words[4]),
                   mask != nullptr ? mask->set : nullptr);
}

constexpr size_t kNumbers = 512;

constexpr std::array<Named, kNumbers> MakeNamed() {
  std::array<Named, kNumbers> named{};
  named[SYS_read] = By<::read>;
  named[SYS_readv] = By<::readv>;
  named[SYS_recvfrom] = By<::recvfrom>;
  named[SYS_recvmsg] = By<::recvmsg>;
  named[SYS_recvmmsg] = By<::recvmmsg>;
  named[SYS_write] = By<::write>;
  named[SYS_writev] = By<::writev>;
  named[SYS_sendto] = By<::sendto>;
  named[SYS_sendmsg] = By<::sendmsg>;
  named[SYS_sendmmsg] = By<::sendmmsg>;
  named[SYS_sendfile] = By<::sendfile>;
  named[SYS_splice] = By<::splice>;
  named[SYS_close] = By<::close>;
  named[SYS_close_range] = By<::close_range>;
  named[SYS_shutdown] = By<::shutdown>;
  named[SYS_dup] = By<::dup>;
  named[SYS_dup3] = By<::dup3>;
  named[SYS_fcntl] = [](const Words& words) -> long {
    return ::fcntl(As<int>(words[0]), As<int>(words[1]), words[2]);
  };
  named[SYS_ioctl] = [](const Words& words) -> long {
    return ::ioctl(As<int>(words[0]), As<unsigned long>(words[1]), words[2]);
  };
  named[SYS_socket] = By<::socket>;
  named[SYS_connect] = By<::connect>;
  named[SYS_accept4] = By<::accept4>;
  named[SYS_bind] = By<::bind>;
  named[SYS_listen] = By<::listen>;
  named[SYS_getsockname] = By<::getsockname>;
  named[SYS_getpeername] = By<::getpeername>;
  named[SYS_getsockopt] = By<::getsockopt>;
  named[SYS_setsockopt] = By<::setsockopt>;
  named[SYS_accept] = By<::accept>;
  named[SYS_epoll_ctl] = By<::epoll_ctl>;
  named[SYS_ppoll] = By<::ppoll>;
  named[SYS_pselect6] = PselectBy;
#ifdef SYS_dup2  // not where everything was numbered anew
  named[SYS_dup2] = By<::dup2>;
  named[SYS_poll] = By<::poll>;
  named[SYS_select] = By<::select>;
#endif
  return named;
}

constexpr std::array<Named, kNumbers> kNamed = MakeNamed();

}  // namespace

constinit libc::RealCall<long (*)(long, ...)> by_number{"syscall"};

void ResolveByNumber() { (void)by_number.Resolve(); }

// To read arguments that are not there is what libc does as well.
ESDP_ENTRY(long, ByNumber, "syscall", (long number, ...)) {
  Words words;
  va_list rest;
  va_start(rest, number);
  for (long& each : words) each = va_arg(rest, long);
  va_end(rest);
  const bool may_have_name = number >= 0 && static_cast<size_t>(number) < kNumbers;
  if (const Named call = may_have_name ? kNamed[static_cast<size_t>(number)] : nullptr) {
    return call(words);
  }
  return by_number.get()(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

}  // namespace esdp::switching
