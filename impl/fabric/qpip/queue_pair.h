#ifndef ESDP_IMPL_FABRIC_QPIP_QUEUE_PAIR_H_
#define ESDP_IMPL_FABRIC_QPIP_QUEUE_PAIR_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "impl/base/bytes.h"
#include "impl/base/ring.h"
#include "impl/fabric/qpip/commons.h"
#include "impl/fabric/qpip/inbound.h"
#include "impl/fabric/qpip/rdmap.h"
#include "impl/fabric/qpip/receiver.h"
#include "impl/fabric/qpip/startup.h"
#include "impl/fabric/qpip/tcp_stream.h"
#include "impl/fabric/qpip/transmitter.h"
#include "impl/fabric/soft/work_queue.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::qpip {

// A queue pair over one TCP stream: work queues, order of completions, error and flush.
//
//   Owns:     its stream, from Establish on; the work posted on it, until the completion is polled.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   the peer's and the network's end in one kDisconnected (kConnectFailed before
//             kEstablished), behind the completions of all its work.
class QueuePair final : private InboundEvents {
 public:
  QueuePair(QueuePairId id, const QueuePairOptions& options, FabricShared& commons);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  const QueuePairOptions& options() const { return options_; }
  bool IsUnused() const { return phase_ == Phase::kUnused; }
  bool IsReady() const { return phase_ == Phase::kReady; }
  // Its peer can still reach its windows.
  bool IsConnected() const { return phase_ == Phase::kReady || phase_ == Phase::kAwaitingReady; }

  absl::Status PostSend(absl::Span<const SendWork> batch);
  absl::Status PostReceive(absl::Span<const ReceiveWork> batch);
  void ReleaseUnusedReceives();
  absl::Status Disconnect(bool orderly);

  // --- the connection's beginning: BeginStartup, then one of the others ---
  void BeginStartup() { phase_ = Phase::kStarting; }
  void FailStartup(Cause cause, std::string detail, ConstBytes private_data);
  // Takes over a stream behind its MPA frames, and the poller's watch on it.
  void Establish(TcpStream stream, WatchId watch, const Negotiated& negotiated,
                 ConstBytes private_data);

  // --- progress ---
  // Returns whether anything moved.
  bool OnReady(bool readable, bool writable);
  void OnDeadline();
  // A step of it was broken off for want of memory.
  void OnNoMemory();
  // Its kEstablished has been polled: from now on messages may be received.
  void OnAnnounced() { announced_ = true; }
  // One of its completions has been polled.
  void OnPolled(const Completion& completion);
  // The last turn ended with its budget, not with what there was to read.
  bool HasSpentItsTurn() const { return spent_; }
  // Waits for the socket to take more.
  bool IsStuck() const { return full_ || !transmitter_.empty(); }

  // Breaks the connection off and flushes, without a rendezvous event.
  void Destroy();

 private:
  enum class Phase : uint8_t { kUnused, kStarting, kAwaitingReady, kReady, kClosing, kEnded };

  // Sending.
  void ReserveForSends();
  void ReserveForReceives(size_t receives);
  bool Transmit();
  void PullMessages();
  bool PullSend();
  void PullPeerRead();
  OutMessage MessageOf(SendSlot& slot, uint64_t index);
  void OnSent(const OutMessage& message);
  void FinishSends();

  // Receiving.
  bool Receive();
  Receiver::Outcome ReadTurn();
  void OnMessage(uint64_t receive_slot) override;
  Refusal OnReadRequest(const ReadRequest& request) override;
  void OnReadComplete() override;
  void OnTerminate(const Terminate& terminate) override { terminated_ = terminate; }
  Refusal OnReadySign(bool is_ready_sign) override;

  void BecomeReady(ConstBytes private_data);
  void LookAfterPeer();

  // Ending.
  void BeginClosing();
  bool Drain();
  void OnPeerEnd();
  void OnRefused();
  void OnTerminated();
  void RefusePeerRead();
  void Refuse(const Terminate& terminate);
  void Blame(const Terminate& terminate);
  void End(Cause cause, std::string detail);
  void FlushSends();
  void FlushReceives();
  void CloseStream(bool abruptly);
  void Discard();
  void PushEvent(RendezvousType type, Cause cause, std::string detail, ConstBytes private_data);

  const QueuePairId id_;
  const QueuePairOptions options_;
  FabricShared& commons_;
  Phase phase_ = Phase::kUnused;
  bool announced_ = false;
  bool may_send_ = false;    // RFC 5044 section 7.1.2: a responder waits for the first frame
  bool full_ = false;        // the socket
  bool spent_ = false;       // the last turn's budget
  bool peers_turn_ = false;  // the next message answers the peer's read, if there is one
  bool fin_sent_ = false;
  bool peer_ended_ = false;
  Duration keep_alive_idle_{};
  Duration unanswered_{};  // at the last look after the peer
  Negotiated negotiated_;
  TcpStream stream_;
  WatchId watch_ = WatchId::kNone;
  Address local_;
  Address peer_;

  WorkQueue<SendSlot> sends_;
  uint64_t next_send_ = 0;      // to be turned into a message
  uint64_t next_finished_ = 0;  // to be reported
  uint32_t send_sequence_ = 1;
  uint32_t read_sequence_ = 1;
  GrowingRing<ReadInFlight> reads_;

  WorkQueue<ReceiveSlot> receives_;
  size_t receives_reserved_ = 0;  // completions
  uint64_t next_received_ = 0;    // to be reported

  GrowingRing<ReadRequest> peer_reads_;  // not yet turned into messages
  uint32_t responses_ = 0;               // turned into messages that have not wholly left
  uint32_t peer_reads_served_ = 0;

  Inbound inbound_;
  Receiver receiver_;
  Transmitter transmitter_;
  std::optional<Terminate> terminated_;  // by the peer
  uint64_t blamed_slot_ = UINT64_MAX;
  WorkStatus blamed_status_ = WorkStatus::kFlushed;
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_QUEUE_PAIR_H_
