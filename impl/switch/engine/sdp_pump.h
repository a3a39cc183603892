#ifndef ESDP_IMPL_SWITCH_ENGINE_SDP_PUMP_H_
#define ESDP_IMPL_SWITCH_ENGINE_SDP_PUMP_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "esdp/event.h"
#include "esdp/region.h"
#include "esdp/socket.h"
#include "impl/switch/engine/engine.h"
#include "impl/switch/engine/program_end.h"

namespace esdp::switching {

// What an event is of, in the cookie beside the relay's id.
enum class Posted : uint8_t { kSetUp, kReceive, kSend, kShutdown, kClose, kPoll, kMove };
inline constexpr unsigned kCookieShift = 8;
constexpr uint64_t CookieOf(uint64_t id, Posted posted, unsigned slot = 0) {
  return id << kCookieShift | uint64_t{static_cast<uint8_t>(posted)} << 4 | slot;
}
constexpr Posted PostedOf(const Event& event) {
  return static_cast<Posted>(event.cookie >> 4 & 0xF);
}
constexpr unsigned SlotOf(const Event& event) { return static_cast<unsigned>(event.cookie & 0xF); }

// SdpPump moves bytes between the program's end and a connected Socket, through a few registered
// buffers for each direction, and ends each direction as the other side does.
//
//   Owns:     the Socket and the buffers.
//   Threads:  the engine's.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   failed(): the connection, and nothing of the peer is left to read.
class SdpPump {
 public:
  SdpPump(Engine& engine, uint64_t id, Socket socket, const ProgramEnd& program);

  // False: no memory.
  bool Open(size_t buffer_bytes);
  void OnProgram();
  void OnEvent(const Event& event);
  void Close(CloseMode mode);
  // Sends what there is, and then the end, though the program has not closed.
  void EndOutput();

  bool output_ended() const { return shutdown_done_; }
  bool input_ended() const { return input_ended_; }
  bool output_failed() const { return out_failed_; }
  bool failed() const { return in_failed_ || (out_failed_ && input_ended_); }
  bool closing() const { return closing_; }
  bool closed() const { return closed_; }
  // Bytes came for a program that has closed, or it has closed without reading.
  bool reset_by_program() const { return reset_by_program_; }
  bool idle() const { return sends_out_ == 0; }
  uint64_t sent() const { return sent_; }
  uint64_t received() const { return received_; }
  const Event& failure() const { return failure_; }

 private:
  static constexpr unsigned kSlots = 2;
  struct Incoming {
    size_t filled = 0, written = 0;
    bool is_full = false;
    bool urgent = false;  // the last byte is
  };

  void ReadProgram();
  void WriteProgram();
  void PostReceive(unsigned slot);
  void PostShutdown();
  void OnReceived(const Event& event);
  Slice OutSlice(unsigned slot, size_t bytes) const;
  std::byte* At(unsigned slot) const;

  Engine& engine_;
  const uint64_t id_;
  Socket socket_;
  const ProgramEnd& program_;
  Region region_;
  size_t buffer_bytes_ = 0;
  std::array<Incoming, kSlots> incoming_{};
  std::array<bool, kSlots> sending_{};
  unsigned next_to_write_ = 0, next_to_send_ = 0;
  unsigned sends_out_ = 0;
  uint64_t sent_ = 0, received_ = 0;
  bool program_ended_ = false, end_of_stream_ = false, input_ended_ = false;
  bool shutdown_posted_ = false, shutdown_done_ = false, closing_ = false, closed_ = false;
  bool in_failed_ = false, out_failed_ = false, reset_by_program_ = false;
  Event failure_;
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_SDP_PUMP_H_
