#ifndef ESDP_IMPL_SWITCH_SHIM_AWAKE_H_
#define ESDP_IMPL_SWITCH_SHIM_AWAKE_H_

namespace esdp::switching {

// Whether a rule may say anything but TCP of what this program connects to.
bool MayConnectByRule();

// What the program has written leaves for the system, for some seconds at most.
void FlushBeforeExit();

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_AWAKE_H_
