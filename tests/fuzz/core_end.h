#ifndef ESDP_TESTS_FUZZ_CORE_END_H_
#define ESDP_TESTS_FUZZ_CORE_END_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "impl/sdp/connection.h"
#include "tests/fuzz/drawn.h"

// One core, its application's memory and its fabric, all of which keep to their contracts: only the
// peer may lie. Traps when the core breaks its own.

namespace esdp::sdp::fuzz {

// The byte at a position of either stream.
constexpr uint8_t ByteAt(uint64_t position) {
  return static_cast<uint8_t>(position * 167 ^ position >> 8);
}

struct Parcel {  // what travels to the peer, in order: a message, or an RDMA write
  std::optional<Write> write;
  wire::Message message;
  std::vector<uint8_t> bytes;
  std::optional<uint32_t> invalidate;
};

class CoreEnd {
 public:
  CoreEnd(const Config& config, uint32_t reads_max);

  // --- what the application does ---
  void AskToSend(Drawn& drawn);
  void AskToReceive(uint32_t length, Drawn& drawn);
  void Cancel(Drawn& drawn);
  void Await();
  void Want(uint8_t modes);
  void Shut();
  void Close(bool abort);

  // --- what the fabric does, if it can; false if not ---
  bool FinishSend();
  bool FinishRead(CoreEnd* peer);
  bool FinishWrite();
  bool FinishWithdrawal();
  bool FireTimer();
  // A message arrives, if a receive is posted.
  bool Arrive(const wire::Message& message, const std::vector<uint8_t>& payload,
              std::optional<uint32_t> invalidate);
  void Place(const Write& write, const std::vector<uint8_t>& bytes);
  bool MayLose() const { return disconnect_.has_value() && !lost_; }
  void Lose(bool clean, bool fabric_error);

  void Feed(const Input& input);
  void SetUp(const wire::Message* hello, const wire::Message* hello_ack, uint32_t peer_reads_max);

  // --- what is known of it ---
  const Connection& core() const { return core_; }
  std::optional<wire::Message> hello, hello_ack;  // what it said at set-up
  std::deque<Parcel> outgoing;
  bool lost() const { return lost_; }
  bool rejected() const { return rejected_; }
  bool receives_posted() const { return !posted_.empty(); }
  bool connected() const { return connected_; }
  bool cancelled() const { return cancelled_; }
  bool pending_receive() const;
  bool shut() const { return shut_; }
  bool closed() const { return closing_; }
  uint64_t received() const { return received_; }
  uint64_t sent() const { return sent_; }
  Time next_timer() const;
  void PassTime(Time to) { now_ = to; }
  Time now() const { return now_; }
  std::optional<Outcome> cause() const { return cause_; }
  // At the end: every operation has ended, nothing is in use.
  void RequireOver() const;
  bool peer_is_honest = true;    // nobody has touched what it sent
  bool content_is_known = true;  // the bytes of its stream are those of ByteAt, as far as they come

 private:
  struct Operation {
    enum class Kind : uint8_t { kSend, kReceive, kOther } kind = Kind::kOther;
    std::vector<uint8_t> memory;
    int gathers = 0, reads = 0, writes = 0, exposures = 0;
    bool finished = false;
  };
  struct Exposure {
    OperationRange range;
    RemoteRange remote;
    Right right = Right::kRemoteRead;
    bool live = true;
  };

  void AnswerExpose();
  OperationId NewOperation(Operation::Kind kind, uint32_t length);
  uint8_t* At(const OperationRange& range);
  bool IsPosted(ReceiveBuffer buffer) const;
  Exposure* Reach(uint32_t key, uint64_t address, uint32_t length, Right right);

  template <typename T>
  void Act(const T&) {}
  void Act(const StartConnect& action) { hello = action.hello; }
  void Act(const AcceptConnection& action) { hello_ack = action.hello_ack; }
  void Act(const RejectConnection&) { rejected_ = true; }
  void Act(const ReplaceQueuePair&);
  void Act(const ReportConnected&);
  void Act(const Disconnect& action);
  void Act(const ReportClosed& action);
  void Act(const PostReceive& action);
  void Act(const PrepareReceives&) { to_prepare_ = true; }
  void Act(const RetireReceive&) {}
  void Act(const sdp::ReportReadiness& action) {
    Require(readiness_ != action.readiness || action.readiness.readable);  // more of it
    readiness_ = action.readiness;
  }
  void Act(const sdp::Send& action);
  void Act(const Read& action);
  void Act(const Write& action);
  void Act(const CopyIn& action);
  void Act(const CopyOut& action);
  void Act(const Expose& action);
  void Act(const Withdraw& action);
  void Act(const FinishOperation& action);
  void Act(const SetTimer& action) { timers_[action.timer] = action.at; }
  void Act(const ClearTimer& action) { timers_.erase(action.timer); }

  Config config_;
  Connection core_;
  uint32_t reads_max_;
  Time now_{};

  std::map<OperationId, Operation> operations_;
  size_t pending_ = 0;
  uint32_t next_operation_ = 1;
  uint64_t asked_ = 0;     // bytes of sends
  uint64_t sent_ = 0;      // of those that have ended, some short
  uint64_t received_ = 0;  // bytes of receives that have ended
  bool shut_ = false, closing_ = false, cancelled_ = false;

  bool connected_ = false, rejected_ = false, lost_ = false;
  std::optional<Outcome> cause_;
  std::optional<Disconnect> disconnect_;
  std::deque<PostReceive> posted_;
  std::map<ReceiveBuffer, std::vector<uint8_t>> received_bytes_;
  std::map<SendBuffer, std::vector<uint8_t>> copied_bytes_;
  std::set<SendBuffer> send_buffers_out_;
  std::deque<sdp::Send> sends_;
  std::deque<Read> reads_;
  std::deque<Write> writes_;
  std::map<AdvertId, Exposure> exposures_;
  std::deque<AdvertId> withdrawing_;
  std::optional<AdvertId> to_expose_;
  bool to_prepare_ = false;
  std::optional<sdp::Readiness> readiness_;
  std::map<Timer, Time> timers_;
  uint32_t next_key_ = 1;
  uint32_t last_sequence_ = 0;
  // What the peer has told last, for its credits.
  uint16_t peer_buffers_ = 0;
  uint32_t peer_acknowledged_ = 0;
};

}  // namespace esdp::sdp::fuzz

#endif  // ESDP_TESTS_FUZZ_CORE_END_H_
