#ifndef ESDP_TESTS_SDP_SIDE_H_
#define ESDP_TESTS_SDP_SIDE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "impl/base/random.h"
#include "impl/sdp/connection.h"
#include "tests/sdp/lent.h"
#include "tests/sdp/mode_watch.h"

// One of the two ends: a core, its application's memory, and its side of a simulated fabric. A
// checker that knows only actions and inputs watches memory: no operation ends while anybody could
// still reach its bytes, and none is touched afterwards.

namespace esdp::sdp::testing {

struct SimOperation : Lent {
  enum class Kind : uint8_t { kSend, kReceive, kShutdown, kClose, kUrgent, kSuspend };
  Kind kind = Kind::kSend;
  std::vector<std::byte> memory;
  bool cancel_asked = false;
  bool urgent = false;  // send: its last byte is
  bool was_exposed = false;
  std::optional<FinishOperation> result;
};

struct SendOptions {
  std::vector<uint32_t> pieces;
  bool exposable = true;
  Path path = Path::kByThreshold;
  CompleteAt complete_at = CompleteAt::kReusable;
  uint64_t zcopy_min = 64 * 1024;
  bool urgent = false;
};

struct ReceiveOptions {
  std::vector<uint32_t> pieces;
  bool wait_all = false;
  bool placeable = true;
  bool shown = true;
  bool until_advert = false;
  Path path = Path::kByThreshold;
  uint64_t zcopy_min = 64 * 1024;
};

// One end: a core, its memory, and its side of the fabric.
class Side {
 public:
  Side(const Config& config, const char* name);

  // --- the application ---
  OperationId AskToSend(const SendOptions& options);
  OperationId AskToReceive(const ReceiveOptions& options);
  OperationId AskToAwaitUrgent();
  OperationId AskToShutdown();
  OperationId AskToClose(bool abort);
  OperationId AskToSuspend(Time until = kTimeInfinite);
  void AskToCancel(OperationId operation, CancelMode mode);
  bool connects_first() const { return config_.connecting; }
  const SimOperation& operation(OperationId id) const { return operations_.at(id); }
  bool finished(OperationId id) const { return operation(id).result.has_value(); }
  size_t pending() const { return pending_; }
  bool saw_end_of_stream() const { return saw_end_of_stream_; }
  bool prepares = true;                                  // how PrepareReceives is answered
  size_t adverts_most() const { return adverts_most_; }  // outstanding at once
  // Sends that were shown to the peer and then ended without a byte.
  uint64_t dropped_after_advert() const { return dropped_after_advert_; }
  // The bytes of all sends, less what was taken back of them, and of all receives, in order.
  std::vector<std::byte> SentStream() const;
  const std::vector<std::byte>& received_stream() const { return received_; }
  // Where in them the urgent bytes are, in order.
  std::vector<uint64_t> SentUrgent() const;
  const std::vector<uint64_t>& received_urgent() const { return received_urgent_; }

  void Feed(const Input& input);
  Connection& core() { return core_; }
  const Connection& core() const { return core_; }
  const std::vector<Action>& history() const { return history_; }
  uint64_t immediate_sends() const { return immediate_sends_; }
  template <typename T>
  size_t CountOf() const {
    size_t count = 0;
    for (const Action& action : history_) count += std::holds_alternative<T>(action) ? 1u : 0u;
    return count;
  }
  // Every message this side has posted, with its body of type T.
  template <typename T>
  std::vector<wire::Message> Posted() const {
    std::vector<wire::Message> messages;
    for (const Action& action : history_) {
      const auto* send = std::get_if<sdp::Send>(&action);
      if (send != nullptr && std::holds_alternative<T>(send->message.body)) {
        messages.push_back(send->message);
      }
    }
    return messages;
  }

 private:
  friend class Pair;
  struct WireMessage {
    int queue_pair = 0;
    wire::Message message;
    std::vector<std::byte> payload;
    std::optional<uint32_t> invalidate;
    std::optional<RemoteRange> written_to;  // no message, but an RDMA Write
  };
  struct Exposure {
    OperationRange range;
    uint32_t key = 0;
    bool live = true;
    Right right = Right::kRemoteRead;
    bool withdrawn = false;  // asked for
  };
  using Work = std::variant<sdp::Send, Read, Write>;

  void Run(const Action& action);
  void Act(const StartConnect& action);
  void Act(const AcceptConnection& action);
  void Act(const RejectConnection& action);
  void Act(const ReplaceQueuePair& action);
  void Act(const AwaitHello& action);
  void Act(const Farewell&) {}  // the fabric's business
  void Act(const ReportConnected& action);
  void Act(const Disconnect& action);
  void Act(const ReportClosed& action);
  void Act(const PostReceive& action);
  void Act(const PrepareReceives& action);
  void Act(const RetireReceive& action);
  void Act(const sdp::Send& action);
  void Act(const Read& action);
  void Act(const Write& action);
  void Act(const CopyIn& action);
  void Act(const CopyOut& action);
  void Act(const Expose& action);
  void Act(const Withdraw& action);
  void Act(const FinishOperation& action);
  void Act(const ReportReadiness& action);
  void Act(const SetTimer& action);
  void Act(const ClearTimer& action);
  OperationId NewOperation(SimOperation::Kind kind, const std::vector<uint32_t>& pieces);
  std::byte* At(const OperationRange& range);
  WireMessage Assemble(const sdp::Send& send);
  static size_t BytesInStream(const SimOperation& operation);
  void CheckUrgent(const sdp::Send& send);
  void CheckOrder(const FinishOperation& action, SimOperation::Kind kind);
  void CheckAdverts(const sdp::Send& send);
  void CheckReadiness() const;
  // Where the peer's RDMA goes: nullptr, with a failure noted, where it may not.
  std::byte* Reached(const RemoteRange& remote, uint32_t length, Right right);

  std::string name_;
  Config config_;
  Connection core_;
  Time now_{};
  std::vector<Action> history_;

  std::map<OperationId, SimOperation> operations_;
  std::vector<OperationId> send_order_;
  std::map<SimOperation::Kind, std::deque<OperationId>> expected_;  // posting order
  uint32_t next_operation_ = 1;
  size_t pending_ = 0;
  bool saw_end_of_stream_ = false;
  std::vector<std::byte> received_;
  std::vector<uint64_t> received_urgent_;
  bool urgent_announced_ = false;  // by a message of ours, and the byte has not left

  std::optional<wire::Message> hello_, hello_ack_;
  bool rejected_ = false, connected_ = false, reported_closed_ = false;
  std::optional<Disconnect> disconnect_;
  bool lost_ = false;
  int queue_pair_ = 0;  // how many there were before this one
  bool connecting_ = false;
  bool awaits_hello_ = false;
  uint16_t suspend_port_ = 0;            // where it has asked the peer to connect anew
  std::optional<uint16_t> resume_port_;  // where it was asked to
  bool established_ = false;

  std::map<ReceiveBuffer, std::vector<std::byte>> receive_memory_;
  std::map<SendBuffer, std::vector<std::byte>> send_memory_;
  std::map<SendBuffer, bool> send_buffer_busy_;
  std::deque<ReceiveBuffer> posted_;
  std::map<ReceiveBuffer, uint32_t> receive_bytes_;  // of each as it was posted
  bool prepare_asked_ = false;
  std::deque<Work> work_;             // posted, not started
  std::deque<sdp::Send> sent_;        // started, SendFinished not given
  std::deque<WireMessage> outgoing_;  // on the wire
  std::deque<Read> reading_;          // started, ReadFinished not given
  std::deque<Write> writing_;         // started, WriteFinished not given
  std::map<AdvertId, Exposure> exposures_;
  std::deque<AdvertId> withdrawing_;
  std::optional<AdvertId> to_answer_;
  uint32_t next_key_ = 100;
  uint32_t last_sequence_ = 0;
  uint64_t immediate_sends_ = 0;
  size_t peer_max_adverts_ = 255;
  size_t adverts_most_ = 0;
  ModeWatch mode_watch_;
  uint64_t dropped_after_advert_ = 0;
  std::optional<Readiness> readiness_;               // as reported
  uint64_t data_arrived_ = 0, adverts_arrived_ = 0;  // bytes
  uint64_t copied_in_ = 0, read_ = 0;
  OperationId copied_out_{};  // the last one
  std::map<Timer, Time> timers_;
  int expose_failures_wanted_ = 0;  // out of 100
  Random chance_{1};
};

}  // namespace esdp::sdp::testing

#endif  // ESDP_TESTS_SDP_SIDE_H_
