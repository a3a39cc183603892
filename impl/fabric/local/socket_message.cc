#include "impl/fabric/local/socket_message.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <utility>

namespace esdp::fabric::local {
namespace {

constexpr size_t kDescriptorsMax = 4;  // of one message; more are refused

// All descriptors that came, so that none is left open.
bool TakeDescriptors(msghdr& message, Descriptor& first) {
  size_t count = 0;
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const size_t numbers = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < numbers; ++i) {
      int number = -1;
      CopyBytes(std::as_writable_bytes(std::span(&number, 1)),
                std::as_bytes(std::span(CMSG_DATA(control) + i * sizeof(int), sizeof(int))));
      Descriptor descriptor(number);
      if (++count == 1) first = std::move(descriptor);
    }
  }
  return count <= 1 && (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) == 0;
}

}  // namespace

bool SendMessage(int socket, ConstBytes bytes, const Descriptor* descriptor) {
  iovec content{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  if (descriptor != nullptr) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = descriptor->number();
    CopyBytes(std::as_writable_bytes(std::span(CMSG_DATA(header), sizeof(number))),
              std::as_bytes(std::span(&number, 1)));
  }
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

MessageOutcome ReceiveMessage(int socket, Bytes bytes, size_t& length, Descriptor& descriptor) {
  iovec content{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t received = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (received < 0) {
    return errno == EAGAIN || errno == EINTR ? MessageOutcome::kNone : MessageOutcome::kGone;
  }
  const bool is_plain = TakeDescriptors(message, descriptor);
  if (received == 0) return MessageOutcome::kGone;
  length = static_cast<size_t>(received);
  return is_plain ? MessageOutcome::kDone : MessageOutcome::kMalformed;
}

}  // namespace esdp::fabric::local
