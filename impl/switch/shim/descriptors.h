#ifndef ESDP_IMPL_SWITCH_SHIM_DESCRIPTORS_H_
#define ESDP_IMPL_SWITCH_SHIM_DESCRIPTORS_H_

// Descriptors that the switch has beside the program's: they lie above the program's, and no close
// of the program's reaches them.

namespace esdp::switching {

// Where they begin: behind what the program may have, or in the last quarter of that. `afresh`: by the
// limit as it is now, as for one that the system has refused (EINVAL).
int FirstHigh(bool afresh);
void Own(int descriptor, bool owned);
// act(what) with signals blocked, and no fork before its end: what it makes or closes, and tells of by
// Own, no child has unknown.
void Undivided(void (*act)(void* what), void* what);
// Around fork: nobody is inside of Undivided.
void HoldDescriptors();
void LetGoDescriptors();
bool IsOwn(int descriptor);
// A copy among them, close-on-exec; -1 with errno.
int DuplicateHigh(int descriptor);
void CloseOwn(int descriptor);
// In a child: all of its parent's.
void CloseAllOwn();
// Those of [first, last] that are not ours, by close_range. 0, or -1 with errno.
int CloseRangeAround(unsigned first, unsigned last, int flags);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_DESCRIPTORS_H_
