#include "impl/fabric/sim/faults.h"

namespace esdp::fabric::sim {

const char* ToString(FaultKind kind) {
  switch (kind) {
    case FaultKind::kDelay:
      return "delay";
    case FaultKind::kLateNews:
      return "late news";
    case FaultKind::kNotReady:
      return "receiver not ready";
    case FaultKind::kSleep:
      return "sleep";
    case FaultKind::kNoRegion:
      return "no region";
    case FaultKind::kNoWindow:
      return "no window";
    case FaultKind::kNoQueuePair:
      return "no queue pair";
    case FaultKind::kReset:
      return "reset";
    case FaultKind::kSilence:
      return "silence";
    case FaultKind::kMemoryLimit:
      return "memory limit";
    case FaultKind::kHostile:
      return "hostile message";
    case FaultKind::kForged:
      return "forged RDMA";
    case FaultKind::kDeath:
      return "death of a process";
  }
  return "unknown";
}

}  // namespace esdp::fabric::sim
