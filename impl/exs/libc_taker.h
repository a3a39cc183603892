#ifndef ESDP_IMPL_EXS_LIBC_TAKER_H_
#define ESDP_IMPL_EXS_LIBC_TAKER_H_

namespace esdp::exs {

// From now on calls of libc on numbers of the library come to it.
void TakeCallsOfLibc();

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_LIBC_TAKER_H_
