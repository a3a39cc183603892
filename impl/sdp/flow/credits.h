#ifndef ESDP_IMPL_SDP_FLOW_CREDITS_H_
#define ESDP_IMPL_SDP_FLOW_CREDITS_H_

#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/sdp/common/limits.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp {

// Sequence numbers and credits of both directions [4]. It knows what we may send, what the peer
// believes it may send, and when we owe it news.
class Credits {
 public:
  // --- our receive buffers ---
  void OnReceivePosted() {
    ++posted_;
    settled_ = false;
  }
  void OnReceiveTaken() {
    --posted_;
    settled_ = false;
  }
  uint16_t posted() const { return posted_; }

  // The Hello pair has been exchanged: both sides know the other's first count.
  // `hello_sequence` is the number that both of them count as: 0 [R4.1.2]; tests of the wrap start
  // elsewhere.
  void Start(uint16_t peer_buffers, uint32_t hello_sequence = 0);

  // The header of an arrived message, `bare` for a Data of 16 bytes. The caller has called
  // OnReceiveTaken. Returns what is wrong with it, or nullptr.
  const char* OnHeader(const wire::BaseHeader& header, bool bare);

  // --- what may be sent now ---
  int32_t available() const {  // [R4.2.1]
    const int32_t credits =
        int32_t{peer_buffers_} - static_cast<int32_t>(last_sent_ - peer_credit_base_);
    return credits > 0 ? credits : 0;
  }
  bool MaySendPayload() const { return available() >= kCreditsForPayload; }  // [R4.3.4]
  bool MaySendControl() const {  // [R4.3.1, R4.3.2, R4.3.3]
    const int32_t credits = available();
    return credits >= kCreditsForControl || (credits >= kCreditsForUpdate && GivesCredits());
  }

  // The same, were the acknowledgement not held.
  bool MaySendReleased() const {
    return available() >= kCreditsForUpdate && int32_t{posted_} > PeerKnows();
  }

  // Fills Bufs, MSeq and MSeqAck of a message that goes out now, and spends its credit.
  void Stamp(wire::BaseHeader& header, bool payload, bool bare);

  // --- what we owe the peer ---
  enum class Update : uint8_t { kNone, kNow, kLater };
  // kLater: the duty is there, but two sides that both hold unread bytes would answer each other's
  // bare Data for ever, so after the first few it is done at leisure: not before `LaterBy` delays.
  Update UpdateDue() {
    if (settled_) return Update::kNone;
    const Update due = GivesCredits() ? DutyToGive() : Update::kNone;
    settled_ = due == Update::kNone;
    return due;
  }
  uint32_t LaterBy() const;
  // A message that left now would tell the peer of credits; without, no update is due.
  bool GivesCredits() const { return PeerWouldKnow() > PeerKnows(); }
  // [4.4] The peer may be unable to send anything, and we have what it needs.
  bool MustUpdate() const;
  // For a sender whose payload waits. Due when there are exactly two credits and the peer may
  // believe that it owes us nothing; later, when one was sent already that may have crossed.
  Update EscapeDue() const;
  void OnEscape() { escaped_ = true; }

  // [R7.4.4] The acknowledgement stays at `sequence` until released, whatever else arrives.
  void HoldAcknowledgement(uint32_t sequence) {
    held_at_ = sequence;
    settled_ = false;
  }
  void ReleaseAcknowledgement() {
    held_at_.reset();
    settled_ = false;
  }
  bool holds_acknowledgement() const { return held_at_.has_value(); }

  uint32_t last_sent() const { return last_sent_; }
  uint32_t last_received() const { return last_received_; }
  uint32_t acknowledged_by_peer() const { return peer_acknowledged_; }

  bool InvariantsHold() const {
    return (!held_at_ || AtOrAfter(last_received_, *held_at_)) &&
           AtOrAfter(last_sent_, peer_acknowledged_) &&
           AtOrAfter(last_received_, acknowledged_told_);
  }
  void AddTo(Digest& digest) const;

 private:
  Update DutyToGive() const;  // where GivesCredits()
  // [R4.1.5]
  uint32_t AcknowledgementNow() const { return held_at_ ? *held_at_ : last_received_; }
  // Credits that the peer has left by our last header, and by the header we could send now.
  int32_t PeerKnows() const {
    return int32_t{posted_told_} - static_cast<int32_t>(last_received_ - acknowledged_told_);
  }
  int32_t PeerWouldKnow() const {
    return int32_t{posted_} - static_cast<int32_t>(last_received_ - AcknowledgementNow());
  }

  uint16_t posted_ = 0;
  uint16_t posted_told_ = 0;        // Bufs of our last header
  uint32_t acknowledged_told_ = 0;  // MSeqAck of our last header
  uint32_t last_received_ = 0;      // 0: the Hello
  uint32_t bare_received_ = 0;      // bare Data since our last send

  uint16_t peer_buffers_ = 0;       // of the peer's last header
  uint32_t peer_credit_base_ = 0;   // MSeqAck of the peer's last header
  uint32_t peer_acknowledged_ = 0;  // the highest MSeqAck heard
  uint32_t last_sent_ = 0;          // 0: the Hello
  uint32_t last_bare_sent_ = 0;
  uint32_t restores_ = 0;  // bare Data sent that gave nothing more, without a break
  bool bare_unacknowledged_ = false;
  bool escaped_ = false;
  bool settled_ = false;  // nothing has changed since UpdateDue was kNone

  std::optional<uint32_t> held_at_;
};

inline const char* Credits::OnHeader(const wire::BaseHeader& header, bool bare) {
  // [R4.1.1, R4.1.4, R4.1.7]
  if (header.sequence != last_received_ + 1) return "MSeq: not the next in sequence";
  if (!AtOrAfter(last_sent_, header.acknowledged)) return "MSeqAck: of a message never sent";
  settled_ = false;
  last_received_ = header.sequence;
  if (bare) {
    ++bare_received_;
  } else {
    restores_ = 0;
  }
  // A value that goes back acknowledges nothing new, but the credits are reckoned from it as they
  // are: gen2 holds the acknowledgement at a lower number than it gave before.
  peer_buffers_ = header.buffers;
  peer_credit_base_ = header.acknowledged;
  if (AtOrAfter(header.acknowledged, peer_acknowledged_)) peer_acknowledged_ = header.acknowledged;
  if (bare_unacknowledged_ && AtOrAfter(header.acknowledged, last_bare_sent_)) {
    bare_unacknowledged_ = false;
  }
  if (available() >= kCreditsForPayload) escaped_ = false;
  return nullptr;
}

inline void Credits::Stamp(wire::BaseHeader& header, bool payload, bool bare) {
  if (bare) {
    const bool gives_more = PeerWouldKnow() > PeerKnows() + static_cast<int32_t>(bare_received_);
    restores_ = gives_more ? 0 : restores_ + 1;
    last_bare_sent_ = last_sent_ + 1;
    bare_unacknowledged_ = true;
  } else {
    restores_ = 0;
  }
  settled_ = false;
  ++last_sent_;  // [R4.1.1, R4.2.2]
  header.sequence = last_sent_;
  header.buffers = posted_;  // [R4.2.3]
  header.acknowledged = AcknowledgementNow();
  posted_told_ = header.buffers;
  acknowledged_told_ = header.acknowledged;
  bare_received_ = 0;
  if (payload) escaped_ = false;
}

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_FLOW_CREDITS_H_
