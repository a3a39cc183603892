#include "impl/switch/shim/environment.h"

#include <sys/auxv.h>

#include <cstdlib>
#include <cstring>

namespace esdp::switching {

Environment ReadEnvironment() {
  if (getauxval(AT_SECURE) != 0)
    return {.config = nullptr,
            .rules = nullptr,
            .log = nullptr,
            .mode = nullptr,
            .fd_base = nullptr,
            .off = true};
  const char* const off = getenv("ESDP_SWITCH_OFF");
  return {.config = getenv("ESDP_SWITCH_CONFIG"),
          .rules = getenv("ESDP_SWITCH_RULES"),
          .log = getenv("ESDP_SWITCH_LOG"),
          .mode = getenv("ESDP_SWITCH_MODE"),
          .fd_base = getenv("ESDP_SWITCH_FD_BASE"),
          .off = off != nullptr && std::strcmp(off, "1") == 0};
}

}  // namespace esdp::switching
