#ifndef ESDP_IMPL_EXS_PLAIN_H_
#define ESDP_IMPL_EXS_PLAIN_H_

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "impl/exs/library.h"
#include "impl/exs/socket.h"

// TCP sockets that the program made with socket(2).

namespace esdp::exs {

// How often to look whether a number is still ours, which the program may close at any time.
inline constexpr absl::Duration kCheckEach = absl::Seconds(1);

enum class PlainKind : uint8_t { kOther, kUnconnected, kListens, kConnected };

// kOther for what is no TCP socket; one that connects counts as connected.
PlainKind PlainKindOf(int fd);

// An unconnected one becomes a socket of this library under its number: bound to the same address,
// with the flags of the descriptor and its SO_LINGER. Copies of the descriptor stay the system's.
// EOPNOTSUPP for any other.
int Adopt(Library& library, int fd, std::shared_ptr<ExsSocket>* socket);

// What a post answers whose number Numbers::Find does not know, with that error.
int WhyNoPost(int fd, int type, int error);

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_PLAIN_H_
