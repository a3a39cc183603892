#ifndef ESDP_IMPL_SWITCH_ENGINE_RELAY_H_
#define ESDP_IMPL_SWITCH_ENGINE_RELAY_H_

#include <cstdint>
#include <memory>

#include "esdp/event.h"
#include "esdp/socket.h"
#include "impl/switch/engine/engine.h"
#include "impl/switch/engine/host.h"
#include "impl/switch/engine/program_end.h"
#include "impl/switch/engine/sdp_pump.h"
#include "impl/switch/engine/tcp_pump.h"

namespace esdp::switching {

// A Relay is one connection of the program, from its set-up to its end: it finds out what the peer
// speaks, moves bytes by SDP, or by TCP where that is what there is, and connects anew for that
// where the request of SDP was not answered.
//
//   Owns:     its end of the stream pair, the connection.
//   Threads:  the engine's.
//   Blocks:   never.
//   Units:    -
//   Errors:   shown to the program as those of the connection.
class Relay {
 public:
  Relay(Engine& engine, uint64_t id, const RelayRequest& request, Descriptor end, Descriptor tcp);
  ~Relay();

  void Begin();
  void OnProgram();
  void OnTcp();
  void OnEvent(const Event& event);
  void Abort();
  // The process exits: whether all that the program has written has left.
  bool Flush();

 private:
  enum class Phase : uint8_t { kUnknown, kSettingUp, kSdp, kConnectingAnew, kTcp, kGone };

  void LookAtFirstBytes();
  void BeginSdp();
  void OnSetUp(const Event& event);
  void OnNoSdp(Reason reason);
  void ConnectAnew();
  void OnConnectedAnew();
  void BeginTcp(Reason reason);
  void MoveTcp();
  void CheckSdp();
  void WatchOrphan();
  void Fail(Reason reason);
  void End(Reason reason);
  void Show(Shown shown, Reason reason);
  void LogEnd() const;

  Engine& engine_;
  const uint64_t id_;
  const RelayRequest request_;
  Descriptor end_;
  const ProgramEnd program_;
  Descriptor tcp_;
  Phase phase_;
  Socket socket_;  // kSettingUp
  std::unique_ptr<SdpPump> sdp_;
  std::unique_ptr<TcpPump> tcp_pump_;
  uint32_t place_ = 0;  // of its record
  bool orphan_ = false;
  bool aborted_ = false;
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_RELAY_H_
