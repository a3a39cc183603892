#ifndef ESDP_IMPL_FABRIC_LOCAL_QUEUE_PAIR_H_
#define ESDP_IMPL_FABRIC_LOCAL_QUEUE_PAIR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "impl/base/bytes.h"
#include "impl/base/ring.h"
#include "impl/fabric/local/channel.h"
#include "impl/fabric/local/fabric_shared.h"
#include "impl/fabric/local/in_flight.h"
#include "impl/fabric/local/peer_process.h"
#include "impl/fabric/local/read_puller.h"
#include "impl/fabric/local/write_puller.h"
#include "impl/fabric/soft/work_queue.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::local {

// What both ends have agreed on.
struct Agreement {
  Address local;
  Address peer;
  uint32_t initiator_depth = 0;
  uint32_t responder_resources = 0;
};

// One end of a connection between two processes, or two fabrics of one. The source's bytes are
// copied into its block, and out of it by the destination: each writes into memory of its own, and
// looks up the keys in its own table.
//
//   Owns:     its channel, from Establish on; the work posted on it, until the completion is
//             polled.
//   Threads:  not thread-safe.
//   Blocks:   never; a Progress takes at most all the slots that there are.
//   Units:    bytes.
//   Errors:   the peer's end in one kDisconnected, behind the completions of all its work. Whatever
//             the peer writes into its block, no more than that comes of it.
class QueuePair {
 public:
  QueuePair(QueuePairId id, const QueuePairOptions& options, FabricShared& shared);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  const QueuePairOptions& options() const { return options_; }
  bool IsUnused() const { return phase_ == Phase::kUnused; }
  bool IsReady() const { return phase_ == Phase::kReady; }
  bool IsConnected() const { return IsReady(); }

  absl::Status PostSend(absl::Span<const SendWork> batch);
  absl::Status PostReceive(absl::Span<const ReceiveWork> batch);
  void ReleaseUnusedReceives();
  // A window has been bound: the peer is told where it is, if it may read there.
  void Show(uint32_t key, RegionId region, const std::byte* address, uint64_t length);
  // A region in a file is no more.
  void TakeBack(RegionId region);
  absl::Status Disconnect(bool orderly);

  // --- the connection's beginning: BeginStartup, then one of the others ---
  void BeginStartup() { phase_ = Phase::kStarting; }
  void FailStartup(Cause cause, std::string detail, ConstBytes private_data);
  void Establish(std::unique_ptr<Channel> channel, soft::WatchId watch, PeerProcess process,
                 const Agreement& agreement, ConstBytes private_data);

  // --- progress ---
  // Takes what the peer has written and writes what waits. Whether anything moved.
  bool Progress();
  // Of its socket, which the system says is readable, or which may be.
  void TakeFiles(bool is_readable);
  // The peer's process has died.
  void OnProcessDied();
  void OnDeadline();
  void OnNoMemory();
  // Its kEstablished has been polled: from now on messages may be received.
  void OnAnnounced() { announced_ = true; }
  // One of its completions has been polled.
  void OnPolled(const Completion& completion);
  // So many of the messages that were lent and polled, from the oldest on, are not read any more.
  void ReturnLent(size_t messages);
  // Lets the peer wake us; false: something is to be done first. `is_hot`: or any other peer.
  bool Sleep(bool is_hot);
  bool IsAsleep() const { return channel_ == nullptr || channel_->is_armed(); }
  // A read of the peer's memory goes on in the next Progress, or something else does that nobody
  // tells of.
  bool IsPulling() const { return pulling_ || drained_ || pulls_write_; }
  // A message has arrived that a receive has to be posted for.
  bool WaitsForReceive() const { return waits_for_receive_; }

  // Breaks the connection off and flushes, without a rendezvous event.
  void Destroy();

 private:
  enum class Phase : uint8_t { kUnused, kStarting, kReady, kClosing, kEnded };
  enum class Taking : uint8_t { kTaken, kLent, kWaits, kPulls, kEnded };

  void ReserveForReceives(size_t receives);
  // Whether the peer may read our memory anyway; and where it finds bytes of ours, if it may.
  bool IsProved() const;
  std::optional<ShownWindow> PlaceFor(bool is_proved, RegionId region, const std::byte* address,
                                      uint64_t length);

  // Sending: queue_pair_send.cc.
  bool Transmit();
  bool PutNext();
  bool PutOwn();
  bool PutTransfer(soft::SendSlot& slot);
  bool PutWriteFrom(const soft::SendSlot& slot);
  bool FindSources(const soft::SendSlot& slot, std::array<WriteSource, kWriteSourcesMax>& sources,
                   size_t& count);
  bool FinishWrites();
  bool Pull(soft::SendSlot& slot);
  bool PutRead(const soft::SendSlot& slot);
  void Invalidate(uint32_t key);
  bool PutAnswer();
  void Gather(Bytes to);
  void ShowIfLong(size_t bytes);
  void FinishSends();
  bool HasUnsent() const;
  // It has, or waits for the peer to take what it has put.
  bool WaitsForPeer() const { return HasUnsent() || !writes_.empty(); }

  // Receiving: queue_pair_receive.cc.
  bool Receive();
  Taking Take(const ReceivedSlot& slot);
  Taking TakeMessage(const ReceivedSlot& slot);
  Taking TakePiece(ConstBytes payload);
  Taking FinishMessage(const std::byte* lent = nullptr);
  static void Scatter(const soft::EntryList& entries, soft::Place& place, ConstBytes payload);
  Taking TakeWrite(const ReceivedSlot& slot);
  Taking TakeWriteFrom(const ReceivedSlot& slot);
  Taking GoOnWithWrite();
  Taking TakeReadRequest(const ReceivedSlot& slot);
  Taking TakeReadData(const ReceivedSlot& slot);
  void Discard();
  bool Breach();

  // Ending: queue_pair_end.cc.
  Taking Refuse(EndReason reason, const std::string& detail, uint64_t refused_read = 0);
  void BeginClosing();
  bool ProgressClosing();
  void OnPeersEnd(PeerEnd end);
  void End(Cause cause, std::string detail);
  void CloseChannel(EndReason reason, uint64_t refused_read = 0);
  void FlushSends();
  void FlushReceives();
  void PushEvent(RendezvousType type, Cause cause, std::string detail, ConstBytes private_data);

  const QueuePairId id_;
  const QueuePairOptions options_;
  FabricShared& shared_;
  Phase phase_ = Phase::kUnused;
  bool announced_ = false;
  bool peer_gone_ = false;
  bool waits_for_receive_ = false;  // a message stands in front of the peer's block
  std::unique_ptr<Channel> channel_;
  soft::WatchId watch_ = soft::WatchId::kNone;
  soft::WatchId process_watch_ = soft::WatchId::kNone;
  PeerProcess process_;
  Agreement agreement_;

  soft::WorkQueue<soft::SendSlot> sends_;
  uint64_t next_send_ = 0;      // whose bytes go into the block next
  uint32_t sent_ = 0;           // of it
  bool begun_ = false;          // something of it stands in the block
  soft::Place send_place_;      // the rest of it
  uint64_t next_finished_ = 0;  // to be reported
  GrowingRing<ReadInFlight> reads_;
  uint64_t reads_begun_ = 0;
  uint64_t writes_end_ = 0;  // the slot behind the last RDMA Write
  GrowingRing<WriteInFlight> writes_;
  ReadPuller puller_;
  bool pulling_ = false;
  bool drained_ = false;  // the socket, by a post: what has woken us there is not told of again
  size_t pull_budget_ = 0;

  soft::WorkQueue<soft::ReceiveSlot> receives_;
  size_t receives_reserved_ = 0;  // completions
  uint64_t next_received_ = 0;    // to be filled
  Incoming incoming_;
  size_t lent_polled_ = 0;  // messages that were lent, polled and not returned

  GrowingRing<PeerRead> peer_reads_;
  uint64_t peer_reads_answered_ = 0;
  WritePuller write_puller_;
  SlotHeader peers_write_;    // that it takes the bytes of
  bool pulls_write_ = false;  // the rest of it is taken in the next Progress
  bool peers_turn_ = false;   // the next piece answers the peer's read, if there is one
  uint64_t blamed_slot_ = UINT64_MAX;
};

}  // namespace esdp::fabric::local

#endif  // ESDP_IMPL_FABRIC_LOCAL_QUEUE_PAIR_H_
