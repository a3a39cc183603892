#ifndef ESDP_IMPL_FABRIC_LOCAL_SOCKET_MESSAGE_H_
#define ESDP_IMPL_FABRIC_LOCAL_SOCKET_MESSAGE_H_

#include <cstddef>

#include "impl/base/bytes.h"
#include "impl/base/shared_memory.h"

// Messages over a unix socket that keeps them apart, each with a descriptor or without.

namespace esdp::fabric::local {

// `descriptor`: null for none. False: it has not been sent, and errno tells why.
bool SendMessage(int socket, ConstBytes bytes, const Descriptor* descriptor);

enum class MessageOutcome : uint8_t { kNone, kDone, kGone, kMalformed };

// kDone: `length` of `bytes`, and `descriptor` is open if one came. kMalformed: it is longer than
// that, or has several descriptors. None is left open that is not handed out.
MessageOutcome ReceiveMessage(int socket, Bytes bytes, size_t& length, Descriptor& descriptor);

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_SOCKET_MESSAGE_H_
