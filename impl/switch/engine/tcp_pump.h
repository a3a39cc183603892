#ifndef ESDP_IMPL_SWITCH_ENGINE_TCP_PUMP_H_
#define ESDP_IMPL_SWITCH_ENGINE_TCP_PUMP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "impl/switch/engine/program_end.h"

namespace esdp::switching {

// TcpPump moves bytes between the program's end and a TCP socket that does not block, and ends each
// direction as the other side does.
//
//   Owns:     two buffers.
//   Threads:  the engine's.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   failed(): the peer has reset.
class TcpPump {
 public:
  TcpPump(int tcp, const ProgramEnd& program, size_t buffer_bytes);

  // All that can be moved now.
  void Move();

  bool ended() const { return out_.ended && in_.ended; }
  bool output_empty() const { return out_.begin == out_.end; }
  bool failed() const { return failed_; }
  bool reset_by_program() const { return reset_by_program_; }
  uint64_t sent() const { return sent_; }
  uint64_t received() const { return received_; }

 private:
  struct Way {
    std::vector<std::byte> bytes;
    size_t begin = 0, end = 0;
    bool last = false;   // nothing comes any more
    bool ended = false;  // and the other side knows
  };

  bool MoveOut();
  bool MoveIn();

  const int tcp_;
  const ProgramEnd program_;
  Way out_, in_;
  uint64_t sent_ = 0, received_ = 0;
  bool failed_ = false, reset_by_program_ = false;
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_TCP_PUMP_H_
