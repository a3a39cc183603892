#include "impl/sdp/outbound/source_adverts.h"

#include "impl/sdp/common/limits.h"

namespace esdp::sdp {

// [R7.1.1]
void SourceAdverts::Offer(const OperationRange& range, uint32_t inline_bytes, Actions& actions) {
  offering_ = true;
  offer_ = Advert{};
  offer_.id = AdvertId{next_id_++};
  offer_.range = range;
  offer_.inline_bytes = inline_bytes;
  Append<Expose>(actions) = {offer_.id, range, Right::kRemoteRead};
}

bool SourceAdverts::OnExposed(const Exposed& answer) {
  if (!offering_ || answer.advert != offer_.id) return false;
  offer_.remote = answer.range;
  return true;
}

bool SourceAdverts::OnExposeFailed(AdvertId id) {
  if (!offering_ || id != offer_.id) return false;
  offering_ = false;
  return true;
}

wire::SrcAvail SourceAdverts::Message() const {
  return {offer_.range.length, offer_.remote.key, offer_.remote.address};
}

void SourceAdverts::OnPosted(uint64_t operation_number, uint32_t sequence) {
  offering_ = false;
  offer_.operation_number = operation_number;
  offer_.sequence = sequence;
  adverts_.PushBack(offer_);
  revoked_last_ = false;
}

// --- the peer's answers ---

const char* SourceAdverts::CheckCompletion(uint32_t bytes,
                                           std::optional<uint32_t> invalidated_key) const {
  if (adverts_.empty()) {
    // [R17.6] It may have crossed the SinkAvail or the cancel that took the advert back.
    return revoked_last_ ? nullptr : "RdmaRdCompl: no SrcAvail is outstanding";
  }
  const Advert& oldest = adverts_.front();
  // [R7.1.8, R16.3]
  if (bytes > oldest.left()) return "RdmaRdCompl.Len: more than the advert has left";
  if (invalidated_key && (*invalidated_key != oldest.remote.key || bytes != oldest.left())) {
    return "RKey: invalidated, but not of the advert being completed";
  }
  return nullptr;
}

SourceAdverts::Progress SourceAdverts::OnRdmaRdCompl(uint32_t bytes,
                                                     std::optional<uint32_t> invalidated_key,
                                                     Actions& actions) {
  Progress progress;
  progress.violation = CheckCompletion(bytes, invalidated_key);
  if (progress.violation != nullptr || adverts_.empty()) return progress;
  Advert& oldest = adverts_.front();
  oldest.acknowledged += bytes;
  progress.bytes_read = bytes;
  progress.complete = oldest.left() == 0;  // [R7.1.7]
  if (progress.complete) WithdrawOldest(invalidated_key.has_value(), actions);
  return progress;
}

SourceAdverts::Progress SourceAdverts::OnSendSm(uint32_t acknowledged, Actions& actions) {
  Progress progress;
  // [R7.2.6] A race, not an error. [R7.3.1] An answer cannot be older than what it answers.
  if (adverts_.empty() || !AtOrAfter(acknowledged, adverts_.front().sequence)) return progress;
  if (cancel_ == Cancel::kSent && AtOrAfter(acknowledged, cancel_sequence_)) {  // [R7.4.7]
    progress.revoked = true;
    RevokeAll(actions);
  } else {
    progress.refused = true;  // [R7.4.8]
    WithdrawOldest(false, actions);
  }
  return progress;
}

std::optional<uint64_t> SourceAdverts::OnQueuePairLeft() {
  cancel_ = Cancel::kNone;
  revoked_last_ = false;
  if (const auto number = leaving_.TakeNext()) return number;
  if (!adverts_.empty()) return adverts_.TakeFront().operation_number;
  return std::nullopt;
}

// [R7.1.9, R7.4.9]
void SourceAdverts::WithdrawOldest(bool already_invalidated, Actions& actions) {
  const Advert oldest = adverts_.TakeFront();
  leaving_.Ask(oldest.id, oldest.operation_number, already_invalidated, actions);
  // [R7.4.6] A cancel that finds everything Processed gets no answer.
  if (adverts_.empty()) cancel_ = Cancel::kNone;
}

// --- taking back ---

void SourceAdverts::AskCancel() {
  if (outstanding() && cancel_ == Cancel::kNone) cancel_ = Cancel::kOwed;
}

void SourceAdverts::OnCancelPosted(uint32_t sequence) {
  cancel_ = Cancel::kSent;
  cancel_sequence_ = sequence;
}

void SourceAdverts::RevokeAll(Actions& actions) {
  revoked_last_ = outstanding();
  while (outstanding()) WithdrawOldest(false, actions);
}

// --- the whole ---

bool SourceAdverts::AdvertsHold() const {
  for (const Advert& advert : adverts_) {
    if (uint64_t{advert.acknowledged} + advert.inline_bytes >= advert.range.length) return false;
  }
  return true;
}

void SourceAdverts::Advert::AddTo(Digest& digest) const {
  digest.Add(static_cast<uint32_t>(id)).Add(static_cast<uint32_t>(range.operation));
  digest.Add(range.length).Add(range.offset).Add(remote.key).Add(remote.address);
  digest.Add(inline_bytes).Add(acknowledged).Add(sequence).Add(operation_number);
}

void SourceAdverts::AddTo(Digest& digest) const {
  digest.Add(offering_).Add(next_id_).Add(adverts_.size());
  if (offering_) offer_.AddTo(digest);
  for (const Advert& advert : adverts_) advert.AddTo(digest);
  leaving_.AddTo(digest);
  digest.Add(static_cast<uint8_t>(cancel_)).Add(cancel_sequence_).Add(revoked_last_);
}

}  // namespace esdp::sdp
