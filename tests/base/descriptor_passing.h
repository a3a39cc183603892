#ifndef ESDP_TESTS_BASE_DESCRIPTOR_PASSING_H_
#define ESDP_TESTS_BASE_DESCRIPTOR_PASSING_H_

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

// Descriptors from one process to another, over unix sockets that block.

namespace esdp {

// With `bytes`, one at least. False: errno tells why.
inline bool PassDescriptors(int socket, std::span<const std::byte> bytes,
                            std::span<const int> descriptors) {
  iovec content{const_cast<std::byte*>(bytes.data()), bytes.size()};
  std::vector<std::byte> control(CMSG_SPACE(descriptors.size_bytes()));
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

// Fills `bytes`. The one that came with them; -1: none.
inline int TakeDescriptor(int socket, std::span<std::byte> bytes) {
  iovec content{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (recvmsg(socket, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC) <= 0) return -1;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  int descriptor = -1;
  if (header != nullptr) std::memcpy(&descriptor, CMSG_DATA(header), sizeof(descriptor));
  return descriptor;
}

}  // namespace esdp

#endif  // ESDP_TESTS_BASE_DESCRIPTOR_PASSING_H_
