#ifndef ESDP_IMPL_SWITCH_ENGINE_FAR_PUMP_H_
#define ESDP_IMPL_SWITCH_ENGINE_FAR_PUMP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "impl/switch/engine/far_end.h"
#include "impl/switch/engine/program_end.h"

namespace esdp::switching {

// FarPump moves bytes between the program's end and a far end that does not block, and ends each
// direction as the other side does.
//
//   Owns:     the far end and two buffers.
//   Threads:  the engine's.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   failed(): the peer has reset, and nothing of it is left to read.
class FarPump {
 public:
  FarPump(std::unique_ptr<FarEnd> far, const ProgramEnd& program, size_t buffer_bytes);

  // All that can be moved now.
  void Move();
  // Reads nothing of the far end until it is released.
  void HoldInput() { holds_input_ = true; }
  void ReleaseInput() { holds_input_ = false; }

  bool ended() const { return out_.ended && in_.ended; }
  bool output_empty() const { return out_failed_ || out_.begin == out_.end; }
  bool failed() const { return in_failed_ || (out_failed_ && in_.ended); }
  bool holds_input() const { return holds_input_; }
  bool input_ended() const { return in_.ended; }
  bool reset_by_program() const { return reset_by_program_; }
  uint64_t sent() const { return sent_; }
  uint64_t received() const { return received_; }

 private:
  struct Way {
    std::vector<std::byte> bytes;
    size_t begin = 0, end = 0;
    bool urgent = false;  // the last of these is
    bool last = false;    // nothing comes any more
    bool ended = false;   // and the other side knows
  };

  bool MoveOut();
  bool MoveIn();

  const std::unique_ptr<FarEnd> far_;
  const ProgramEnd program_;
  Way out_, in_;
  uint64_t sent_ = 0, received_ = 0;
  bool in_failed_ = false, out_failed_ = false, reset_by_program_ = false;
  bool holds_input_ = false;
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_FAR_PUMP_H_
