#include "impl/fabric/qpip/tcp_stream.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "impl/base/status.h"
#include "impl/fabric/socket_address.h"

namespace esdp::fabric::qpip {
namespace {

// TCP_RTO_MAX_MS of Linux 6.15, which the C library's headers do not know; older systems refuse it.
constexpr int kTcpRtoMaxMs = 44;

bool IsAny(const Address& address) {
  return address.port == 0 && std::all_of(address.bytes.begin(), address.bytes.end(),
                                          [](uint8_t byte) { return byte == 0; });
}

absl::Status FromErrno(int error, const std::string& what) {
  const std::string text = what + ": " + std::strerror(error);
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(text);
    case EADDRNOTAVAIL:
    case EINVAL:
    case EAFNOSUPPORT:
      return absl::InvalidArgumentError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::UnavailableError(text);
  }
}

void SetOption(int descriptor, int level, int name, int value) {
  setsockopt(descriptor, level, name, &value, sizeof(value));
}

absl::StatusOr<TcpStream> Open(const Address& address) {
  const int family = address.family == Family::kIpv4 ? AF_INET : AF_INET6;
  const int descriptor = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return FromErrno(errno, "cannot open a socket");
  return TcpStream(descriptor);
}

absl::Status BindTo(const TcpStream& stream, const Address& address) {
  const SocketAddress system = ToSystem(address);
  if (bind(stream.descriptor(), system.pointer(), system.bytes) == 0) return absl::OkStatus();
  return FromErrno(errno, "cannot bind to " + ToString(address));
}

IoResult Moved(ssize_t result, bool reading) {
  if (result > 0) return {IoOutcome::kMoved, static_cast<size_t>(result), 0};
  if (result == 0) return {reading ? IoOutcome::kEnd : IoOutcome::kWouldBlock, 0, 0};
  const int error = errno;
  if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ENOBUFS) {
    return {IoOutcome::kWouldBlock, 0, 0};
  }
  return {IoOutcome::kFailed, 0, error};
}

}  // namespace

IoResult Written(ssize_t result) { return Moved(result, false); }

bool IoVector::Add(ConstBytes piece) {
  if (piece.empty()) return true;
  if (count_ > first_) {
    iovec& last = pieces_[count_ - 1];
    if (static_cast<const std::byte*>(last.iov_base) + last.iov_len == piece.data()) {
      last.iov_len += piece.size();
      bytes_ += piece.size();
      return true;
    }
  }
  if (count_ == kPiecesMax) return false;
  // The system's structure serves reads and writes; a source is only read.
  pieces_[count_++] = iovec{const_cast<std::byte*>(piece.data()), piece.size()};
  bytes_ += piece.size();
  return true;
}

void IoVector::Skip(size_t bytes) {
  bytes_ -= bytes;
  while (bytes != 0) {
    iovec& piece = pieces_[first_];
    const size_t cut = std::min(bytes, piece.iov_len);
    piece.iov_base = static_cast<std::byte*>(piece.iov_base) + cut;
    piece.iov_len -= cut;
    if (piece.iov_len == 0) ++first_;
    bytes -= cut;
  }
}

Cause CauseOfError(int error) {
  switch (error) {
    case ECONNREFUSED:
      return Cause::kRefused;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
      return Cause::kUnreachable;
    case ETIMEDOUT:
      return Cause::kPeerSilent;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EBADF:
      return Cause::kDevice;
    default:
      return Cause::kPeerReset;
  }
}

// A router's "unreachable" says no more of a connection than that nobody answers.
Cause CauseOfLoss(int error) {
  const Cause cause = CauseOfError(error);
  return cause == Cause::kUnreachable ? Cause::kPeerSilent : cause;
}

std::string ErrorText(int error) { return std::strerror(error); }

TcpStream::TcpStream(TcpStream&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      peer_(other.peer_),
      local_(other.local_),
      connect_error_(other.connect_error_) {}

TcpStream& TcpStream::operator=(TcpStream&& other) noexcept {
  if (this != &other) {
    Close();
    descriptor_ = std::exchange(other.descriptor_, -1);
    peer_ = other.peer_;
    local_ = other.local_;
    connect_error_ = other.connect_error_;
  }
  return *this;
}

absl::Status TcpStream::Check(const QpipOptions& options) {
  if (options.congestion_control.empty()) return absl::OkStatus();
  absl::StatusOr<TcpStream> stream = Open(Address{});
  return stream.ok() ? stream->Configure(options) : stream.status();
}

absl::StatusOr<TcpStream> TcpStream::Connect(const Address& local, const Address& peer,
                                             const QpipOptions& options) {
  absl::StatusOr<TcpStream> stream = Open(peer);
  if (!stream.ok()) return stream;
  if (absl::Status status = stream->Configure(options); !status.ok()) return status;
  if (!IsAny(local)) {
    if (local.family != peer.family) {
      return absl::InvalidArgumentError("the local and the peer's address are of two families");
    }
    SetOption(stream->descriptor(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (absl::Status status = BindTo(*stream, local); !status.ok()) return status;
  }
  stream->peer_ = peer;
  const SocketAddress system = ToSystem(peer);
  if (connect(stream->descriptor(), system.pointer(), system.bytes) == 0 || errno == EINPROGRESS) {
    return stream;
  }
  // The network's answers come later as a rule: this one too.
  if (CauseOfError(errno) == Cause::kRefused || CauseOfError(errno) == Cause::kUnreachable) {
    stream->connect_error_ = errno;
    return stream;
  }
  return FromErrno(errno, "cannot connect to " + ToString(peer));
}

absl::StatusOr<TcpStream> TcpStream::Over(int descriptor, const QpipOptions& options) {
  ESDP_ASSIGN_OR_RETURN(const TcpEnds ends, EndsOf(descriptor));
  TcpStream stream(fcntl(descriptor, F_DUPFD_CLOEXEC, descriptor), ends.peer, ends.local);
  if (!stream.is_open()) return FromErrno(errno, "cannot duplicate a socket");
  const int flags = fcntl(stream.descriptor(), F_GETFL);
  if (flags < 0 ||
      ((flags & O_NONBLOCK) == 0 && fcntl(stream.descriptor(), F_SETFL, flags | O_NONBLOCK) != 0)) {
    return FromErrno(errno, "cannot make a socket non-blocking");
  }
  ESDP_RETURN_IF_ERROR(stream.Configure(options));
  return stream;
}

absl::Status TcpStream::Configure(const QpipOptions& options) {
  SetOption(descriptor_, IPPROTO_TCP, TCP_NODELAY, 1);
  if (options.send_buffer_bytes > 0) {
    SetOption(descriptor_, SOL_SOCKET, SO_SNDBUF, options.send_buffer_bytes);
  }
  if (options.receive_buffer_bytes > 0) {
    SetOption(descriptor_, SOL_SOCKET, SO_RCVBUF, options.receive_buffer_bytes);
  }
  const std::string& name = options.congestion_control;
  if (!name.empty() && setsockopt(descriptor_, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                                  static_cast<socklen_t>(name.size())) != 0) {
    return absl::InvalidArgumentError("this system has no TCP congestion control named \"" +
                                      absl::CHexEscape(name) + "\"");
  }
  return absl::OkStatus();
}

// [R14.1]
Duration TcpStream::SetKeepAlive(Duration idle) {
  constexpr int kProbes = 3;
  using std::chrono::seconds;
  const auto whole = std::chrono::duration_cast<seconds>(idle + seconds(1) - Duration(1));
  const int interval = static_cast<int>(std::clamp<int64_t>(whole.count(), 1, 32767));
  SetOption(descriptor_, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(descriptor_, IPPROTO_TCP, TCP_KEEPIDLE, interval);
  SetOption(descriptor_, IPPROTO_TCP, TCP_KEEPINTVL, interval);
  SetOption(descriptor_, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  // So that what is sent again, and probes of a closed window, ask as often. Not TCP_USER_TIMEOUT:
  // it ends connections whose peer answers each probe and only has its window closed.
  SetOption(descriptor_, IPPROTO_TCP, kTcpRtoMaxMs, interval * 1000);
  return seconds(interval);
}

Duration TcpStream::Unanswered() const {
  tcp_info info{};
  socklen_t bytes = sizeof(info);
  if (getsockopt(descriptor_, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return Duration{0};
  if (info.tcpi_unacked == 0 && info.tcpi_probes == 0) return Duration{0};
  return std::chrono::milliseconds(info.tcpi_last_ack_recv);
}

IoResult TcpStream::Read(IoVector& target) {
  if (target.count() == 1) return Read(target[0]);
  return Moved(readv(descriptor_, target.data(), static_cast<int>(target.count())), true);
}

IoResult TcpStream::Read(Bytes target) {
  return Moved(recv(descriptor_, target.data(), target.size(), MSG_DONTWAIT), true);
}

IoResult TcpStream::Write(std::span<iovec> source, bool more) {
  msghdr message{};
  message.msg_iov = source.data();
  message.msg_iovlen = source.size();
  const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0);
  return Written(sendmsg(descriptor_, &message, flags));
}

IoResult TcpStream::Write(ConstBytes source) {
  return Written(send(descriptor_, source.data(), source.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

int TcpStream::TakeError() {
  if (connect_error_ != 0) return std::exchange(connect_error_, 0);
  int error = 0;
  socklen_t bytes = sizeof(error);
  if (getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return errno;
  return error;
}

Address TcpStream::LocalAddress() const {
  if (local_.has_value()) return *local_;
  SocketAddress system;
  if (getsockname(descriptor_, system.pointer(), &system.bytes) != 0) return Address{};
  return Unmapped(FromSystem(system.pointer()));
}

Address TcpStream::PeerAddress() const {
  if (local_.has_value()) return peer_;
  SocketAddress system;
  if (getpeername(descriptor_, system.pointer(), &system.bytes) != 0) return peer_;
  return Unmapped(FromSystem(system.pointer()));
}

void TcpStream::EndWrites() { shutdown(descriptor_, SHUT_WR); }

void TcpStream::Close() {
  if (descriptor_ < 0) return;
  // For the peer too, though a child of fork() may hold another copy of the descriptor.
  (void)shutdown(descriptor_, SHUT_RDWR);
  close(std::exchange(descriptor_, -1));
}

void TcpStream::Abort() {
  if (descriptor_ < 0) return;
  const linger none{.l_onoff = 1, .l_linger = 0};
  setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
  // Takes the connection down now, though a child of fork() may hold another copy of the
  // descriptor.
  const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
  (void)connect(descriptor_, &nobody, sizeof(nobody));
  Close();
}

absl::StatusOr<TcpStream> ListenOn(const Address& address, int backlog) {
  absl::StatusOr<TcpStream> stream = Open(address);
  if (!stream.ok()) return stream;
  SetOption(stream->descriptor(), SOL_SOCKET, SO_REUSEADDR, 1);
  // An IPv6 listener is one for IPv6: who wants both families opens two.
  if (address.family == Family::kIpv6) {
    SetOption(stream->descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  }
  if (absl::Status status = BindTo(*stream, address); !status.ok()) return status;
  if (listen(stream->descriptor(), std::max(backlog, 1)) != 0) {
    return FromErrno(errno, "cannot listen at " + ToString(address));
  }
  return stream;
}

IoOutcome AcceptFrom(const TcpStream& listener, TcpStream& stream, int& error) {
  SocketAddress peer;
  const int descriptor =
      accept4(listener.descriptor(), peer.pointer(), &peer.bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor >= 0) {
    stream = TcpStream(descriptor, FromSystem(peer.pointer()));
    return IoOutcome::kMoved;
  }
  error = errno;
  if (error == EAGAIN || error == EWOULDBLOCK) return IoOutcome::kWouldBlock;
  return IoOutcome::kFailed;
}

}  // namespace esdp::fabric::qpip
