#ifndef ESDP_IMPL_SWITCH_SHIM_ENGINE_LINK_H_
#define ESDP_IMPL_SWITCH_SHIM_ENGINE_LINK_H_

#include "impl/switch/engine_interface.h"

namespace esdp::switching {

// Loads libesdp-switch-engine.so, which lies beside this library, where nobody else sees its
// symbols. False, with the reason in the log: all stays TCP.
bool LoadEngine(const HostCalls& host);

// Of the engine that was loaded.
extern constinit EngineCalls engine;

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_ENGINE_LINK_H_
