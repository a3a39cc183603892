#include "impl/fabric/local/peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace esdp::fabric::local {
namespace {

// Newer than the headers of some systems.
constexpr int kPeerPidFd = 77;  // SO_PEERPIDFD
constexpr long kPidFdOpen = 434;

Descriptor WatchOf(int socket, pid_t process) {
  int descriptor = -1;
  socklen_t bytes = sizeof(descriptor);
  if (getsockopt(socket, SOL_SOCKET, kPeerPidFd, &descriptor, &bytes) == 0) {
    return Descriptor(descriptor);
  }
  return Descriptor(static_cast<int>(syscall(kPidFdOpen, process, 0)));
}

// Of Yama; 0 where it is not there.
int PtraceScope() {
  const Descriptor file(open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC));
  char digit = '0';
  if (!file.is_open() || read(file.number(), &digit, 1) != 1) return 0;
  return digit - '0';
}

}  // namespace

std::string WhyUnreadable() {
  if (const int scope = PtraceScope(); scope > 0) {
    return "/proc/sys/kernel/yama/ptrace_scope is " + std::to_string(scope) +
           ", so that no program may read the memory of another";
  }
  char byte = 0;
  char copy = 0;
  const iovec into{&copy, 1};
  const iovec from{&byte, 1};
  if (process_vm_readv(getpid(), &into, 1, &from, 1, 0) == 1) return "";
  return std::string("process_vm_readv is refused: ") + std::strerror(errno);
}

PeerProcess::PeerProcess(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.pid <= 0) return;
  number_ = peer.pid;
  if (peer.pid != getpid()) watch_ = WatchOf(socket, peer.pid);
  if (peer.pid == getpid() || watch_.is_open()) process_ = peer.pid;
}

std::optional<Nonce> PeerProcess::ReadNonce(uint64_t address) {
  Nonce nonce{};
  const Bytes target = std::as_writable_bytes(std::span(nonce));
  if (Read({&target, 1}, address) != target.size()) return std::nullopt;
  return nonce;
}

size_t PeerProcess::Read(absl::Span<const Bytes> targets, uint64_t address) {
  if (!IsReadable()) return 0;
  std::array<iovec, kTargetsMax> into;
  size_t length = 0;
  const size_t count = std::min(targets.size(), kTargetsMax);
  for (size_t i = 0; i < count; ++i) {
    into[i] = {targets[i].data(), targets[i].size()};
    length += targets[i].size();
  }
  // A number for the system, which looks it up in the other process.
  const iovec from{std::bit_cast<void*>(address), length};
  const ssize_t bytes = process_vm_readv(process_, into.data(), count, &from, 1, 0);
  if (bytes < 0 && errno != EFAULT && errno != EINTR) process_ = 0;
  return bytes < 0 ? 0 : static_cast<size_t>(bytes);
}

bool PeerProcess::IsAlive() const {
  if (!watch_.is_open()) return IsReadable();
  pollfd died{watch_.number(), POLLIN, 0};
  return poll(&died, 1, 0) == 0;
}

}  // namespace esdp::fabric::local
