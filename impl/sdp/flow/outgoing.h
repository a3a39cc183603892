#ifndef ESDP_IMPL_SDP_FLOW_OUTGOING_H_
#define ESDP_IMPL_SDP_FLOW_OUTGOING_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/base/time.h"
#include "impl/sdp/flow/credits.h"
#include "impl/sdp/flow/urgent_out.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/config.h"
#include "impl/sdp/interface/counters.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp {

// The one place where messages are made. It keeps the credits, the work that is posted on the
// queue pair and not finished, the first-message rules of iWARP, and the delayed acknowledgement.
// A part asks whether it may send, posts a body, and fills the action that comes back.
class Outgoing {
 public:
  enum class Kind : uint8_t { kControl, kPayload, kDisConn };

  explicit Outgoing(const Config& config) : work_max_(config.send_work_max) {}
  // A queue pair is ready, and the Hellos have been exchanged.
  void Start(const Config& config, uint16_t peer_buffers);
  // It is gone, with the credits and all that was posted; the caller has asked for DisConnPosted.
  void OnQueuePairLeft();
  // Nothing is posted any more: the connection has ended.
  void OnEnd() { posted_.clear(); }

  void BeginStep(Time now) { now_ = now; }
  Time now() const { return now_; }
  Credits& credits() { return credits_; }
  const Credits& credits() const { return credits_; }

  // --- what may leave now ---
  bool HasSlot(uint32_t reserved) const { return WorkPosted() + reserved < work_max_; }
  bool MaySendPayload() const { return credits_.MaySendPayload(); }
  bool MaySendControl() const { return HasSlot(0) && credits_.MaySendControl(); }
  // [R7.4.4] The report of reads that are over may bring the acknowledgement that is held back for
  // them, and has to where nothing else gives the peer credits for the last one that we have.
  bool MaySendReport(size_t reads_in_flight) const {
    return MaySendControl() || (credits_.holds_acknowledgement() && reads_in_flight == 0 &&
                                HasSlot(0) && credits_.MaySendReleased());
  }

  // --- messages ---
  // Makes a message and gives it the next MSeq [R4.1.3]; the caller fills in what it carries.
  template <typename Body>
  Send& Post(const Body& body, Kind kind, Actions& actions, Counters& counters) {
    Send& send = Append<Send>(actions);
    send.message.body.template emplace<Body>(body);
    Stamp(send.message.base, kind, false, counters);
    return send;
  }
  [[gnu::noinline]] void PostBare(Actions& actions, Counters& counters) {
    Send& send = Append<Send>(actions);
    send.message.body.emplace<wire::Data>();
    Stamp(send.message.base, Kind::kControl, true, counters);
  }
  bool AnythingPosted() const { return !posted_.empty(); }
  bool DisConnPosted() const;
  // The oldest has left. While anything is posted.
  Kind OnSendFinished() { return posted_.TakeFront(); }

  // --- reads and writes take slots of the same queue ---
  void OnRdmaPosted() { ++rdma_posted_; }
  void OnRdmaFinished() { --rdma_posted_; }
  size_t WorkPosted() const { return posted_.size() + rdma_posted_; }

  // --- the first message on a queue pair [R2.7.5, R2.7.6] ---
  bool speaks_first() const { return speaks_first_; }
  void SpeakFirst(Actions& actions, Counters& counters) {
    if (!MaySendControl()) return;
    PostBare(actions, counters);
    speaks_first_ = false;
  }
  bool waits_for_first() const { return waits_for_first_; }
  void OnMessageArrived() { waits_for_first_ = false; }

  // --- urgent notice: it rides on the first message that leaves in time [R10.1] ---
  // `ahead`: the user bytes up to and with the next urgent one; nothing: none waits, or none may be
  // announced now.
  void SetUrgentAhead(std::optional<uint64_t> ahead) { urgent_ahead_ = ahead; }
  bool UrgentNoticeDue() const { return urgent_.NoticeDue(urgent_ahead_); }
  bool urgent_noticed() const { return urgent_.noticed(); }
  // This message carries the urgent byte.
  void OnUrgentByte(wire::BaseHeader& header, Counters& counters);

  // --- what the peer is owed without having been asked for ---
  // Payload has arrived: some message acknowledges it within the delay.
  void OweAcknowledgement() {
    if (!acknowledge_at_) acknowledge_at_ = AddSaturating(now_, acknowledge_delay_);
  }
  // The peer has written, and advertises nothing until it hears that we know.
  void OweAnswerToWrite() {
    OweAcknowledgement();
    owes_answer_to_write_ = true;
  }
  bool owes_answer_to_write() const { return owes_answer_to_write_; }
  // No SinkAvail brings the answer soon: it leaves with this step.
  void AnswerWriteAtOnce() { acknowledgement_due_ |= owes_answer_to_write_; }
  bool acknowledgement_due() const { return acknowledgement_due_; }
  void SetStalled(bool stalled, Counters& counters) {  // payload waits for credits
    if (stalled && !stalled_) ++counters.credit_stalls;
    stalled_ = stalled;
  }
  bool OwesCredits() { return credits_.UpdateDue() != Credits::Update::kNone || stalled_; }
  // News of credits, or an acknowledgement that is due; where neither has left with a message.
  void SendCredits(Actions& actions, Counters& counters);

  // --- the timer of the acknowledgement ---
  void OnAcknowledgeTimer() {
    acknowledge_armed_ = false;
    acknowledgement_due_ = acknowledge_at_ && *acknowledge_at_ <= now_;
  }
  bool TimerStands() const {
    return !acknowledge_at_ || acknowledge_armed_ || acknowledgement_due_;
  }
  // `over`: it is not needed any more.
  void ArmTimer(bool over, Actions& actions);

  bool InvariantsHold() const { return WorkPosted() <= work_max_ && credits_.InvariantsHold(); }
  void AddTo(Digest& digest) const;

 private:
  void Stamp(wire::BaseHeader& header, Kind kind, bool bare, Counters& counters) {
    if (urgent_ahead_) [[unlikely]]
      RideUrgentNotice(header);
    credits_.Stamp(header, kind == Kind::kPayload, bare);
    posted_.PushBack() = kind;
    ++counters.messages_sent;
    if (header.acknowledged == credits_.last_received()) {
      acknowledge_at_.reset();
      acknowledgement_due_ = owes_answer_to_write_ = false;
    }
  }
  [[gnu::noinline]] void RideUrgentNotice(wire::BaseHeader& header);

  const uint32_t work_max_;
  uint32_t rdma_posted_ = 0;
  Credits credits_;
  GrowingRing<Kind, 64> posted_;  // in order
  Time now_{};

  bool speaks_first_ = false;     // a bare Data is owed before anything else
  bool waits_for_first_ = false;  // nothing may leave before a message has arrived
  bool stalled_ = false;
  bool connecting_ = false;
  bool owes_answer_to_write_ = false;
  bool acknowledgement_due_ = false;
  bool acknowledge_armed_ = false;
  Duration acknowledge_delay_{};
  std::optional<Time> acknowledge_at_;  // for payload that no message of ours has acknowledged
  UrgentOut urgent_;
  std::optional<uint64_t> urgent_ahead_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_FLOW_OUTGOING_H_
