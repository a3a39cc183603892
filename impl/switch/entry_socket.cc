#include <linux/sockios.h>

#include <cstdarg>

#include "impl/switch/entry.h"
#include "impl/switch/libc_calls.h"

// The calls on a socket that move no bytes.

namespace esdp::libc {

constinit TakenNumbers taken_numbers;
constinit std::atomic<Taker*> taker{nullptr};
constinit std::atomic<bool> watches_listeners{false};
constinit thread_local int ToLibc::depth_ = 0;

namespace {

Taker* WatcherOfListeners() {
  if (!watches_listeners.load(std::memory_order_relaxed) || ToLibc::holds()) return nullptr;
  return taker.load(std::memory_order_acquire);
}

int ListenThenTell(int fd, int backlog) {
  const int result = real.listen.get()(fd, backlog);
  if (Taker* const who = WatcherOfListeners(); who != nullptr && result == 0) who->Listening(fd);
  return result;
}

int TellAccepted(int listener, int number) {
  Taker* const who = WatcherOfListeners();
  return who != nullptr && number >= 0 ? who->Accepted(listener, number) : number;
}

}  // namespace

ESDP_ENTRY(int, Shutdown, "shutdown", (int fd, int how)) {
  return Route(
      fd, [=](Taker& who) { return who.Shutdown(fd, how); },
      [=] { return real.shutdown.get()(fd, how); });
}

ESDP_ENTRY(int, Close, "close", (int fd)) {
  return Route(
      fd, [=](Taker& who) { return who.Close(fd); }, [=] { return real.close.get()(fd); });
}

ESDP_ENTRY(int, Bind, "bind", (int fd, const sockaddr* address, socklen_t len)) {
  return Route(
      fd, [=](Taker& who) { return who.Bind(fd, address, len); },
      [=] { return real.bind.get()(fd, address, len); });
}

ESDP_ENTRY(int, Listen, "listen", (int fd, int backlog)) {
  return Route(
      fd, [=](Taker& who) { return who.Listen(fd, backlog); },
      [=] { return ListenThenTell(fd, backlog); });
}

ESDP_ENTRY(int, Connect, "connect", (int fd, const sockaddr* address, socklen_t len)) {
  return Route(
      fd, [=](Taker& who) { return who.Connect(fd, address, len); },
      [=] { return real.connect.get()(fd, address, len); });
}

ESDP_ENTRY(int, Accept, "accept", (int fd, sockaddr* address, socklen_t* len)) {
  return Route(
      fd, [=](Taker& who) { return who.Accept(fd, address, len, 0); },
      [=] { return TellAccepted(fd, real.accept.get()(fd, address, len)); });
}

ESDP_ENTRY(int, Accept4, "accept4", (int fd, sockaddr* address, socklen_t* len, int flags)) {
  return Route(
      fd, [=](Taker& who) { return who.Accept(fd, address, len, flags); },
      [=] { return TellAccepted(fd, real.accept4.get()(fd, address, len, flags)); });
}

ESDP_ENTRY(int, GetSockName, "getsockname", (int fd, sockaddr* address, socklen_t* len)) {
  return Route(
      fd, [=](Taker& who) { return who.GetSockName(fd, address, len); },
      [=] { return real.getsockname.get()(fd, address, len); });
}

ESDP_ENTRY(int, GetPeerName, "getpeername", (int fd, sockaddr* address, socklen_t* len)) {
  return Route(
      fd, [=](Taker& who) { return who.GetPeerName(fd, address, len); },
      [=] { return real.getpeername.get()(fd, address, len); });
}

ESDP_ENTRY(int, GetSockOpt, "getsockopt",
           (int fd, int level, int name, void* value, socklen_t* len)) {
  return Route(
      fd, [=](Taker& who) { return who.GetOption(fd, level, name, value, len); },
      [=] { return real.getsockopt.get()(fd, level, name, value, len); });
}

ESDP_ENTRY(int, SetSockOpt, "setsockopt",
           (int fd, int level, int name, const void* value, socklen_t len)) {
  return Route(
      fd, [=](Taker& who) { return who.SetOption(fd, level, name, value, len); },
      [=] { return real.setsockopt.get()(fd, level, name, value, len); });
}

// Whether there is a third argument the request alone tells; to read one that is not there is what
// libc does as well.
ESDP_ENTRY(int, Ioctl, "ioctl", (int fd, unsigned long request, ...)) {
  va_list rest;
  va_start(rest, request);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return Route(
      fd, [=](Taker& who) { return who.Ioctl(fd, request, argument); },
      [=] { return real.ioctl.get()(fd, request, argument); });
}

// libc asks the system itself, past ioctl.
ESDP_ENTRY(int, SockAtMark, "sockatmark", (int fd)) {
  int at_mark = 0;
  const int result = Route(
      fd, [&](Taker& who) { return who.Ioctl(fd, SIOCATMARK, &at_mark); },
      [&] { return real.ioctl.get()(fd, SIOCATMARK, &at_mark); });
  return result == 0 ? at_mark : -1;
}

}  // namespace esdp::libc
