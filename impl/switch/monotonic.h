#ifndef ESDP_IMPL_SWITCH_MONOTONIC_H_
#define ESDP_IMPL_SWITCH_MONOTONIC_H_

#include <cstdint>

namespace esdp::libc {

// Never runs backwards. The switch lives in programs of others, where nobody hands in a Clock.
int64_t MonotonicNanoseconds();
int64_t MonotonicMilliseconds();

}  // namespace esdp::libc

#endif  // ESDP_IMPL_SWITCH_MONOTONIC_H_
