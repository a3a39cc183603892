#include "impl/sdp/inbound/advert_reader.h"

#include <algorithm>

#include "impl/sdp/common/limits.h"

namespace esdp::sdp {
namespace {

const char* CheckRange(const wire::SrcAvail& advert, uint32_t inline_bytes) {
  if (advert.length == 0) return "SrcAvail.Len: is 0";
  if (advert.length > wire::kAdvertBytesMax) return "SrcAvail.Len: above 2^31";
  if (inline_bytes >= advert.length) return "SrcAvail.Len: not above the inline bytes";
  if (advert.virtual_address + (advert.length - 1) < advert.virtual_address) {
    return "SrcAvail.VA: the range wraps";
  }
  return nullptr;
}

}  // namespace

// [R7.1.2]
bool AdvertReader::KeepsInline(uint32_t inline_bytes) {
  return inline_bytes > 0 && inline_bytes < kInlineUseMin;
}

// [R7.1.5] The inline bytes never count, read again or not.
uint32_t AdvertReader::Advert::Unreported() const {
  return std::max(obtained, inline_bytes) - inline_bytes - reported;
}

const char* AdvertReader::OnSrcAvail(const wire::SrcAvail& advert, const Inline& inline_payload,
                                     size_t held_max) {
  if (cancelled_) return "SrcAvail: a cancel is not processed";                      // [R7.4.1]
  if (adverts_.size() >= held_max) return "SrcAvail: more than may be outstanding";  // [R5.14]
  // [R17.4] User bytes would overtake those that are advertised or still to be sent.
  if (inline_payload.length > 0 && active()) return "SrcAvail: user bytes behind an advert";
  if (const char* fault = CheckRange(advert, inline_payload.length); fault != nullptr) return fault;
  Advert held;
  held.length = advert.length;
  held.inline_bytes = inline_payload.length;
  held.started = held.obtained = inline_payload.length;
  held.remote = {advert.remote_key, advert.virtual_address};
  adverts_.PushBack(held);
  if (KeepsInline(inline_payload.length)) {
    fresh_ = true;
    inline_payload_ = inline_payload;
  }
  return nullptr;
}

// --- reading ---

size_t AdvertReader::Current() const {
  size_t index = 0;
  while (index < adverts_.size() && adverts_[index].started == adverts_[index].length) ++index;
  return index;
}

uint32_t AdvertReader::LeftBehindOldest() const {
  const size_t current = Current();
  return current < adverts_.size() ? adverts_[current].length - adverts_[current].started : 0;
}

uint64_t AdvertReader::unread_bytes() const {
  if (left() == 0) return 0;
  uint64_t bytes = fresh_ ? inline_payload_.length : 0;
  for (const Advert& advert : adverts_) bytes += advert.length - advert.started;
  return bytes;
}

AdvertReader::Inline AdvertReader::UseInline() {
  fresh_ = false;
  return inline_payload_;
}

AdvertReader::Inline AdvertReader::RereadInline() {
  fresh_ = false;
  adverts_.front().started = adverts_.front().obtained = 0;
  return inline_payload_;
}

Read AdvertReader::StartRead(const OperationRange& target, uint64_t operation_number) {
  Advert& advert = adverts_[Current()];
  Read read;
  read.target = target;
  read.source = {advert.remote.key, advert.remote.address + advert.started};
  advert.started += target.length;
  reads_.PushBack({operation_number, target.length});
  bytes_in_flight_ += target.length;
  return read;
}

AdvertReader::FinishedRead AdvertReader::OnReadFinished() {
  const FinishedRead read = reads_.TakeFront();
  bytes_in_flight_ -= read.length;
  // Reads finish in order, and none spans two adverts.
  for (Advert& advert : adverts_) {
    if (advert.obtained == advert.started) continue;
    advert.obtained += read.length;
    break;
  }
  return read;
}

bool AdvertReader::OnSrcAvailCancel() {  // [R7.4.2]
  // After SendSm an advert is Processed: a cancel that crossed it finds nothing, and no answer.
  if (adverts_.empty() || cancelled_) return false;
  cancelled_ = true;
  return true;
}

// [R7.4.4]
bool AdvertReader::HoldsAcknowledgement() const {
  return cancelled_ && !adverts_.empty() && (!reads_.empty() || adverts_.front().Unreported() > 0);
}

void AdvertReader::DropAll() {
  adverts_.clear();
  fresh_ = refused_ = cancelled_ = false;
}

// --- answers ---

AdvertReader::Answer AdvertReader::NextAnswer() const {
  if (adverts_.empty() || fresh_) return Answer::kNone;
  if (remainder_ > 0 && !cancelled_) return Answer::kNone;
  const Advert& oldest = adverts_.front();
  if (oldest.obtained == oldest.length) return Answer::kRdmaRdCompl;
  if (!reads_.empty()) return Answer::kNone;                 // [R7.1.4]
  if (oldest.Unreported() > 0) return Answer::kRdmaRdCompl;  // [R7.2.5] before SendSm
  return refused_ || cancelled_ ? Answer::kSendSm : Answer::kNone;
}

AdvertReader::Completion AdvertReader::TakeRdmaRdCompl() {  // [R7.1.6]
  Advert& oldest = adverts_.front();
  Completion completion;
  completion.message.length = oldest.Unreported();
  oldest.reported += completion.message.length;
  if (oldest.obtained == oldest.length) {
    completion.finished_key = oldest.remote.key;
    adverts_.PopFront();
    cancelled_ = cancelled_ && !adverts_.empty();
  }
  return completion;
}

void AdvertReader::TakeSendSm() {
  if (cancelled_) {
    // [R7.4.5] One answer for all. What they have left is revoked: it was never part of the stream.
    DropAll();
    return;
  }
  const Advert refused = adverts_.TakeFront();  // [R7.2.1, R7.2.3]
  remainder_ = refused.length - refused.obtained;
  refused_ = false;
}

// --- the whole ---

bool AdvertReader::AdvertsHold() const {
  for (const Advert& advert : adverts_) {
    const bool ordered = advert.obtained <= advert.started && advert.started <= advert.length;
    if (!ordered || advert.inline_bytes >= advert.length) return false;
  }
  return true;
}

void AdvertReader::AddTo(Digest& digest) const {
  digest.Add(adverts_.size()).Add(fresh_).Add(refused_).Add(cancelled_).Add(remainder_);
  for (const Advert& advert : adverts_) {
    digest.Add(advert.length).Add(advert.inline_bytes).Add(advert.started).Add(advert.obtained);
    digest.Add(advert.reported).Add(advert.remote.key).Add(advert.remote.address);
  }
  if (fresh_) {
    digest.Add(static_cast<uint16_t>(inline_payload_.buffer)).Add(inline_payload_.offset);
    digest.Add(inline_payload_.length);
  }
  for (const FinishedRead& read : reads_) digest.Add(read.operation_number).Add(read.length);
}

}  // namespace esdp::sdp
