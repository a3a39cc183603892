#ifndef ESDP_IMPL_SWITCH_SHIM_SWITCH_TAKER_H_
#define ESDP_IMPL_SWITCH_SHIM_SWITCH_TAKER_H_

#include "impl/switch/taker.h"

namespace esdp::switching {

// What the switch answers to calls of libc: it looks at connections that are not decided, tells of
// relayed ones what TCP would, and leaves the rest to the kernel.
//
//   Owns:     nothing; the Table is beside it.
//   Threads:  any.
//   Blocks:   as the call does.
//   Units:    bytes.
//   Errors:   errno.
class SwitchTaker final : public libc::Taker {
 public:
  Count Receive(int fd, msghdr& message, int flags) override;
  Count Send(int fd, const msghdr& message, int flags) override;
  Answer Shutdown(int fd, int how) noexcept override;
  Answer Close(int fd) noexcept override;
  Answer Bind(int fd, const sockaddr* address, socklen_t len) noexcept override;
  Answer Listen(int fd, int backlog) noexcept override;
  Answer Connect(int fd, const sockaddr* address, socklen_t len) noexcept override;
  Answer Accept(int fd, sockaddr* address, socklen_t* len, int flags) noexcept override;
  Answer GetSockName(int fd, sockaddr* address, socklen_t* len) noexcept override;
  Answer GetPeerName(int fd, sockaddr* address, socklen_t* len) noexcept override;
  Answer GetOption(int fd, int level, int name, void* value, socklen_t* len) noexcept override;
  Answer SetOption(int fd, int level, int name, const void* value, socklen_t len) noexcept override;
  Answer Ioctl(int fd, unsigned long request, void* argument) noexcept override;
  void ShowReadiness(int fd) noexcept override;
  void Waits() noexcept override;
  Wait WaitsForInput(int fd) noexcept override;
  void HasWaited(Wait wait) noexcept override;
  Answer EpollCtl(int set, int operation, int fd, epoll_event* event) override;
  void PassedOn(const msghdr& message) override;
  void HandedOver(const msghdr& message) override;
  void Listening(int listener) override;
  int Accepted(int listener, int number) override;
};

// Of this process, and not of a child that shares its memory.
bool IsThisProcess();
void SetThisProcess();

// A new socket that is ours once it is connected by a rule.
void MakeCandidate(int number);
// A number that was handed down by exec.
void LookAtInherited(int number);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_SWITCH_TAKER_H_
