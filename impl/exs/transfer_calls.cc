#include <sys/socket.h>

#include <vector>

#include "absl/types/span.h"
#include "impl/exs/convert.h"
#include "impl/exs/entry.h"
#include "impl/exs/memory_part.h"

// exs_send, exs_recv, exs_sendmsg, exs_recvmsg.

namespace esdp::exs {
namespace {

constexpr uint64_t kPartsMax = 1024;

int CheckFlags(Way way, int flags) {
  const int known = way == Way::kSending ? MSG_OOB | MSG_NOSIGNAL | MSG_DONTWAIT
                                         : MSG_WAITALL | MSG_DONTWAIT | MSG_OOB | MSG_PEEK;
  if ((flags & ~known) != 0) return EINVAL;
  return way == Way::kReceiving && (flags & MSG_OOB) != 0 ? EOPNOTSUPP : 0;
}

SendFlags ToSendFlags(int flags) {
  return (flags & MSG_OOB) != 0 ? SendFlags::kUrgent : SendFlags::kNone;
}

RecvFlags ToRecvFlags(int flags) {
  return (flags & MSG_WAITALL) != 0 ? RecvFlags::kWaitAll : RecvFlags::kNone;
}

ExsSocket::Lane LaneOf(Way way) {
  return way == Way::kSending ? ExsSocket::Lane::kSending : ExsSocket::Lane::kReceivingNow;
}

// EAGAIN also for a send while another is being carried out in pieces.
int PostCopied(ExsSocket& socket, Queue& queue, const Operation& filled, Way way, int flags,
               absl::Span<std::byte> bytes) {
  if (way == Way::kReceiving) {
    return socket.Post(ExsSocket::Lane::kReceivingNow, queue, filled,
                       [flags, bytes](Socket& below, const OpArgs& args) {
                         return below.RecvCopy(bytes, ToRecvFlags(flags), args);
                       });
  }
  return socket.Post(ExsSocket::Lane::kSendingNow, queue, filled,
                     [flags, bytes](Socket& below, const OpArgs& args) {
                       return below.SendCopy(bytes, ToSendFlags(flags), args);
                     });
}

int PostEmpty(ExsSocket& socket, Queue& queue, const Operation& filled, Way way, int flags) {
  return socket.Post(LaneOf(way), queue, filled, [way, flags](Socket& below, const OpArgs& args) {
    return way == Way::kSending ? below.SendCopy({}, ToSendFlags(flags), args)
                                : below.RecvCopy({}, ToRecvFlags(flags), args);
  });
}

int PostSlices(ExsSocket& socket, Queue& queue, const Operation& filled, Way way, int flags,
               const std::vector<Part>& parts) {
  std::vector<Region> regions;  // keep the slices'
  std::vector<Slice> slices;
  for (const Part& part : parts) {
    regions.push_back(part.region);
    slices.push_back(part.slice);
  }
  return socket.Post(LaneOf(way), queue, filled,
                     [way, flags, regions, slices](Socket& below, const OpArgs& args) {
                       return way == Way::kSending ? below.SendV(slices, ToSendFlags(flags), args)
                                                   : below.RecvV(slices, ToRecvFlags(flags), args);
                     });
}

int PostSlice(ExsSocket& socket, Queue& queue, const Operation& filled, Way way, int flags,
              const Part& part) {
  return socket.Post(
      LaneOf(way), queue, filled,
      [way, flags, region = part.region, slice = part.slice](Socket& below, const OpArgs& args) {
        return way == Way::kSending ? below.Send(slice, ToSendFlags(flags), args)
                                    : below.Recv(slice, ToRecvFlags(flags), args);
      });
}

Transfer MakeTransfer(Way way, int flags, std::vector<Part> parts) {
  Transfer transfer;
  transfer.way = way;
  transfer.urgent = (flags & MSG_OOB) != 0;
  transfer.wait_all = (flags & MSG_WAITALL) != 0;
  transfer.peeks = (flags & MSG_PEEK) != 0;
  transfer.parts = std::move(parts);
  return transfer;
}

// Memory of which nobody registered some, and what waits behind such.
int PostTransfer(ExsSocket& socket, Queue& queue, const Operation& filled, Way way, int flags,
                 std::vector<Part> parts) {
  return socket.PostTransfer(queue, filled, MakeTransfer(way, flags, std::move(parts)));
}

int PostRange(Library& library, ExsSocket& socket, Queue& queue, Operation& filled, Way way,
              int flags, const exs_iovec_t& range) {
  if (const int error = CheckFlags(way, flags); error != 0) return error;
  filled.buffer = range.exs_iov_base;
  filled.memory = range.exs_iov_mhandle;
  Part part;
  if (const int error = MakeMemoryPart(library, range, &part); error != 0) return error;
  const bool peeks = (flags & MSG_PEEK) != 0 && part.length > 0;
  const bool registered = range.exs_iov_mhandle != EXS_MHANDLE_UNREGISTERED;
  if (!peeks && (registered || part.length < kDefaultThreshold)) {
    // To register what is short costs more than to copy it.
    const absl::Span<std::byte> bytes(part.base, part.length);
    const int error = registered ? PostSlice(socket, queue, filled, way, flags, part)
                                 : PostCopied(socket, queue, filled, way, flags, bytes);
    // EAGAIN: the memory that is copied through is in use, or something is carried out in pieces.
    if (error != EAGAIN || (registered && way == Way::kSending)) return error;
  }
  std::vector<Part> parts;
  parts.push_back(std::move(part));
  return PostTransfer(socket, queue, filled, way, flags, std::move(parts));
}

int PostRanges(Library& library, ExsSocket& socket, Queue& queue, const Operation& filled, Way way,
               int flags, absl::Span<const exs_iovec_t> ranges) {
  if (const int error = CheckFlags(way, flags); error != 0) return error;
  std::vector<Part> parts;
  bool registered = true;
  for (const exs_iovec_t& range : ranges) {
    const bool unregistered = range.exs_iov_mhandle == EXS_MHANDLE_UNREGISTERED;
    if (unregistered && range.exs_iov_len == 0) continue;
    registered = registered && !unregistered;
    const int error = MakeMemoryPart(library, range, &parts.emplace_back());
    if (error != 0) return error;
  }
  if (parts.empty()) {
    const int error = PostEmpty(socket, queue, filled, way, flags);
    if (error != EAGAIN || way == Way::kSending) return error;
  }
  if (registered && !parts.empty() && (flags & MSG_PEEK) == 0) {
    const int error = PostSlices(socket, queue, filled, way, flags, parts);
    if (error != EAGAIN || way == Way::kSending) return error;
  }
  return PostTransfer(socket, queue, filled, way, flags, std::move(parts));
}

// On a socket of the system. One that only looks does not wait for more than there is.
int PostPlain(Library& library, PlainStream& stream, Queue& queue, const Operation& filled, Way way,
              int flags, absl::Span<const exs_iovec_t> ranges) {
  if (const int error = CheckFlags(way, flags); error != 0) return error;
  if ((flags & MSG_PEEK) != 0 && (flags & MSG_WAITALL) != 0) return EOPNOTSUPP;
  std::vector<Part> parts;
  for (const exs_iovec_t& range : ranges) {
    if (range.exs_iov_mhandle == EXS_MHANDLE_UNREGISTERED && range.exs_iov_len == 0) continue;
    const int error = MakeMemoryPart(library, range, &parts.emplace_back());
    if (error != 0) return error;
  }
  return stream.Post(queue.shared_from_this(), filled, MakeTransfer(way, flags, std::move(parts)));
}

int CheckMessage(const exs_msghdr_t* message) {
  if (message == nullptr) return EFAULT;
  if (message->exs_msg_iovlen > kPartsMax) return EINVAL;
  return message->exs_msg_iov == nullptr && message->exs_msg_iovlen > 0 ? EFAULT : 0;
}

absl::Span<const exs_iovec_t> RangesOf(const exs_msghdr_t* message) {
  return absl::MakeConstSpan(message->exs_msg_iov, message->exs_msg_iovlen);
}

// exs_send and exs_recv.
int MoveRange(const Posting& posting, Way way, int flags, const exs_iovec_t& range) noexcept {
  return EnterPost(
      posting, 1,
      [&](auto& library, auto& socket, auto& queue, auto& filled) {
        return PostRange(library, socket, queue, filled, way, flags, range);
      },
      [&](auto& library, auto& stream, auto& queue, auto& filled) {
        filled.buffer = range.exs_iov_base;
        filled.memory = range.exs_iov_mhandle;
        return PostPlain(library, stream, queue, filled, way, flags,
                         absl::MakeConstSpan(&range, 1));
      });
}

// exs_sendmsg and exs_recvmsg.
int MoveMessage(const Posting& posting, Way way, int flags, exs_msghdr_t* message) noexcept {
  const int wrong = CheckMessage(message);
  return EnterPost(
      posting, 1,
      [&](auto& library, auto& socket, auto& queue, auto& filled) {
        if (wrong != 0) return wrong;
        filled.message = message;
        return PostRanges(library, socket, queue, filled, way, flags, RangesOf(message));
      },
      [&](auto& library, auto& stream, auto& queue, auto& filled) {
        if (wrong != 0) return wrong;
        filled.message = message;
        return PostPlain(library, stream, queue, filled, way, flags, RangesOf(message));
      });
}

}  // namespace
}  // namespace esdp::exs

using esdp::exs::MoveMessage;
using esdp::exs::MoveRange;
using esdp::exs::Way;

extern "C" {

int exs_send(int fd, const void* buffer, size_t len, int flags, exs_qhandle_t queue,
             exs_ahandle_t handle, exs_mhandle_t memory) {
  const exs_iovec_t part = {const_cast<void*>(buffer), len, memory, 0, {}};
  return MoveRange({fd, queue, EXS_EVT_SEND, handle}, Way::kSending, flags, part);
}

int exs_recv(int fd, void* buffer, size_t len, int flags, exs_qhandle_t queue, exs_ahandle_t handle,
             exs_mhandle_t memory) {
  const exs_iovec_t part = {buffer, len, memory, 0, {}};
  return MoveRange({fd, queue, EXS_EVT_RECV, handle}, Way::kReceiving, flags, part);
}

int exs_sendmsg(int fd, exs_msghdr_t* message, int flags, exs_qhandle_t queue,
                exs_ahandle_t handle) {
  return MoveMessage({fd, queue, EXS_EVT_SENDMSG, handle}, Way::kSending, flags, message);
}

int exs_recvmsg(int fd, exs_msghdr_t* message, int flags, exs_qhandle_t queue,
                exs_ahandle_t handle) {
  return MoveMessage({fd, queue, EXS_EVT_RECVMSG, handle}, Way::kReceiving, flags, message);
}

}  // extern "C"
