#include "impl/sdp/flow/credits.h"

#include <algorithm>

#include "impl/sdp/common/limits.h"

namespace esdp::sdp {

void Credits::Start(uint16_t peer_buffers, uint32_t hello_sequence) {
  peer_buffers_ = peer_buffers;
  posted_told_ = posted_;
  last_sent_ = peer_credit_base_ = peer_acknowledged_ = hello_sequence;
  last_received_ = acknowledged_told_ = hello_sequence;
  settled_ = false;
}

// [R4.4.1, R4.4.2, R4.4.3, R4.4.4]
Credits::Update Credits::DutyToGive() const {
  const int32_t fresh = PeerWouldKnow();
  const int32_t known = PeerKnows();
  if (available() < kCreditsForUpdate) return Update::kNone;
  // Bare updates do not count: one that restores a buffer must not call for one in return.
  const int32_t effective = known + static_cast<int32_t>(bare_received_);
  if (fresh > effective) {
    const bool worthwhile = effective <= 2 || 2 * fresh > 3 * effective;
    return worthwhile || known <= kMustUpdateAt ? Update::kNow : Update::kNone;
  }
  if (known > kMustUpdateAt) return Update::kNone;
  // All that there is to give is what the peer's own bare Data took.
  return restores_ < kPromptRestores ? Update::kNow : Update::kLater;
}

bool Credits::MustUpdate() const {
  return PeerKnows() <= kMustUpdateAt && GivesCredits() && available() >= kCreditsForUpdate;
}

// [R4.4.4]
uint32_t Credits::LaterBy() const {
  const uint32_t doublings = restores_ - std::min(restores_, kPromptRestores);
  return 1u << std::min(doublings, kRestoreDoublingsMax);
}

// [R4.4.6]
Credits::Update Credits::EscapeDue() const {
  // By the same rule an esdp peer that heard a bare Data of ours may rest while it knows us at two.
  if (available() != kCreditsForPayload - 1 || !bare_unacknowledged_) return Update::kNone;
  return escaped_ ? Update::kLater : Update::kNow;
}

void Credits::AddTo(Digest& digest) const {
  digest.Add(posted_).Add(posted_told_).Add(acknowledged_told_).Add(last_received_);
  digest.Add(bare_received_).Add(peer_buffers_).Add(peer_credit_base_).Add(peer_acknowledged_);
  digest.Add(last_sent_).Add(last_bare_sent_).Add(bare_unacknowledged_).Add(escaped_);
  digest.Add(restores_).Add(held_at_.has_value()).Add(held_at_.value_or(0));
}

}  // namespace esdp::sdp
