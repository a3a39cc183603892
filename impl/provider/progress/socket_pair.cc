#include "impl/provider/progress/socket_pair.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <utility>

namespace esdp::provider {
namespace {

// More are taken out again before one is put in for a new edge.
constexpr int kBytesMax = 16;
// With the smallest send buffer that there is, one message of this size makes a queue full: it is so
// with more than a quarter of it.
constexpr size_t kFillBytes = 2048;
constexpr int kSmallest = 1;  // the system makes the least of it that there is
constexpr int kNow = MSG_DONTWAIT | MSG_NOSIGNAL;

bool PutByte(int end, int flags = 0) {
  const char byte = 0;
  return send(end, &byte, 1, kNow | flags) == 1;
}

// The system doubles what it is told.
int SendBufferOf(int end) {
  int bytes = 0;
  socklen_t length = sizeof(bytes);
  (void)getsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, &length);
  return bytes / 2;
}

void SetSendBuffer(int end, int bytes) {
  (void)setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

}  // namespace

bool SocketPair::Open() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return false;
  }
  shown_end_ = ends[0];
  hidden_end_ = ends[1];
  SetSendBuffer(shown_end_, kSmallest);
  return true;
}

void SocketPair::Adopt(int shown, int hidden) {
  shown_end_ = shown;
  hidden_end_ = hidden;
  room_before_ = SendBufferOf(shown);
  SetSendBuffer(shown, kSmallest);
}

SocketPair::Ends SocketPair::Release() {
  if (has_ended() || peer_ended_ || room_before_ == 0) return {};
  ShowInput(/*readable=*/false, /*urgent=*/false, /*arrived=*/false);
  ShowRoom(true);
  SetSendBuffer(shown_end_, room_before_);
  return {std::exchange(shown_end_, -1), std::exchange(hidden_end_, -1)};
}

SocketPair::~SocketPair() {
  if (hidden_end_ >= 0) close(hidden_end_);
  if (shown_end_ >= 0 && !lent_) close(shown_end_);
}

void SocketPair::Lend(int number) {
  if (shown_end_ != number) close(shown_end_);
  shown_end_ = number;
  lent_ = true;
}

void SocketPair::TakeUrgent() {
  char byte = 0;
  (void)recv(shown_end_, &byte, 1, MSG_OOB | MSG_DONTWAIT);
  urgent_ = false;
}

void SocketPair::ShowInput(bool readable, bool urgent, bool arrived) {
  if (peer_ended_ && urgent_ && !urgent && !has_ended()) TakeUrgent();
  // Readable it is already, and put in once more the byte would be told of by a second signal.
  if (urgent && urgent_ && !peer_ended_ && !has_ended()) {
    if (readable && (arrived || bytes_ == 0) && bytes_ < kBytesMax && PutByte(hidden_end_))
      ++bytes_;
    return;
  }
  const bool changes = readable != (bytes_ > 0) || urgent != urgent_;
  if (peer_ended_ || has_ended() || (!changes && !(readable && arrived))) return;
  if (changes || bytes_ == kBytesMax) {
    const bool was_urgent = urgent_;
    if (was_urgent) TakeUrgent();
    if (was_urgent || bytes_ > 0) Drain(shown_end_, was_urgent);
    bytes_ = 0;
  }
  if (readable && PutByte(hidden_end_)) ++bytes_;
  if (urgent && !urgent_) urgent_ = PutByte(hidden_end_, MSG_OOB);
}

void SocketPair::ShowRoom(bool writable) {
  if (writable != full_ || has_ended()) return;
  full_ = !writable;
  if (writable) return Drain(hidden_end_);
  static constexpr std::array<char, kFillBytes> kFilling{};
  (void)send(shown_end_, kFilling.data(), kFilling.size(), kNow);
}

void SocketPair::ShowPeerEnd(bool again) {
  if (has_ended() || (std::exchange(peer_ended_, true) && !again)) return;
  (void)shutdown(hidden_end_, SHUT_WR);  // each time an edge
}

// A UNIX socket that is closed with bytes unread resets its peer.
void SocketPair::ShowEnd(bool reset) {
  if (has_ended()) return;
  Drain(hidden_end_);
  if (reset) (void)PutByte(shown_end_);
  close(std::exchange(hidden_end_, -1));
}

// A read ends at the place of an urgent byte. Otherwise what does not fill it was the last.
void SocketPair::Drain(int end, bool marked) {
  std::array<char, 2 * kFillBytes> taken;
  const ssize_t last = marked ? 1 : ssize_t{taken.size()};
  while (recv(end, taken.data(), taken.size(), MSG_DONTWAIT) >= last) continue;
}

}  // namespace esdp::provider
