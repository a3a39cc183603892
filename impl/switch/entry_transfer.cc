#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>

#include "impl/switch/entry.h"
#include "impl/switch/libc_calls.h"

// The calls that move bytes.

namespace esdp::libc {
namespace {

msghdr MessageOf(const iovec* pieces, size_t count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces);
  message.msg_iovlen = count;
  return message;
}

template <typename Next>
ssize_t ReceiveOr(int fd, void* to, size_t bytes, int flags, const Next& next) {
  return Route(
      fd,
      [=](Taker& who) {
        const iovec piece = {to, bytes};
        msghdr message = MessageOf(&piece, 1);
        return who.Receive(fd, message, flags);
      },
      next);
}

// As TCP has it: no address is told.
template <typename Next>
ssize_t ReceiveFromOr(int fd, void* to, size_t bytes, int flags, sockaddr* address, socklen_t* len,
                      const Next& next) {
  return Route(
      fd,
      [=](Taker& who) {
        const iovec piece = {to, bytes};
        msghdr message = MessageOf(&piece, 1);
        message.msg_name = address;
        const Taker::Count got = who.Receive(fd, message, flags);
        if (got.value_or(-1) >= 0 && address != nullptr && len != nullptr) *len = 0;
        return got;
      },
      next);
}

template <typename Next>
ssize_t SendOr(int fd, const void* from, size_t bytes, int flags, const Next& next) {
  return Route(
      fd,
      [=](Taker& who) {
        const iovec piece = {const_cast<void*>(from), bytes};
        return who.Send(fd, MessageOf(&piece, 1), flags);
      },
      next);
}

Taker::Count Vector(int fd, const iovec* pieces, int count, bool sends, Taker& who) {
  if (count < 0) {
    errno = EINVAL;
    return -1;
  }
  // As the system: it asks no socket for nothing, shut down or not.
  const std::span<const iovec> all(pieces, static_cast<size_t>(count));
  const auto is_empty = [](const iovec& piece) { return piece.iov_len == 0; };
  if ((pieces != nullptr || count == 0) && std::ranges::all_of(all, is_empty)) return 0;
  msghdr message = MessageOf(pieces, all.size());
  return sends ? who.Send(fd, message, 0) : who.Receive(fd, message, 0);
}

// Of several messages: until one is not whole, or there is nothing more now.
template <typename Move>
Taker::Answer Each(mmsghdr* messages, unsigned count, const Move& move) {
  unsigned moved = 0;
  for (; moved < count; ++moved) {
    const Taker::Count bytes = move(messages[moved].msg_hdr, moved);
    if (!bytes.has_value()) return std::nullopt;
    if (*bytes < 0) break;
    messages[moved].msg_len = static_cast<unsigned>(*bytes);
    if (*bytes == 0) return static_cast<int>(moved + 1);
  }
  return moved > 0 || count == 0 ? static_cast<int>(moved) : -1;
}

// Whether numbers may go to another process with the message.
bool HandsOver(int fd, const msghdr* message) {
  return taken_numbers.any() && message != nullptr && message->msg_controllen > 0 &&
         !taken_numbers.Has(fd);
}

[[gnu::noinline, gnu::cold]] void TellPassedOn(const msghdr& message) {
  Taker* const who = taker.load(std::memory_order_acquire);
  if (who != nullptr && !ToLibc::holds()) who->PassedOn(message);
}

bool MayBring(const msghdr* message) { return message != nullptr && message->msg_controllen > 0; }

[[gnu::noinline, gnu::cold]] void TellHandedOver(const msghdr& message) {
  Taker* const who = taker.load(std::memory_order_acquire);
  if (who != nullptr && !ToLibc::holds()) who->HandedOver(message);
}

}  // namespace

ESDP_SHORT_ENTRY(ssize_t, Read, read, (int fd, void* to, size_t bytes), (fd, to, bytes),
                 taken_numbers.IsPlain(fd)) {
  return ReceiveOr(fd, to, bytes, 0, [=] { return real.read.get()(fd, to, bytes); });
}

ESDP_ENTRY(ssize_t, CheckedRead, "__read_chk", (int fd, void* to, size_t bytes, size_t room)) {
  const auto next = [=] { return real.read_chk.get()(fd, to, bytes, room); };
  return bytes > room ? next() : ReceiveOr(fd, to, bytes, 0, next);
}

ESDP_SHORT_ENTRY(ssize_t, Recv, recv, (int fd, void* to, size_t bytes, int flags),
                 (fd, to, bytes, flags), taken_numbers.IsPlain(fd)) {
  return ReceiveOr(fd, to, bytes, flags, [=] { return real.recv.get()(fd, to, bytes, flags); });
}

ESDP_ENTRY(ssize_t, CheckedRecv, "__recv_chk",
           (int fd, void* to, size_t bytes, size_t room, int flags)) {
  const auto next = [=] { return real.recv_chk.get()(fd, to, bytes, room, flags); };
  return bytes > room ? next() : ReceiveOr(fd, to, bytes, flags, next);
}

ESDP_SHORT_ENTRY(ssize_t, RecvFrom, recvfrom,
                 (int fd, void* to, size_t bytes, int flags, sockaddr* address, socklen_t* len),
                 (fd, to, bytes, flags, address, len), taken_numbers.IsPlain(fd)) {
  return ReceiveFromOr(fd, to, bytes, flags, address, len,
                       [=] { return real.recvfrom.get()(fd, to, bytes, flags, address, len); });
}

ESDP_ENTRY(ssize_t, CheckedRecvFrom, "__recvfrom_chk",
           (int fd, void* to, size_t bytes, size_t room, int flags, sockaddr* address,
            socklen_t* len)) {
  const auto next = [=] {
    return real.recvfrom_chk.get()(fd, to, bytes, room, flags, address, len);
  };
  return bytes > room ? next() : ReceiveFromOr(fd, to, bytes, flags, address, len, next);
}

ESDP_SHORT_ENTRY(ssize_t, ReadV, readv, (int fd, const iovec* pieces, int count),
                 (fd, pieces, count), taken_numbers.IsPlain(fd)) {
  return Route(
      fd, [=](Taker& who) { return Vector(fd, pieces, count, /*sends=*/false, who); },
      [=] { return real.readv.get()(fd, pieces, count); });
}

ESDP_SHORT_ENTRY(ssize_t, RecvMsg, recvmsg, (int fd, msghdr* message, int flags),
                 (fd, message, flags), taken_numbers.IsPlain(fd) && !MayBring(message)) {
  return Route(
      fd, [=](Taker& who) { return who.Receive(fd, *message, flags); },
      [=] {
        const ssize_t got = real.recvmsg.get()(fd, message, flags);
        if (got >= 0 && MayBring(message)) TellHandedOver(*message);
        return got;
      });
}

// The time to wait is only looked at between messages, as the system does.
ESDP_ENTRY(int, RecvMMsg, "recvmmsg",
           (int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout)) {
  return Route(
      fd,
      [&](Taker& who) {
        return Each(messages, count, [&](msghdr& each, unsigned before) {
          const bool waits = before == 0 || (flags & MSG_WAITFORONE) == 0;
          const int own = flags & ~MSG_WAITFORONE;
          return who.Receive(fd, each, waits ? own : own | MSG_DONTWAIT);
        });
      },
      [=] { return real.recvmmsg.get()(fd, messages, count, flags, timeout); });
}

ESDP_SHORT_ENTRY(ssize_t, Write, write, (int fd, const void* from, size_t bytes), (fd, from, bytes),
                 taken_numbers.IsPlain(fd)) {
  return SendOr(fd, from, bytes, 0, [=] { return real.write.get()(fd, from, bytes); });
}

ESDP_SHORT_ENTRY(ssize_t, Send, send, (int fd, const void* from, size_t bytes, int flags),
                 (fd, from, bytes, flags), taken_numbers.IsPlain(fd)) {
  return SendOr(fd, from, bytes, flags, [=] { return real.send.get()(fd, from, bytes, flags); });
}

ESDP_SHORT_ENTRY(ssize_t, SendTo, sendto,
                 (int fd, const void* from, size_t bytes, int flags, const sockaddr* address,
                  socklen_t len),
                 (fd, from, bytes, flags, address, len), taken_numbers.IsPlain(fd)) {
  return Route(
      fd,
      [=](Taker& who) {
        const iovec piece = {const_cast<void*>(from), bytes};
        msghdr message = MessageOf(&piece, 1);
        message.msg_name = const_cast<sockaddr*>(address);
        message.msg_namelen = address != nullptr ? len : 0;
        return who.Send(fd, message, flags);
      },
      [=] { return real.sendto.get()(fd, from, bytes, flags, address, len); });
}

ESDP_SHORT_ENTRY(ssize_t, WriteV, writev, (int fd, const iovec* pieces, int count),
                 (fd, pieces, count), taken_numbers.IsPlain(fd)) {
  return Route(
      fd, [=](Taker& who) { return Vector(fd, pieces, count, /*sends=*/true, who); },
      [=] { return real.writev.get()(fd, pieces, count); });
}

ESDP_ENTRY(ssize_t, SendMsg, "sendmsg", (int fd, const msghdr* message, int flags)) {
  if (HandsOver(fd, message)) TellPassedOn(*message);
  return Route(
      fd, [=](Taker& who) { return who.Send(fd, *message, flags); },
      [=] { return real.sendmsg.get()(fd, message, flags); });
}

ESDP_ENTRY(int, SendMMsg, "sendmmsg", (int fd, mmsghdr* messages, unsigned count, int flags)) {
  for (unsigned i = 0; messages != nullptr && i < count; ++i) {
    if (HandsOver(fd, &messages[i].msg_hdr)) TellPassedOn(messages[i].msg_hdr);
  }
  return Route(
      fd,
      [&](Taker& who) {
        return Each(messages, count,
                    [&](const msghdr& each, unsigned) { return who.Send(fd, each, flags); });
      },
      [=] { return real.sendmmsg.get()(fd, messages, count, flags); });
}

}  // namespace esdp::libc
