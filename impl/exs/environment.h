#ifndef ESDP_IMPL_EXS_ENVIRONMENT_H_
#define ESDP_IMPL_EXS_ENVIRONMENT_H_

namespace esdp::exs {

// EXS_FABRIC, or null: exs_init has no argument for it. Not in a program that has other rights than
// its user.
const char* FabricOfEnvironment();

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_ENVIRONMENT_H_
