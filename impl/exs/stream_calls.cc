#include "impl/exs/stream_calls.h"

#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>
#include <vector>

namespace esdp::exs {

bool IsConnected(ExsSocket& socket) { return socket.socket().peer().port() != 0; }

bool Waits(const ExsSocket& socket, int flags) {
  return (flags & MSG_DONTWAIT) == 0 && (fcntl(socket.number(), F_GETFL) & O_NONBLOCK) == 0;
}

absl::Time DeadlineOf(Library& library, absl::Duration timeout) {
  return timeout == absl::ZeroDuration() ? absl::InfiniteFuture()
                                         : library.context().After(timeout);
}

// --- receiving -----------------------------------------------------------------------------------

namespace {

constexpr size_t kDiscardBytes = 64 * 1024;

// One piece: at least a byte, unless the stream ends.
Moved ReceiveInto(Library& library, ExsSocket& socket, absl::Span<std::byte> memory, int flags,
                  absl::Time deadline) {
  const Waiters::Place place(library);
  if (place.queue() == nullptr) return NotMoved(ENOBUFS);
  const Waited waited = PostAndWait(socket, *place.queue(), deadline, [&](Operation& filled) {
    filled.type = EXS_EVT_RECV;
    Transfer transfer;
    transfer.way = Way::kReceiving;
    transfer.wait_all = (flags & MSG_WAITALL) != 0 && deadline != absl::InfinitePast();
    transfer.peeks = (flags & MSG_PEEK) != 0;
    transfer.copies = true;
    Part part;
    part.base = memory.data();
    part.length = memory.size();
    transfer.parts.push_back(std::move(part));
    return socket.PostTransfer(*place.queue(), filled, std::move(transfer));
  });
  if (waited.error != 0) return NotMoved(waited.error);
  const auto bytes = static_cast<ssize_t>(waited.event.exs_evt_union.exs_evt_xfer.exs_evt_length);
  const int error = waited.event.exs_evt_errno;
  if (bytes > 0 || error == 0) return {bytes, 0};
  if (error != ECANCELED) return NotMoved(error);
  if (waited.taken_back == 0) return NotMoved(EBADF);  // another thread has closed it
  return NotMoved(waited.taken_back == EINTR ? EINTR : EAGAIN);
}

size_t BytesOf(std::span<const iovec> pieces) {
  size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

bool CanBeUsed(const iovec& piece) { return piece.iov_base != nullptr || piece.iov_len == 0; }

Moved ReceivePieces(Library& library, ExsSocket& socket, std::span<const iovec> pieces, int flags,
                    absl::Time deadline) {
  Moved all;
  for (const iovec& piece : pieces) {
    if (piece.iov_len == 0) continue;
    if (!CanBeUsed(piece)) return all.bytes > 0 ? all : NotMoved(EFAULT);
    const bool waits = all.bytes == 0 || (flags & MSG_WAITALL) != 0;
    const auto memory = absl::MakeSpan(static_cast<std::byte*>(piece.iov_base), piece.iov_len);
    const Moved more =
        ReceiveInto(library, socket, memory, flags, waits ? deadline : absl::InfinitePast());
    if (more.error != 0) return all.bytes > 0 ? all : more;
    all.bytes += more.bytes;
    // The end, or no more now; and who looks would see the same bytes again.
    if (static_cast<size_t>(more.bytes) < piece.iov_len || (flags & MSG_PEEK) != 0) break;
  }
  return all;
}

// What is received goes nowhere.
Moved Discard(Library& library, ExsSocket& socket, size_t bytes, int flags, absl::Time deadline) {
  std::vector<std::byte> nowhere(std::min(bytes, kDiscardBytes));
  return ReceiveInto(library, socket, absl::MakeSpan(nowhere), flags & ~MSG_WAITALL, deadline);
}

}  // namespace

Moved Receive(Library& library, ExsSocket& socket, msghdr& message, int flags) {
  message.msg_namelen = 0;
  message.msg_controllen = 0;
  message.msg_flags = 0;
  if ((flags & MSG_ERRQUEUE) != 0) return NotMoved(EAGAIN);
  if ((flags & MSG_OOB) != 0) return NotMoved(EINVAL);
  if (!IsConnected(socket)) return NotMoved(ENOTCONN);
  const std::span<const iovec> pieces(message.msg_iov, message.msg_iovlen);
  const size_t wanted = BytesOf(pieces);
  if (wanted == 0 || socket.calls().receive_shut()) return {};
  const absl::Time deadline = Waits(socket, flags)
                                  ? DeadlineOf(library, socket.calls().timeout(Way::kReceiving))
                                  : absl::InfinitePast();
  if ((flags & MSG_TRUNC) != 0) return Discard(library, socket, wanted, flags, deadline);
  return ReceivePieces(library, socket, pieces, flags, deadline);
}

size_t BytesToRead(Library& library, ExsSocket& socket) {
  std::vector<std::byte> seen(Ahead::kBytes);
  if (!IsConnected(socket) || socket.calls().receive_shut()) return 0;
  (void)ReceiveInto(library, socket, absl::MakeSpan(seen), MSG_PEEK, absl::InfinitePast());
  return socket.bytes_ahead();
}

// --- sending -------------------------------------------------------------------------------------

namespace {

// Of a piece as much as there is room for, or all, where it waits.
Moved SendFrom(Library& library, ExsSocket& socket, absl::Span<const std::byte> bytes, bool urgent,
               absl::Time deadline) {
  const std::shared_ptr<SendBuffer> buffer = socket.calls().buffer(socket.weak_from_this());
  Moved moved;
  for (;;) {
    int error = 0;
    const size_t taken = buffer->Put(bytes, urgent, &error);
    moved.bytes += static_cast<ssize_t>(taken);
    bytes.remove_prefix(taken);
    if (error == 0 && bytes.empty()) return moved;
    if (error == 0 && deadline == absl::InfinitePast()) error = EAGAIN;
    if (error == 0) {
      error = buffer->AwaitRoom(deadline == absl::InfiniteFuture()
                                    ? absl::InfiniteDuration()
                                    : deadline - library.context().Now());
    }
    if (error == ETIMEDOUT) error = EAGAIN;
    if (error != 0) {
      moved.error = error;
      return moved;
    }
  }
}

Moved SendPieces(Library& library, ExsSocket& socket, std::span<const iovec> pieces, bool urgent,
                 absl::Time deadline) {
  size_t left = BytesOf(pieces);
  Moved all;
  for (const iovec& piece : pieces) {
    if (piece.iov_len == 0) continue;
    if (!CanBeUsed(piece)) return all.bytes > 0 ? all : NotMoved(EFAULT);
    left -= piece.iov_len;
    const auto* const base = static_cast<const std::byte*>(piece.iov_base);
    const Moved more = SendFrom(library, socket, absl::MakeConstSpan(base, piece.iov_len),
                                urgent && left == 0, deadline);
    all.bytes += more.bytes;
    if (more.error != 0) return all.bytes > 0 ? all : NotMoved(more.error);
  }
  return all;
}

int WhyNotToSend(ExsSocket& socket, const msghdr& message, int flags) {
  if (message.msg_controllen > 0) return EINVAL;
  if (socket.calls().connecting()) return EAGAIN;
  if (!IsConnected(socket) || socket.calls().send_shut()) return EPIPE;
  return (flags & MSG_FASTOPEN) != 0 ? EISCONN : 0;
}

}  // namespace

Moved Send(Library& library, ExsSocket& socket, const msghdr& message, int flags) {
  const std::span<const iovec> pieces(message.msg_iov, message.msg_iovlen);
  Moved moved;
  if (const int error = WhyNotToSend(socket, message, flags); error != 0) {
    moved = NotMoved(error);
  } else {
    const absl::Time deadline = Waits(socket, flags)
                                    ? DeadlineOf(library, socket.calls().timeout(Way::kSending))
                                    : absl::InfinitePast();
    moved = SendPieces(library, socket, pieces, (flags & MSG_OOB) != 0, deadline);
    if (moved.error != 0 || !socket.calls().has_room()) socket.calls().readiness().Refresh(false);
  }
  if (moved.error == EPIPE && (flags & MSG_NOSIGNAL) == 0) {
    (void)pthread_kill(pthread_self(), SIGPIPE);
  }
  return moved;
}

// --- the end of a direction ----------------------------------------------------------------------

namespace {

int ShutSending(Library& library, ExsSocket& socket) {
  library.inner().Collect();
  const std::shared_ptr<Queue> queue = library.inner().queue();
  if (queue == nullptr || !queue->Reserve(1)) return ENOBUFS;
  Operation filled;
  filled.type = EXS_EVT_SHUTDOWN;
  filled.inner = true;
  filled.handle = &library.inner().unheard();
  const int error =
      socket.Post(ExsSocket::Lane::kSending, *queue, filled,
                  [](Socket& below, const OpArgs& args) { return below.Shutdown(args); });
  if (error != 0) queue->Release(1);
  return error == EPIPE ? 0 : error;  // exs_shutdown came before
}

}  // namespace

int Shutdown(Library& library, ExsSocket& socket, int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return EINVAL;
  if (!IsConnected(socket)) return ENOTCONN;
  if (how != SHUT_WR) socket.calls().Shut(Way::kReceiving);
  if (how == SHUT_RD || socket.calls().send_shut()) return 0;
  const int error = ShutSending(library, socket);
  if (error == 0) socket.calls().Shut(Way::kSending);
  socket.calls().readiness().Refresh(false);
  return error;
}

}  // namespace esdp::exs
