#include "impl/switch/engine/far_end.h"

#include <sys/socket.h>

#include <cerrno>

namespace esdp::switching {

FarEnd::Result TcpEnd::Read(void* to, size_t room, size_t& got, bool& urgent) {
  urgent = false;
  const ssize_t bytes = ReceiveToMark(tcp_, to, room, urgent);
  got = bytes > 0 ? static_cast<size_t>(bytes) : 0;
  if (bytes > 0) return Result::kMoved;
  if (bytes == 0) return Result::kEnded;
  return errno == EAGAIN || errno == EINTR ? Result::kAgain : Result::kReset;
}

FarEnd::Result TcpEnd::Write(const void* from, size_t bytes, size_t& done, bool urgent) {
  const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (urgent ? MSG_OOB : 0);
  const ssize_t sent = send(tcp_, from, bytes, flags);
  done = sent > 0 ? static_cast<size_t>(sent) : 0;
  if (sent >= 0) return Result::kMoved;
  return errno == EAGAIN || errno == EINTR ? Result::kAgain : Result::kReset;
}

void TcpEnd::EndOfOutput() { (void)shutdown(tcp_, SHUT_WR); }

FarEnd::Result StreamEnd::Read(void* to, size_t room, size_t& got, bool& urgent) {
  const Moved moved = stream_->ReceiveToMark(to, room, urgent);
  got = moved.bytes > 0 ? static_cast<size_t>(moved.bytes) : 0;
  if (moved.bytes > 0) return Result::kMoved;
  if (moved.bytes == 0) return Result::kEnded;
  return moved.error == EAGAIN ? Result::kAgain : Result::kReset;
}

FarEnd::Result StreamEnd::Write(const void* from, size_t bytes, size_t& done, bool urgent) {
  iovec piece = {.iov_base = const_cast<void*>(from), .iov_len = bytes};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  const int flags = MSG_NOSIGNAL | (urgent ? MSG_OOB : 0);
  const Moved moved = stream_->Send(message, flags, /*waits=*/false);
  done = moved.bytes > 0 ? static_cast<size_t>(moved.bytes) : 0;
  if (moved.bytes >= 0) return Result::kMoved;
  if (moved.error == EAGAIN) return Result::kAgain;
  stream_->Abort();  // also where the connection lives, and memory has ended: who reads is told
  return Result::kReset;
}

void StreamEnd::EndOfOutput() { (void)stream_->Shutdown(SHUT_WR); }

}  // namespace esdp::switching
