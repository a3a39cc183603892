#ifndef ESDP_IMPL_EXS_CONVERT_H_
#define ESDP_IMPL_EXS_CONVERT_H_

#include <sys/socket.h>
#include <sys/time.h>

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "esdp/address.h"
#include "esdp/event.h"

// Between the words of C and those of api/esdp.

namespace esdp::exs {

// What errno has to say; EIO for a status that carries none.
int ErrnoOf(const absl::Status& status);
// Of a terminal event; of a socket that was closed by us what that ended is cancelled.
int ErrnoOf(const Event& event, bool closing);
// Whether it tells that this side has closed or aborted.
bool IsOurs(ErrorKind kind);
// EXSX_EVF_*
uint32_t FlagsOf(const Event& event);

// Nothing for another family or a length that is too short.
std::optional<Address> ToAddress(const sockaddr* address, socklen_t len);
socklen_t FromAddress(const Address& address, sockaddr_storage* out);

// Nothing when it is no length of time.
std::optional<absl::Duration> ToDuration(const timeval& time);

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_CONVERT_H_
