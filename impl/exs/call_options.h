#ifndef ESDP_IMPL_EXS_CALL_OPTIONS_H_
#define ESDP_IMPL_EXS_CALL_OPTIONS_H_

#include <sys/socket.h>

#include <optional>

#include "impl/exs/socket.h"

// Options that getsockopt(2) and setsockopt(2) know on a number of the library, beside those of
// exs_getsockopt and exs_setsockopt.

namespace esdp::exs {

// An errno; nothing for an option of the others.
std::optional<int> GetCallOption(ExsSocket& socket, int level, int name, void* value,
                                 socklen_t* len);
std::optional<int> SetCallOption(ExsSocket& socket, int level, int name, const void* value,
                                 socklen_t len);

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_CALL_OPTIONS_H_
