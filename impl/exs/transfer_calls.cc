#include <sys/socket.h>

#include <vector>

#include "absl/types/span.h"
#include "impl/exs/convert.h"
#include "impl/exs/entry.h"

// exs_send, exs_recv, exs_sendmsg, exs_recvmsg.

namespace esdp::exs {
namespace {

constexpr uint64_t kPartsMax = 1024;

enum class Way { kSend, kReceive };

int CheckFlags(Way way, int flags) {
  const int known = way == Way::kSend ? MSG_OOB | MSG_NOSIGNAL | MSG_DONTWAIT
                                      : MSG_WAITALL | MSG_DONTWAIT | MSG_OOB | MSG_PEEK;
  if ((flags & ~known) != 0) return EINVAL;
  return way == Way::kReceive && (flags & (MSG_OOB | MSG_PEEK)) != 0 ? EOPNOTSUPP : 0;
}

absl::StatusOr<Region> RegisterOnce(Library& library, Way way, absl::Span<std::byte> bytes) {
  return way == Way::kSend ? library.context().RegisterReadOnly(bytes)
                           : library.context().Register(bytes);
}

// One range of memory as the library below wants it.
struct Part {
  Region region;  // keeps the slice's, also what is registered for this transfer alone
  Slice slice;
};

int MakePart(Library& library, Way way, const exs_iovec_t& range, Part* part) {
  if (range.exs_iov_mhandle != EXS_MHANDLE_UNREGISTERED) {
    return library.memory().Find(range.exs_iov_mhandle, range.exs_iov_base, range.exs_iov_len,
                                 &part->region, &part->slice);
  }
  if (range.exs_iov_base == nullptr) return EFAULT;
  const absl::Span<std::byte> bytes(static_cast<std::byte*>(range.exs_iov_base), range.exs_iov_len);
  absl::StatusOr<Region> once = RegisterOnce(library, way, bytes);
  if (!once.ok()) return ErrnoOf(once.status());
  part->region = *std::move(once);
  part->slice = part->region.slice();
  return 0;
}

SendFlags ToSendFlags(int flags) {
  return (flags & MSG_OOB) != 0 ? SendFlags::kUrgent : SendFlags::kNone;
}

RecvFlags ToRecvFlags(int flags) {
  return (flags & MSG_WAITALL) != 0 ? RecvFlags::kWaitAll : RecvFlags::kNone;
}

ExsSocket::Lane LaneOf(Way way) {
  return way == Way::kSend ? ExsSocket::Lane::kSending : ExsSocket::Lane::kOther;
}

int PostCopied(ExsSocket& socket, Queue& queue, const Operation& filled, Way way, int flags,
               absl::Span<std::byte> bytes) {
  return socket.Post(LaneOf(way), queue, filled,
                     [way, flags, bytes](Socket& below, const OpArgs& args) {
                       return way == Way::kSend ? below.SendCopy(bytes, ToSendFlags(flags), args)
                                                : below.RecvCopy(bytes, ToRecvFlags(flags), args);
                     });
}

int PostRange(Library& library, ExsSocket& socket, Queue& queue, Operation& filled, Way way,
              int flags, const exs_iovec_t& range) {
  if (const int error = CheckFlags(way, flags); error != 0) return error;
  filled.buffer = range.exs_iov_base;
  filled.memory = range.exs_iov_mhandle;
  const bool unregistered = range.exs_iov_mhandle == EXS_MHANDLE_UNREGISTERED;
  if (unregistered && (range.exs_iov_base != nullptr || range.exs_iov_len == 0) &&
      range.exs_iov_len < kDefaultThreshold) {
    // To register what is short costs more than to copy it.
    const absl::Span<std::byte> bytes(static_cast<std::byte*>(range.exs_iov_base),
                                      range.exs_iov_len);
    const int error = PostCopied(socket, queue, filled, way, flags, bytes);
    if (error != EAGAIN) return error;  // EAGAIN: the memory that is copied through is in use
  }
  Part part;
  if (const int error = MakePart(library, way, range, &part); error != 0) return error;
  return socket.Post(LaneOf(way), queue, filled,
                     [way, flags, part](Socket& below, const OpArgs& args) {
                       return way == Way::kSend ? below.Send(part.slice, ToSendFlags(flags), args)
                                                : below.Recv(part.slice, ToRecvFlags(flags), args);
                     });
}

int PostRanges(Library& library, ExsSocket& socket, Queue& queue, const Operation& filled, Way way,
               int flags, absl::Span<const exs_iovec_t> ranges) {
  if (const int error = CheckFlags(way, flags); error != 0) return error;
  std::vector<Region> regions;
  std::vector<Slice> slices;
  for (const exs_iovec_t& range : ranges) {
    const bool unregistered = range.exs_iov_mhandle == EXS_MHANDLE_UNREGISTERED;
    if (unregistered && range.exs_iov_len == 0) continue;
    Part part;
    if (const int error = MakePart(library, way, range, &part); error != 0) return error;
    regions.push_back(std::move(part.region));
    slices.push_back(part.slice);
  }
  if (slices.empty()) return PostCopied(socket, queue, filled, way, flags, {});
  return socket.Post(LaneOf(way), queue, filled,
                     [way, flags, regions, slices](Socket& below, const OpArgs& args) {
                       return way == Way::kSend ? below.SendV(slices, ToSendFlags(flags), args)
                                                : below.RecvV(slices, ToRecvFlags(flags), args);
                     });
}

int PostMessage(Library& library, ExsSocket& socket, Queue& queue, Operation& filled, Way way,
                int flags, exs_msghdr_t* message) {
  if (message == nullptr) return EFAULT;
  if (message->exs_msg_iovlen > kPartsMax) return EINVAL;
  if (message->exs_msg_iov == nullptr && message->exs_msg_iovlen > 0) return EFAULT;
  filled.message = message;
  return PostRanges(library, socket, queue, filled, way, flags,
                    absl::MakeConstSpan(message->exs_msg_iov, message->exs_msg_iovlen));
}

}  // namespace
}  // namespace esdp::exs

using esdp::exs::EnterPost;
using esdp::exs::Way;

extern "C" {

int exs_send(int fd, const void* buffer, size_t len, int flags, exs_qhandle_t queue,
             exs_ahandle_t handle, exs_mhandle_t memory) {
  const exs_iovec_t part = {const_cast<void*>(buffer), len, memory, 0, {}};
  return EnterPost({fd, queue, EXS_EVT_SEND, handle}, 1,
                   [&](auto& library, auto& socket, auto& found, auto& filled) {
                     return esdp::exs::PostRange(library, socket, found, filled, Way::kSend, flags,
                                                 part);
                   });
}

int exs_recv(int fd, void* buffer, size_t len, int flags, exs_qhandle_t queue, exs_ahandle_t handle,
             exs_mhandle_t memory) {
  const exs_iovec_t part = {buffer, len, memory, 0, {}};
  return EnterPost({fd, queue, EXS_EVT_RECV, handle}, 1,
                   [&](auto& library, auto& socket, auto& found, auto& filled) {
                     return esdp::exs::PostRange(library, socket, found, filled, Way::kReceive,
                                                 flags, part);
                   });
}

int exs_sendmsg(int fd, exs_msghdr_t* message, int flags, exs_qhandle_t queue,
                exs_ahandle_t handle) {
  return EnterPost({fd, queue, EXS_EVT_SENDMSG, handle}, 1,
                   [&](auto& library, auto& socket, auto& found, auto& filled) {
                     return esdp::exs::PostMessage(library, socket, found, filled, Way::kSend,
                                                   flags, message);
                   });
}

int exs_recvmsg(int fd, exs_msghdr_t* message, int flags, exs_qhandle_t queue,
                exs_ahandle_t handle) {
  return EnterPost({fd, queue, EXS_EVT_RECVMSG, handle}, 1,
                   [&](auto& library, auto& socket, auto& found, auto& filled) {
                     return esdp::exs::PostMessage(library, socket, found, filled, Way::kReceive,
                                                   flags, message);
                   });
}

}  // extern "C"
