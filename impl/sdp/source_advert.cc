#include "impl/sdp/source_advert.h"

#include "impl/sdp/limits.h"

namespace esdp::sdp {

void SourceAdvert::Offer(const OperationRange& range, Actions& actions) {
  state_ = State::kOffering;
  id_ = AdvertId{next_id_++};
  range_ = range;
  acknowledged_ = 0;
  Expose expose;
  expose.advert = id_;
  expose.range = range;
  expose.right = Right::kRemoteRead;
  actions.emplace_back(expose);
}

bool SourceAdvert::OnExposed(const Exposed& answer) {
  if (state_ != State::kOffering || answer.advert != id_) return false;
  remote_ = answer.range;
  return true;
}

bool SourceAdvert::OnExposeFailed(AdvertId id) {
  if (state_ != State::kOffering || id != id_) return false;
  state_ = State::kIdle;
  return true;
}

wire::SrcAvail SourceAdvert::Message() const {
  return {range_.length, remote_.key, remote_.address};
}

void SourceAdvert::OnPosted(uint64_t operation_number, uint64_t stream_begin) {
  state_ = State::kOutstanding;
  operation_number_ = operation_number;
  begin_ = stream_begin;
}

SourceAdvert::Progress SourceAdvert::OnRdmaRdCompl(uint32_t bytes,
                                                   std::optional<uint32_t> invalidated_key,
                                                   Actions& actions) {
  Progress progress;
  if (!outstanding()) {
    progress.violation = "RdmaRdCompl: no SrcAvail is outstanding";
    return progress;
  }
  const uint32_t left = range_.length - kInlineBytes - acknowledged_;
  if (bytes > left) {
    progress.violation = "RdmaRdCompl.Len: more than the advert has left";
    return progress;
  }
  if (invalidated_key && (*invalidated_key != remote_.key || bytes != left)) {
    progress.violation = "RKey: invalidated, but not of the advert being completed";
    return progress;
  }
  acknowledged_ += bytes;
  progress.operation_number = operation_number_;
  progress.bytes_read = bytes;
  progress.complete = bytes == left;
  if (progress.complete) WithdrawNow(invalidated_key.has_value(), actions);
  return progress;
}

SourceAdvert::Progress SourceAdvert::OnSendSm(Actions& actions) {
  Progress progress;
  if (!outstanding()) return progress;  // [17] a race, not an error
  const uint32_t gone = kInlineBytes + acknowledged_;
  progress.operation_number = operation_number_;
  progress.remainder = OperationRange{range_.operation, range_.length - gone, range_.offset + gone};
  WithdrawNow(false, actions);
  return progress;
}

void SourceAdvert::WithdrawNow(bool already_invalidated, Actions& actions) {
  Withdraw withdraw;
  withdraw.advert = id_;
  withdraw.already_invalidated = already_invalidated;
  actions.emplace_back(withdraw);
  leaving_.PushBack({id_, begin_, false});
  state_ = State::kIdle;
}

void SourceAdvert::OnWithdrawn(AdvertId id) {
  for (Leaving& leaving : leaving_) {
    if (leaving.id == id) leaving.withdrawn = true;
  }
  while (!leaving_.empty() && leaving_.front().withdrawn) leaving_.PopFront();
}

uint64_t SourceAdvert::HeldFrom() const {
  if (!leaving_.empty()) return leaving_.front().begin;
  return outstanding() ? begin_ : kNowhere;
}

bool SourceAdvert::Holds() const {
  return idle() || uint64_t{acknowledged_} + kInlineBytes <= range_.length;
}

void SourceAdvert::AddTo(Digest& digest) const {
  digest.Add(static_cast<uint8_t>(state_)).Add(static_cast<uint32_t>(id_)).Add(next_id_);
  digest.Add(static_cast<uint32_t>(range_.operation)).Add(range_.length).Add(range_.offset);
  digest.Add(remote_.key).Add(remote_.address).Add(acknowledged_).Add(operation_number_);
  digest.Add(begin_).Add(leaving_.size());
  for (const Leaving& leaving : leaving_) {
    digest.Add(static_cast<uint32_t>(leaving.id)).Add(leaving.begin).Add(leaving.withdrawn);
  }
}

}  // namespace esdp::sdp
