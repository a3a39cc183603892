#ifndef ESDP_IMPL_FABRIC_SIM_SIM_QUEUE_PAIR_H_
#define ESDP_IMPL_FABRIC_SIM_SIM_QUEUE_PAIR_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "impl/fabric/sim/frame.h"
#include "impl/fabric/sim/handshake.h"
#include "impl/fabric/sim/host_model.h"
#include "impl/fabric/sim/lent_messages.h"
#include "impl/fabric/sim/outbox.h"
#include "impl/fabric/sim/work_queues.h"
#include "impl/fabric/sim/world.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::sim {

// What a queue pair needs of its fabric; all of it lives longer than the queue pair.
struct Surroundings {
  World& world;
  soft::RegionTable& regions;
  Outbox& outbox;
  LentMessages& lent_messages;
  const Limits& limits;
  HostModel* host = nullptr;  // what its processors and its device take, if that counts
};

// One end of a simulated connection. Posts put elements into the work queues; turns, which are
// events of the world, transmit them one by one; frames arrive as events too. Source bytes are read
// when a frame is transmitted and target bytes written when it arrives, as adapters do.
//
//   Owns:     its work queues. The fabric owns it; frames on their way hold it weakly.
//   Threads:  one.
//   Blocks:   never.
//   Units:    bytes, virtual time.
//   Errors:   as CONTRACT.md states them.
class SimQueuePair : public std::enable_shared_from_this<SimQueuePair> {
 public:
  SimQueuePair(const Surroundings& surroundings, QueuePairId id, const QueuePairOptions& options);

  QueuePairId id() const { return id_; }
  bool ready() const { return state_ == State::kReady; }
  bool idle() const { return state_ == State::kIdle; }
  bool ended() const { return state_ == State::kEnded; }

  absl::Status PostSend(absl::Span<const SendWork> batch);
  absl::Status PostReceive(absl::Span<const ReceiveWork> batch);
  // A completion of this queue pair was polled: its slot is free.
  void OnPolled(Opcode opcode);

  // Connecting side, when idle: asks whoever listens at handshake->listener_address.
  void Connect(const std::shared_ptr<Handshake>& handshake, Time deadline);
  void OnAnswer(const Answer& answer);
  // Accepting side, when idle.
  void Accept(const std::shared_ptr<Handshake>& handshake, ConstBytes private_data);
  // The connecting side has given up before it saw the answer.
  void OnWithdrawn();

  absl::Status Disconnect(bool orderly);
  // The fabric is about to forget the queue pair: flushes, breaks off, tells nothing more.
  void Destroy();

  void OnFrame(Frame frame);
  // Nothing gets through any more, and nobody says so: keep-alive finds out.
  void FallSilent();
  // The process behind it is no more; `told`: as the peer hears.
  void Vanish(bool told);

 private:
  enum class State : uint8_t {
    kIdle,
    kConnecting,  // the request is out
    kAccepting,   // the answer is out
    kReady,
    kClosing,  // an orderly end was asked for: what is posted still goes out
    kEnded,
  };

  // Posting and transmission: sim_queue_pair_send.cc.
  absl::Status CheckSend(const SendWork& work) const;
  absl::Status CheckEntries(const ScatterEntry* entries, uint32_t count, uint32_t count_max,
                            bool placing) const;
  void ScheduleTurn();
  void TakeTurn();
  bool MayTransmit(const SendElement& element) const;
  void TransmitElement(const SendElement& element);
  void TransmitSome();
  void Transmit(Frame frame);
  void Carry(Frame frame);

  // Arrivals: sim_queue_pair_receive.cc.
  bool WaitsForReceive(const Frame& frame) const;
  bool ComesAgain(const Frame& frame);
  void RunWaiting();
  void OnRequestFrame(Frame frame);
  void OnSend(const Frame& frame);
  void OnWrite(const Frame& frame);
  void OnReadRequest(const Frame& frame);
  void OnReadResponse(const Frame& frame);
  void OnTerminate(const Frame& frame);
  void OnFinish();
  void Acknowledge(uint64_t number);
  void ShowTouch(const std::byte* address, uint64_t length, Touch touch) const;
  // Where the peer may read or write `length` bytes as the frame asks; null where it may not.
  std::byte* Reach(const Frame& frame, uint64_t length, soft::TagRight right) const;
  void Refuse(const Frame& frame, WorkStatus status, Cause cause, const char* detail);

  // Life: sim_queue_pair.cc.
  void SendRequest();
  void BecomeReady(const std::vector<std::byte>& private_data);
  void Withdraw();
  void DrawBreak();
  WireEnd Where() const;
  void End(Cause cause, const char* detail, const std::vector<std::byte>& private_data = {});
  RendezvousEvent EventOf(RendezvousType type) const;
  void Record(StepKind kind, uint64_t detail, uint64_t content = 0);

  Surroundings around_;
  QueuePairId id_;
  uint64_t number_;  // in the world
  State state_ = State::kIdle;
  SendQueue sends_;
  ReceiveQueue receives_;

  std::shared_ptr<Handshake> handshake_;
  std::optional<World::EventKey> deadline_;
  Address local_;
  Address peer_address_;
  bool connecting_side_ = false;
  uint32_t initiator_depth_;
  uint32_t responder_resources_;
  Duration keep_alive_idle_;
  bool lend_messages_;
  bool silent_ = false;

  std::weak_ptr<SimQueuePair> peer_;
  Time last_arrival_{};    // of our frames at the peer: the next one is not earlier
  bool may_send_ = false;  // false on the accepting side until it was spoken to, where the
                           // initiator speaks first
  bool turn_scheduled_ = false;
  uint32_t reads_in_flight_ = 0;
  std::deque<Frame> waiting_;  // InfiniBand family: arrived, and the first one found no receive
};

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_SIM_QUEUE_PAIR_H_
