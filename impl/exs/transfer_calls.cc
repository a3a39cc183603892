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

// A transfer on its way to the post: ranges of regions, or of memory that is copied.
struct Transfer {
  std::vector<Region> regions;  // keeps what is registered for this transfer alone
  std::vector<Slice> slices;
  bool copied = false;  // of unregistered memory, and short
  absl::Span<std::byte> bytes;
};

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

int AddPart(Library& library, Way way, const exs_iovec_t& part, Transfer* transfer) {
  Region region;
  Slice slice;
  if (part.exs_iov_mhandle != EXS_MHANDLE_UNREGISTERED) {
    const int error = library.memory().Find(part.exs_iov_mhandle, part.exs_iov_base,
                                            part.exs_iov_len, &region, &slice);
    if (error != 0) return error;
  } else {
    if (part.exs_iov_len == 0) return 0;
    if (part.exs_iov_base == nullptr) return EFAULT;
    const absl::Span<std::byte> bytes(static_cast<std::byte*>(part.exs_iov_base), part.exs_iov_len);
    absl::StatusOr<Region> once = RegisterOnce(library, way, bytes);
    if (!once.ok()) return ErrnoOf(once.status());
    region = *std::move(once);
    slice = region.slice();
  }
  transfer->regions.push_back(std::move(region));
  transfer->slices.push_back(slice);
  return 0;
}

absl::StatusOr<OpId> PostTransfer(Way way, const Transfer& transfer, int flags, Socket& socket,
                                  const OpArgs& args) {
  const SendFlags send = (flags & MSG_OOB) != 0 ? SendFlags::kUrgent : SendFlags::kNone;
  const RecvFlags receive = (flags & MSG_WAITALL) != 0 ? RecvFlags::kWaitAll : RecvFlags::kNone;
  if (transfer.copied) {
    return way == Way::kSend ? socket.SendCopy(transfer.bytes, send, args)
                             : socket.RecvCopy(transfer.bytes, receive, args);
  }
  if (transfer.slices.size() == 1) {
    return way == Way::kSend ? socket.Send(transfer.slices[0], send, args)
                             : socket.Recv(transfer.slices[0], receive, args);
  }
  return way == Way::kSend ? socket.SendV(transfer.slices, send, args)
                           : socket.RecvV(transfer.slices, receive, args);
}

int Post(Library& library, ExsSocket& socket, Queue& queue, const Operation& filled, Way way,
         int flags, absl::Span<const exs_iovec_t> parts) {
  if (const int error = CheckFlags(way, flags); error != 0) return error;
  Transfer transfer;
  for (const exs_iovec_t& part : parts) {
    if (const int error = AddPart(library, way, part, &transfer); error != 0) return error;
  }
  if (transfer.slices.empty()) transfer.copied = true;
  return socket.Post(queue, filled, [way, flags, transfer](Socket& below, const OpArgs& args) {
    return PostTransfer(way, transfer, flags, below, args);
  });
}

// One range: of unregistered memory what is short is copied, since to register it costs more.
int PostOne(Library& library, ExsSocket& socket, Queue& queue, Operation& filled, Way way,
            int flags, const exs_iovec_t& part) {
  filled.buffer = part.exs_iov_base;
  filled.memory = part.exs_iov_mhandle;
  const bool unregistered = part.exs_iov_mhandle == EXS_MHANDLE_UNREGISTERED;
  if (unregistered && part.exs_iov_base != nullptr && part.exs_iov_len < kDefaultThreshold) {
    if (const int error = CheckFlags(way, flags); error != 0) return error;
    Transfer transfer;
    transfer.copied = true;
    transfer.bytes = absl::MakeSpan(static_cast<std::byte*>(part.exs_iov_base), part.exs_iov_len);
    const int error =
        socket.Post(queue, filled, [way, flags, transfer](Socket& below, const OpArgs& args) {
          return PostTransfer(way, transfer, flags, below, args);
        });
    if (error != EAGAIN) return error;  // EAGAIN: the library's own memory is in use
  }
  return Post(library, socket, queue, filled, way, flags, absl::MakeConstSpan(&part, 1));
}

int PostMessage(Library& library, ExsSocket& socket, Queue& queue, Operation& filled, Way way,
                int flags, exs_msghdr_t* message) {
  if (message == nullptr) return EFAULT;
  if (message->exs_msg_iovlen > kPartsMax) return EINVAL;
  if (message->exs_msg_iov == nullptr && message->exs_msg_iovlen > 0) return EFAULT;
  filled.message = message;
  return Post(library, socket, queue, filled, way, flags,
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
                     return esdp::exs::PostOne(library, socket, found, filled, Way::kSend, flags,
                                               part);
                   });
}

int exs_recv(int fd, void* buffer, size_t len, int flags, exs_qhandle_t queue, exs_ahandle_t handle,
             exs_mhandle_t memory) {
  const exs_iovec_t part = {buffer, len, memory, 0, {}};
  return EnterPost({fd, queue, EXS_EVT_RECV, handle}, 1,
                   [&](auto& library, auto& socket, auto& found, auto& filled) {
                     return esdp::exs::PostOne(library, socket, found, filled, Way::kReceive, flags,
                                               part);
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
