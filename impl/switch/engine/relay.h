#ifndef ESDP_IMPL_SWITCH_ENGINE_RELAY_H_
#define ESDP_IMPL_SWITCH_ENGINE_RELAY_H_

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "esdp/event.h"
#include "esdp/socket.h"
#include "impl/switch/engine/direct_stream.h"
#include "impl/switch/engine/engine.h"
#include "impl/switch/engine/far_pump.h"
#include "impl/switch/engine/host.h"
#include "impl/switch/engine/program_end.h"
#include "impl/switch/engine/sdp_pump.h"

namespace esdp::switching {

// A Relay is one connection of the program, from its set-up to its end: it finds out what the peer
// speaks, moves bytes by SDP, or by TCP where that is what there is, and connects anew for that
// where the request of SDP was not answered.
// Where it goes directly the program's calls move the bytes, until it is to be relayed after all.
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

  // Up once a reset is asked for: what the program closes after that is no end in order, however early
  // it is seen. Any thread.
  const std::shared_ptr<std::atomic<bool>>& reset() const { return reset_; }
  // Any thread, before Begin: the set-up, where that goes without the engine's thread. True: it goes,
  // and Begin has time until its event.
  bool PostEarly();
  void Begin();
  void OnProgram();
  void OnTcp();
  void OnEvent(const Event& event);
  void Abort();
  // It went directly, and moves bytes through this end of a pair now; or ends.
  void BeginStream(Descriptor end);
  void CloseDirect(bool reset);
  // It goes directly, and what comes is not to be waited for any more.
  void SendReadersAway();
  // The process exits: whether all that the program has written has left.
  bool Flush();

 private:
  static constexpr uint32_t kOwnEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  static constexpr unsigned kOrphanFor = 60'000;  // milliseconds

  enum class Phase : uint8_t {
    kUnknown,
    kSettingUp,
    kSdp,
    kConnectingAnew,
    kTcp,
    kDirect,
    kStream,
    kGone
  };

  bool WatchEnd();
  void UnwatchEnd();
  void LookAtFirstBytes();
  void AwaitRestOfRequest();
  void BeginSdp();
  absl::Status PostSetUp(Engine::Domain& domain);
  void OnSetUp(const Event& event);
  void OnNoSdp(Reason reason);
  void ConnectAnew();
  void OnConnectedAnew();
  void BeginTcp(Reason reason);
  void MoveFar();
  void BeginDirect(Socket connected);
  bool DrainIntoStream();
  void EndOutput();
  void OnOrphan();
  void OnPeer(const Event& event);
  void CloseInOrder();
  bool FlushOutput();
  bool FlushDirect();
  void OnDirectEvent(const Event& event);
  bool MayMove(const Context& context) const;
  void OnMoved(const Event& event);
  void CheckSdp();
  void WatchOrphan();
  void Fail(Reason reason);
  void End(Reason reason);
  void Show(Shown shown, Reason reason);
  void LogEnd();  // once

  Engine& engine_;
  const uint64_t id_;
  const RelayRequest request_;
  const std::shared_ptr<std::atomic<bool>> reset_ = std::make_shared<std::atomic<bool>>(false);
  Descriptor end_;
  ProgramEnd program_;
  Descriptor tcp_;
  Phase phase_;
  Socket socket_;  // kSettingUp
  std::optional<absl::Status> posted_early_;
  std::unique_ptr<SdpPump> sdp_;
  std::shared_ptr<DirectStream> direct_;
  std::unique_ptr<FarPump> far_pump_;
  uint32_t place_ = 0;  // of its record
  bool end_watched_ = false;
  bool orphan_ = false;
  bool aborted_ = false;
  bool awaits_rest_ = false;
  bool end_logged_ = false;
  bool shutdown_done_ = false, closing_ = false, close_posted_ = false;  // direct
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_RELAY_H_
