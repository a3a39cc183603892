#ifndef ESDP_IMPL_SWITCH_SHIM_HANDED_OVER_H_
#define ESDP_IMPL_SWITCH_SHIM_HANDED_OVER_H_

// Numbers that go from process to process: with messages, and those that a program begins with.

namespace esdp::switching {

// Those that the program begins with may lead to connections that another process relays.
void AdoptInherited();

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_HANDED_OVER_H_
