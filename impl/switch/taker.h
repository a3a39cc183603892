#ifndef ESDP_IMPL_SWITCH_TAKER_H_
#define ESDP_IMPL_SWITCH_TAKER_H_

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "impl/switch/taken_numbers.h"

namespace esdp::libc {

// Who answers the calls of libc for the numbers that are taken. Each answer is that of the call,
// with errno; nothing where the number is none of its own any more, which is then libc's.
//
//   Owns:     what it answers for.
//   Threads:  any.
//   Blocks:   as the call does.
//   Units:    bytes.
//   Errors:   errno.
class Taker {
 public:
  using Count = std::optional<ssize_t>;
  using Answer = std::optional<int>;

  Taker() = default;
  virtual ~Taker() = default;
  Taker(const Taker&) = delete;
  Taker& operator=(const Taker&) = delete;

  // As recvmsg and sendmsg; all of their kind come here.
  virtual Count Receive(int fd, msghdr& message, int flags) = 0;
  virtual Count Send(int fd, const msghdr& message, int flags) = 0;
  virtual Answer Shutdown(int fd, int how) noexcept = 0;
  virtual Answer Close(int fd) noexcept = 0;
  virtual Answer Bind(int fd, const sockaddr* address, socklen_t len) noexcept = 0;
  virtual Answer Listen(int fd, int backlog) noexcept = 0;
  virtual Answer Connect(int fd, const sockaddr* address, socklen_t len) noexcept = 0;
  // As accept4.
  virtual Answer Accept(int fd, sockaddr* address, socklen_t* len, int flags) noexcept = 0;
  virtual Answer GetSockName(int fd, sockaddr* address, socklen_t* len) noexcept = 0;
  virtual Answer GetPeerName(int fd, sockaddr* address, socklen_t* len) noexcept = 0;
  virtual Answer GetOption(int fd, int level, int name, void* value, socklen_t* len) noexcept = 0;
  virtual Answer SetOption(int fd, int level, int name, const void* value,
                           socklen_t len) noexcept = 0;
  virtual Answer Ioctl(int fd, unsigned long request, void* argument) noexcept = 0;
  // The system is about to be asked when the number is ready; from now on it has to know.
  virtual void ShowReadiness(int fd) noexcept = 0;
  virtual Answer EpollCtl(int /*set*/, int /*operation*/, int /*fd*/, epoll_event* /*event*/) {
    return std::nullopt;
  }
  // This thread is to wait for numbers that are taken, by another call than epoll_wait.
  virtual void Waits() noexcept {}
  // It waits until something comes for this one. HasWaited is told behind the call; 0: there is no need.
  using Wait = uint64_t;
  virtual Wait WaitsForInput(int /*fd*/) noexcept { return 0; }
  virtual void HasWaited(Wait /*wait*/) noexcept {}
  // A message on a number that is not taken hands over these.
  virtual void PassedOn(const msghdr& /*message*/) {}
  // One that was received there has brought these.
  virtual void HandedOver(const msghdr& /*message*/) {}
  // Of every listener, where `watches_listeners`: listen has succeeded, accept has made `number`,
  // and answers with what is returned.
  virtual void Listening(int /*listener*/) {}
  virtual int Accepted(int /*listener*/, int number) { return number; }
};

// While one lives all calls of its thread go to libc: what a taker does itself with the descriptor
// behind a number.
class ToLibc {
 public:
  ToLibc() { ++depth_; }
  ~ToLibc() { --depth_; }
  ToLibc(const ToLibc&) = delete;
  ToLibc& operator=(const ToLibc&) = delete;
  static bool holds() { return depth_ > 0; }

 private:
  static thread_local int depth_;
};

extern constinit TakenNumbers taken_numbers;
// Never gone once it is there.
extern constinit std::atomic<Taker*> taker;
extern constinit std::atomic<bool> watches_listeners;

}  // namespace esdp::libc

#endif  // ESDP_IMPL_SWITCH_TAKER_H_
