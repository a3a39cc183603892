#include "impl/switch/engine/tcp_pump.h"

#include <sys/socket.h>

#include <cerrno>

namespace esdp::switching {

TcpPump::TcpPump(int tcp, const ProgramEnd& program, size_t buffer_bytes)
    : tcp_(tcp), program_(program) {
  out_.bytes.resize(buffer_bytes);
  in_.bytes.resize(buffer_bytes);
}

void TcpPump::Move() {
  while (!failed_ && !reset_by_program_ && (MoveOut() || MoveIn())) continue;
}

// Each: whether something has moved.
bool TcpPump::MoveOut() {
  bool moved = false;
  if (out_.begin == out_.end && !out_.last) {
    const auto result = program_.Read(out_.bytes.data(), out_.bytes.size(), out_.end);
    out_.begin = 0;
    moved = result == ProgramEnd::Result::kMoved;
    reset_by_program_ = reset_by_program_ || result == ProgramEnd::Result::kReset;
    out_.last = result == ProgramEnd::Result::kEnded;
  }
  if (out_.begin < out_.end) {
    const ssize_t sent = send(tcp_, out_.bytes.data() + out_.begin, out_.end - out_.begin,
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) failed_ = true;
    if (sent <= 0) return moved;
    out_.begin += static_cast<size_t>(sent);
    sent_ += static_cast<uint64_t>(sent);
    moved = true;
  }
  if (out_.last && out_.begin == out_.end && !out_.ended) {
    (void)shutdown(tcp_, SHUT_WR);
    out_.ended = moved = true;
  }
  return moved;
}

bool TcpPump::MoveIn() {
  bool moved = false;
  if (in_.begin == in_.end && !in_.last) {
    const ssize_t got = recv(tcp_, in_.bytes.data(), in_.bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno != EAGAIN && errno != EINTR) failed_ = true;
    in_.begin = 0;
    in_.end = got > 0 ? static_cast<size_t>(got) : 0;
    received_ += in_.end;
    in_.last = got == 0;
    moved = got > 0;
  }
  if (in_.begin < in_.end) {
    size_t done = 0;
    const auto result = program_.Write(in_.bytes.data() + in_.begin, in_.end - in_.begin, done);
    if (result == ProgramEnd::Result::kEnded) {
      reset_by_program_ = program_.IsClosed();
      done = in_.end - in_.begin;
    }
    in_.begin += done;
    moved = moved || done > 0;
  }
  if (in_.last && in_.begin == in_.end && !in_.ended) {
    program_.EndOfInput();
    in_.ended = moved = true;
  }
  return moved;
}

}  // namespace esdp::switching
