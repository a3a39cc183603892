#include "impl/sdp/inbound/sink_adverts.h"

#include "impl/sdp/common/limits.h"

namespace esdp::sdp {
namespace {

SinkAdverts::Taken Violation(const char* reason) {
  SinkAdverts::Taken taken;
  taken.violation = reason;
  return taken;
}

}  // namespace

// --- offering ---

// [R8.1.2]
void SinkAdverts::Offer(const OperationRange& range, uint64_t operation_number, Actions& actions) {
  Advert advert;
  advert.id = AdvertId{next_id_++};
  if (next_id_ == 0) next_id_ = kFirstId;
  advert.range = range;
  advert.operation_number = operation_number;
  offer_ = advert;
  Expose expose;
  expose.advert = advert.id;
  expose.range = range;
  expose.right = Right::kRemoteWrite;
  actions.emplace_back(expose);
}

bool SinkAdverts::OnExposed(const Exposed& answer) {
  if (!offer_ || answer.advert != offer_->id) return false;
  offer_->remote = answer.range;
  return true;
}

bool SinkAdverts::OnExposeFailed(AdvertId id) {
  if (!offer_ || id != offer_->id) return false;
  offer_.reset();
  return true;
}

// [R8.2.2]
wire::SinkAvail SinkAdverts::Message() const {
  return {offer_->range.length, offer_->remote.key, offer_->remote.address, non_discards_};
}

void SinkAdverts::OnPosted() {
  outstanding_.PushBack(*offer_);
  offer_.reset();
  cancelled_ = false;
}

bool SinkAdverts::Fit(uint32_t buffer_bytes) const {
  for (const Advert& advert : outstanding_) {
    if (advert.range.length <= buffer_bytes) return false;
  }
  return true;
}

// --- what becomes of the oldest ---

SinkAdverts::Taken SinkAdverts::OnRdmaWrCompl(uint32_t bytes,
                                              std::optional<uint32_t> invalidated_key,
                                              uint64_t written, Actions& actions) {
  if (outstanding_.empty()) {
    // [R17.7] Behind a cancel it is late, not wrong.
    if (cancelled_ && !invalidated_key) return {};
    return Violation("RdmaWrCompl: no SinkAvail is outstanding");
  }
  const Advert& oldest = outstanding_.front();
  if (bytes == 0) return Violation("RdmaWrCompl.Len: is 0");
  // [R8.1.6]
  if (bytes > oldest.range.length) return Violation("RdmaWrCompl.Len: more than was advertised");
  if (bytes > written) return Violation("RdmaWrCompl.Len: more than was written");
  if (invalidated_key && *invalidated_key != oldest.remote.key) {  // [R16.3]
    return Violation("RKey: invalidated, but not of the advert being completed");
  }
  Taken taken;
  taken.is_taken = true;
  taken.operation_number = oldest.operation_number;
  taken.bytes = bytes;
  WithdrawOldest(invalidated_key.has_value(), actions);  // [R8.1.5]
  return taken;
}

// [R8.2.1, R8.2.6]
SinkAdverts::Taken SinkAdverts::OnPayload(uint32_t bytes, Actions& actions) {
  if (outstanding_.empty()) {
    OnUnadvertisedPayload();
    return {};
  }
  const Advert& oldest = outstanding_.front();
  if (bytes > oldest.range.length) return Violation("Len: more than the SinkAvail in its way");
  Taken taken;
  taken.is_taken = true;
  taken.operation_number = oldest.operation_number;
  taken.bytes = bytes;
  WithdrawOldest(false, actions);
  return taken;
}

void SinkAdverts::WithdrawOldest(bool already_invalidated, Actions& actions) {
  const Advert oldest = outstanding_.TakeFront();
  leaving_.Ask(oldest.id, oldest.operation_number, already_invalidated, actions);
  // [R8.4.5] Nothing left to cancel: the peer ignores the cancel, or had said all before it came.
  if (outstanding_.empty()) cancel_ = Cancel::kNone;
}

// --- cancelling ---

// [R8.4.1]
void SinkAdverts::AskCancel() {
  if (!outstanding_.empty() && cancel_ == Cancel::kNone) cancel_ = Cancel::kOwed;
}

void SinkAdverts::OnCancelPosted(uint32_t sequence) {
  cancel_ = Cancel::kSent;
  cancel_sequence_ = sequence;
  cancelled_ = true;
}

// [R8.4.5, R8.4.7]
bool SinkAdverts::OnSinkCancelAck(uint32_t acknowledged, Actions& actions) {
  if (cancel_ != Cancel::kSent || !AtOrAfter(acknowledged, cancel_sequence_)) return false;
  DropAll(actions);
  return true;
}

// [R5.22, R8.5.1]
void SinkAdverts::DropAll(Actions& actions) {
  while (!outstanding_.empty()) WithdrawOldest(false, actions);
  cancel_ = Cancel::kNone;
}

void SinkAdverts::OnLost() {
  offer_.reset();
  outstanding_.clear();
  leaving_.clear();
  cancel_ = Cancel::kNone;
}

void SinkAdverts::AddTo(Digest& digest) const {
  const auto add = [&digest](const Advert& advert) {
    digest.Add(static_cast<uint32_t>(advert.id)).Add(advert.operation_number);
    digest.Add(static_cast<uint32_t>(advert.range.operation)).Add(advert.range.length);
    digest.Add(advert.range.offset).Add(advert.remote.key).Add(advert.remote.address);
  };
  digest.Add(next_id_).Add(offer_.has_value()).Add(outstanding_.size());
  if (offer_) add(*offer_);
  for (const Advert& advert : outstanding_) add(advert);
  leaving_.AddTo(digest);
  digest.Add(non_discards_).Add(static_cast<uint8_t>(cancel_)).Add(cancel_sequence_);
  digest.Add(cancelled_);
}

}  // namespace esdp::sdp
