#include "impl/sdp/advert_reader.h"

#include <algorithm>

#include "impl/sdp/limits.h"

namespace esdp::sdp {

bool AdvertReader::KeepsInline(uint32_t inline_bytes) {
  return inline_bytes > 0 && inline_bytes < kInlineUseMin;
}

const char* AdvertReader::OnSrcAvail(const wire::SrcAvail& advert, const Inline& inline_payload) {
  if (active()) return "SrcAvail: another one is outstanding";  // [5] Combined: one
  if (advert.length == 0) return "SrcAvail.Len: is 0";
  if (advert.length > wire::kAdvertBytesMax) return "SrcAvail.Len: above 2^31";
  if (inline_payload.length >= advert.length) return "SrcAvail.Len: not above the inline bytes";
  if (advert.virtual_address + (advert.length - 1) < advert.virtual_address) {
    return "SrcAvail.VA: the range wraps";
  }
  state_ = KeepsInline(inline_payload.length) ? State::kFresh : State::kReading;
  cancelled_ = false;
  length_ = advert.length;
  inline_bytes_ = inline_payload.length;
  started_ = obtained_ = inline_payload.length;
  reported_ = 0;
  remote_ = {advert.remote_key, advert.virtual_address};
  inline_payload_ = inline_payload;
  return nullptr;
}

uint32_t AdvertReader::left() const {
  if (cancelled_ || (state_ != State::kFresh && state_ != State::kReading)) return 0;
  return length_ - started_;
}

AdvertReader::Inline AdvertReader::UseInline() {
  state_ = State::kReading;
  return inline_payload_;
}

AdvertReader::Inline AdvertReader::RereadInline() {
  state_ = State::kReading;
  started_ = obtained_ = 0;
  return inline_payload_;
}

Read AdvertReader::StartRead(const OperationRange& target, uint64_t operation_number) {
  Read read;
  read.target = target;
  read.source = {remote_.key, remote_.address + started_};
  started_ += target.length;
  reads_.PushBack({operation_number, target.length});
  return read;
}

AdvertReader::FinishedRead AdvertReader::OnReadFinished() {
  const FinishedRead read = reads_.TakeFront();
  obtained_ += read.length;
  return read;
}

void AdvertReader::Refuse() { state_ = State::kRefused; }

bool AdvertReader::OnSrcAvailCancel() {
  // [7.4] After SendSm the advert is Processed: the cancel has crossed it and gets no answer.
  if (state_ == State::kNone || state_ == State::kRemainder) return false;
  cancelled_ = true;
  return true;
}

bool AdvertReader::HoldsAcknowledgement() const {
  return cancelled_ && active() && (!reads_.empty() || Unreported() > 0);
}

// [7.1, step 3] The inline bytes never count, read again or not.
uint32_t AdvertReader::Unreported() const {
  return std::max(obtained_, inline_bytes_) - inline_bytes_ - reported_;
}

AdvertReader::Answer AdvertReader::NextAnswer() const {
  if (state_ != State::kReading && state_ != State::kRefused) return Answer::kNone;
  if (!reads_.empty()) return Answer::kNone;
  if (Unreported() > 0) return Answer::kRdmaRdCompl;  // [7.2] before SendSm
  return state_ == State::kRefused || cancelled_ ? Answer::kSendSm : Answer::kNone;
}

AdvertReader::Completion AdvertReader::TakeRdmaRdCompl() {
  Completion completion;
  completion.message.length = Unreported();
  reported_ += completion.message.length;
  if (obtained_ == length_) {
    completion.finished_key = remote_.key;
    state_ = State::kNone;
  }
  return completion;
}

void AdvertReader::TakeSendSm() {
  // [7.4] What a cancelled advert has left is revoked: it was never part of the stream.
  remainder_ = length_ - obtained_;
  state_ = cancelled_ ? State::kNone : State::kRemainder;
}

void AdvertReader::OnData(uint32_t length) {
  remainder_ -= std::min(remainder_, length);
  if (remainder_ == 0) state_ = State::kNone;
}

bool AdvertReader::brings_more() const {
  if (state_ == State::kRefused) return !cancelled_;
  return state_ == State::kRemainder || left() > 0;
}

bool AdvertReader::Holds() const {
  return state_ == State::kNone ||
         (obtained_ <= started_ && started_ <= length_ && inline_bytes_ < length_);
}

void AdvertReader::AddTo(Digest& digest) const {
  digest.Add(static_cast<uint8_t>(state_)).Add(cancelled_).Add(length_).Add(inline_bytes_);
  digest.Add(started_).Add(obtained_).Add(reported_).Add(remainder_).Add(remote_.key);
  digest.Add(remote_.address).Add(static_cast<uint16_t>(inline_payload_.buffer));
  digest.Add(inline_payload_.offset).Add(inline_payload_.length);
  for (const FinishedRead& read : reads_) digest.Add(read.operation_number).Add(read.length);
}

}  // namespace esdp::sdp
