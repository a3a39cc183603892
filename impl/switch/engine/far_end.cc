#include "impl/switch/engine/far_end.h"

#include <sys/socket.h>

#include <cerrno>

namespace esdp::switching {

FarEnd::Result TcpEnd::Read(void* to, size_t room, size_t& got) {
  const ssize_t bytes = recv(tcp_, to, room, MSG_DONTWAIT);
  got = bytes > 0 ? static_cast<size_t>(bytes) : 0;
  if (bytes > 0) return Result::kMoved;
  if (bytes == 0) return Result::kEnded;
  return errno == EAGAIN || errno == EINTR ? Result::kAgain : Result::kReset;
}

FarEnd::Result TcpEnd::Write(const void* from, size_t bytes, size_t& done) {
  const ssize_t sent = send(tcp_, from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  done = sent > 0 ? static_cast<size_t>(sent) : 0;
  if (sent >= 0) return Result::kMoved;
  return errno == EAGAIN || errno == EINTR ? Result::kAgain : Result::kReset;
}

void TcpEnd::EndOfOutput() { (void)shutdown(tcp_, SHUT_WR); }

FarEnd::Result StreamEnd::Read(void* to, size_t room, size_t& got) {
  iovec piece = {.iov_base = to, .iov_len = room};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  const Moved moved = stream_->Receive(message, 0, /*waits=*/false);
  got = moved.bytes > 0 ? static_cast<size_t>(moved.bytes) : 0;
  if (moved.bytes > 0) return Result::kMoved;
  if (moved.bytes == 0) return Result::kEnded;
  return moved.error == EAGAIN ? Result::kAgain : Result::kReset;
}

FarEnd::Result StreamEnd::Write(const void* from, size_t bytes, size_t& done) {
  iovec piece = {.iov_base = const_cast<void*>(from), .iov_len = bytes};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  const Moved moved = stream_->Send(message, MSG_NOSIGNAL, /*waits=*/false);
  done = moved.bytes > 0 ? static_cast<size_t>(moved.bytes) : 0;
  if (moved.bytes >= 0) return Result::kMoved;
  return moved.error == EAGAIN ? Result::kAgain : Result::kReset;
}

void StreamEnd::EndOfOutput() { (void)stream_->Shutdown(SHUT_WR); }

}  // namespace esdp::switching
