#ifndef ESDP_IMPL_EXS_ENVIRONMENT_H_
#define ESDP_IMPL_EXS_ENVIRONMENT_H_

#include <cstdint>

namespace esdp::exs {

// EXS_FABRIC, or null: exs_init has no argument for it. Not in a program that has other rights than
// its user.
const char* FabricOfEnvironment();
// EXS_PIN_MAX: bytes that may be registered for transfers at a time. Without end where it says
// nothing, or no number.
uint64_t PinLimitOfEnvironment();

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_ENVIRONMENT_H_
