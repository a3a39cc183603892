#ifndef ESDP_IMPL_FABRIC_SIM_FRAME_H_
#define ESDP_IMPL_FABRIC_SIM_FRAME_H_

#include <cstdint>
#include <vector>

#include "impl/fabric/types.h"

namespace esdp::fabric::sim {

enum class FrameKind : uint8_t {
  kReady,  // the connecting side has seen the answer
  kSend,
  kWrite,
  kReadRequest,
  kReadResponse,
  kAcknowledge,  // InfiniBand family: all sends and writes up to `number` were carried out
  kTerminate,    // the receiving side refused frame `number`
  kFinish,       // orderly end: nothing follows
  kFinishAnswer,
  kReset,
};

// What travels from one queue pair to its peer. A frame is a whole message: segments are a matter
// of real wires.
struct Frame {
  FrameKind kind = FrameKind::kReset;
  uint64_t number =
      0;  // of the work it carries, answers or refuses; counted by the posting side from 1
  RemoteRange remote{};  // of a write or read request
  uint64_t length = 0;   // of a read request
  uint32_t key = 0;      // kSend: to invalidate, if has_key
  bool has_key = false;
  WorkStatus status = WorkStatus::kSuccess;  // kTerminate: what the work ends with
  std::vector<std::byte> payload{};          // taken from the source when the frame was transmitted
};

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_FRAME_H_
