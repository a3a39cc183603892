#ifndef ESDP_IMPL_SOCKETS_ERRORS_H_
#define ESDP_IMPL_SOCKETS_ERRORS_H_

#include <cstdint>
#include <new>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "esdp/status.h"
#include "impl/provider/types.h"

// One table for every error of the library: kind, code, errno and what to do.

namespace esdp::sockets {

// A status of this kind. `text` says what happened; what to do is added from the table. Where there
// is no memory for that it is NoMemory(); it never throws.
[[gnu::cold]] absl::Status MakeError(ErrorKind kind, std::string_view text);
// That the system has no memory: kMemory. Takes none itself, once it has been called.
absl::Status NoMemory();
// What `make` answers, or that there was no memory for it.
template <typename Make>
auto OrNoMemory(Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}
// That a call came to a socket after its Close.
absl::Status ClosedHandle();
// What happened, of a status of MakeError: the text without what to do.
std::string CauseOf(const absl::Status& status);
absl::StatusCode CodeOf(ErrorKind kind);
int32_t ErrnoOf(ErrorKind kind);

ErrorKind KindOfEnding(provider::EndReason ending);
absl::Status StatusOf(const provider::Failure& failure);

// A status that came from below the front end, given its kind and errno.
absl::Status Adopt(const absl::Status& status);

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_ERRORS_H_
