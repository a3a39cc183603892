#ifndef ESDP_IMPL_SWITCH_SHIM_LIMITS_H_
#define ESDP_IMPL_SWITCH_SHIM_LIMITS_H_

// How many descriptors the program may have, where who has started it raised the limit of the process
// for those of the switch: they lie above the program's, which is told of, and held to, its own limit.

namespace esdp::switching {

// `base` is ESDP_SWITCH_FD_BASE, the limit as it was before; null, or no such number: nothing is kept
// apart. In a program that the switch does nothing in, `awake` false, the limit is lowered to that.
void KeepProgramLimit(const char* base, bool awake);
// Where ours begin; -1: nothing is kept apart.
int FirstBehindProgram();
// `number`, or -1 with EMFILE where it is beyond the program's limit: then it is closed.
int WithinLimit(int number);
// That number the program may name.
bool IsWithinLimit(int number);
void ResolveLimits();

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_LIMITS_H_
