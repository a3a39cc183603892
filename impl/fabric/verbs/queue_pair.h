#ifndef ESDP_IMPL_FABRIC_VERBS_QUEUE_PAIR_H_
#define ESDP_IMPL_FABRIC_VERBS_QUEUE_PAIR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "impl/base/bytes.h"
#include "impl/base/ring.h"
#include "impl/base/time.h"
#include "impl/fabric/types.h"
#include "impl/fabric/verbs/commons.h"

namespace esdp::fabric::verbs {

// A reliable connected queue pair of the device: what is posted, in order, and how it ended.
//
//   Owns:     its rdma_cm_id from Adopt on, with the ibv_qp; the work posted on it, until the
//             completion is polled.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   the peer's and the network's end in one kDisconnected (kConnectFailed before
//             kEstablished), behind the completions of all its work.
class QueuePair {
 public:
  QueuePair(QueuePairId id, const QueuePairOptions& options, FabricShared& commons);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  const QueuePairOptions& options() const { return options_; }
  uint32_t number() const { return verbs_ == nullptr ? 0 : verbs_->qp_num; }
  uint8_t port() const { return connection_ == nullptr ? 0 : connection_->port_num; }
  bool IsUnused() const { return phase_ == Phase::kUnused; }
  bool IsReady() const { return phase_ == Phase::kReady; }
  // Its peer may still reach its windows.
  bool IsConnected() const { return phase_ == Phase::kReady || phase_ == Phase::kClosing; }

  absl::Status PostSend(absl::Span<const SendWork> batch);
  absl::Status PostReceive(absl::Span<const ReceiveWork> batch);
  absl::StatusOr<RemoteRange> Bind(RegionId region, std::byte* address, uint64_t length,
                                   Access access);
  absl::Status Disconnect(bool orderly);

  // --- the connection's beginning ---
  void BeginStartup() { phase_ = Phase::kStarting; }
  // Makes the ibv_qp on `id`, which belongs to this from then on, and posts the receives that wait.
  absl::Status Adopt(rdma_cm_id* id);
  // Parts from its id and ibv_qp, which then belong to the caller and take nothing any more: the
  // completion queue is to be released behind them.
  struct Left {
    ibv_cq* completion_queue = nullptr;
    int entries = 0;
  };
  Left Leave();
  void FailStartup(Cause cause, std::string detail, ConstBytes private_data);
  struct Agreed {
    Address local;
    Address peer;
    uint32_t initiator_depth = 0;
    uint32_t responder_resources = 0;
  };
  void Establish(const Agreed& agreed, ConstBytes private_data);

  // --- what the device and the connection manager tell ---
  void OnCompletion(const ibv_wc& completion);
  void OnDisconnected() { End(Cause::kPeerDisconnect, "the peer has disconnected"); }
  void OnDeviceLost() { End(Cause::kDevice, "the RDMA device was removed"); }
  void OnAsynchronous(ibv_event_type type);
  void OnPortLost(Cause cause, const char* detail) { End(cause, detail); }
  // Its kEstablished has been polled: the receives held back are told.
  void OnAnnounced();
  // One of its completions has been polled.
  void OnPolled(Opcode opcode) { --(opcode == Opcode::kReceive ? told_receives_ : told_sends_); }

  // --- the end ---
  // Breaks the connection off and flushes, without a rendezvous event.
  void Destroy();
  // A device that keeps work back for longer has its queue pair taken away.
  Time flush_deadline() const { return flush_deadline_; }
  void OnFlushDeadline();

 private:
  enum class Phase : uint8_t { kUnused, kStarting, kReady, kClosing, kEnding, kEnded };

  struct SendSlot {
    uint64_t work_id = 0;
    Opcode opcode = Opcode::kSend;
    bool internal = false;  // a binding, or the first part of a read: nobody is told
    uint32_t key = 0;       // kInvalidate: our window
    uint32_t regions = 0;   // held, the next of send_regions_
    bool done = false;      // and not told yet: work before it is not
    WorkStatus status = WorkStatus::kFlushed;
  };
  struct ReceiveSlot {
    uint64_t work_id = 0;
    uint32_t regions = 0;
  };

  // Posting.
  absl::Status CheckSend(const SendWork& work) const;
  absl::Status CheckEntries(const ScatterEntry* entries, uint32_t count, uint32_t count_max,
                            bool writes) const;
  uint32_t WriteDown(const ScatterEntry* entries, uint32_t count, GrowingRing<RegionId>& held,
                     std::vector<ibv_sge>& written);
  void WriteSend(const SendWork& work, bool last, bool internal = false);
  void WriteRead(const SendWork& work, bool last);
  absl::Status Link();
  absl::Status PostWaitingReceives();

  // Completing.
  void FinishSend();
  void FinishReceive(WorkStatus status, const ibv_wc& completion);
  void Tell(const Completion& completion);
  void TellHeld();
  void Release(GrowingRing<RegionId>& held, uint32_t count);
  void OnSendCompletion(const ibv_wc& completion);
  void OnReceiveCompletion(const ibv_wc& completion);

  int Entries() const { return static_cast<int>(2 * options_.send_work + options_.receive_work); }
  // The device flushes what is posted.
  void StopDevice();
  void End(Cause cause, std::string detail);
  void MaybeEnded();
  void TakeAway();
  void PushEvent(RendezvousType type, ConstBytes private_data);

  const QueuePairId id_;
  const uint16_t tag_;  // tells its completions from those of a former owner of its number
  const QueuePairOptions options_;
  FabricShared& commons_;
  Phase phase_ = Phase::kUnused;
  bool announced_ = false;
  bool silent_end_ = false;  // destroyed: no event
  Cause cause_ = Cause::kNone;
  std::string detail_;
  Agreed agreed_;
  Time flush_deadline_ = kTimeInfinite;

  rdma_cm_id* connection_ = nullptr;
  ibv_qp* verbs_ = nullptr;
  ibv_cq* completion_queue_ = nullptr;
  uint32_t inline_max_ = 0;

  GrowingRing<SendSlot> sends_;
  uint64_t first_send_ = 0;  // the number of sends_[0]
  uint32_t internal_ = 0;    // of sends_
  uint32_t told_sends_ = 0;  // completed and not polled
  GrowingRing<RegionId> send_regions_;
  GrowingRing<ReceiveSlot> receives_;
  uint32_t told_receives_ = 0;
  GrowingRing<RegionId> receive_regions_;
  std::vector<ibv_sge> waiting_entries_;  // of receives that the device does not have yet
  std::vector<uint32_t> waiting_counts_;
  GrowingRing<Completion> held_;  // receives of before the announcement
};

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_QUEUE_PAIR_H_
