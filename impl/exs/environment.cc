#include "impl/exs/environment.h"

#include <cstdlib>

namespace esdp::exs {

const char* FabricOfEnvironment() { return secure_getenv("EXS_FABRIC"); }

}  // namespace esdp::exs
