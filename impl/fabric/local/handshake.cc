#include "impl/fabric/local/handshake.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <utility>

namespace esdp::fabric::local {
namespace {

constexpr size_t kDescriptorsMax = 4;  // of one message; more are refused
constexpr uint32_t kPortMax = 0xffff;

// All descriptors that came, so that none is left open.
bool TakeDescriptors(msghdr& message, Descriptor& block) {
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
      if (++count == 1) block = std::move(descriptor);
    }
  }
  return count <= 1 && (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) == 0;
}

bool IsWellFormed(const Hello& hello) {
  return hello.magic == kHelloMagic && hello.layout == kHelloLayout &&
         hello.kind >= HelloKind::kRequest && hello.kind <= HelloKind::kReject &&
         hello.private_data_bytes <= kPrivateDataMax;
}

}  // namespace

HelloAddress ToHello(const Address& address) {
  return {.family = static_cast<uint32_t>(address.family),
          .port = address.port,
          .scope_id = address.scope_id,
          .bytes = address.bytes};
}

bool IsAddress(const HelloAddress& address) {
  return (address.family == static_cast<uint32_t>(Family::kIpv4) ||
          address.family == static_cast<uint32_t>(Family::kIpv6)) &&
         address.port != 0 && address.port <= kPortMax;
}

Address FromHello(const HelloAddress& address) {
  return {.family = static_cast<Family>(address.family),
          .port = static_cast<uint16_t>(address.port),
          .scope_id = address.scope_id,
          .bytes = address.bytes};
}

void Hello::SetPrivateData(ConstBytes bytes) {
  private_data_bytes = static_cast<uint32_t>(bytes.size());
  CopyBytes(private_data, bytes);
}

bool SendHello(int socket, const Hello& hello, const Descriptor* block) {
  iovec bytes{const_cast<Hello*>(&hello), sizeof(hello)};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  if (block != nullptr) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = block->number();
    CopyBytes(std::as_writable_bytes(std::span(CMSG_DATA(header), sizeof(number))),
              std::as_bytes(std::span(&number, 1)));
  }
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof(hello));
}

HelloOutcome ReceiveHello(int socket, Hello& hello, Descriptor& block) {
  Hello received;
  iovec bytes{&received, sizeof(received)};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t length = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (length < 0) {
    return errno == EAGAIN || errno == EINTR ? HelloOutcome::kNone : HelloOutcome::kGone;
  }
  const bool plain = TakeDescriptors(message, block);
  if (length == 0) return HelloOutcome::kGone;
  if (!plain || length != static_cast<ssize_t>(sizeof(received)) || !IsWellFormed(received)) {
    return HelloOutcome::kMalformed;
  }
  hello = received;
  return HelloOutcome::kDone;
}

}  // namespace esdp::fabric::local
