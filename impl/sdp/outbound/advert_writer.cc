#include "impl/sdp/outbound/advert_writer.h"

#include "impl/sdp/common/limits.h"

namespace esdp::sdp {

namespace {

const char* Check(const wire::SinkAvail& advert, uint32_t length_min) {
  if (advert.length == 0) return "SinkAvail.Len: is 0";
  if (advert.length > wire::kAdvertBytesMax) return "SinkAvail.Len: above 2^31";
  // A payload message of ours that crosses it must fit, so [G] refuses it and so do we.
  if (advert.length < length_min) return "SinkAvail.Len: below one message of payload";
  if (advert.virtual_address + (advert.length - 1) < advert.virtual_address) {
    return "SinkAvail.VA: the range wraps";
  }
  return nullptr;
}

}  // namespace

AdvertWriter::Arrival AdvertWriter::OnSinkAvail(const wire::SinkAvail& advert, Legality legality,
                                                uint32_t length_min, size_t adverts_max) {
  // [R17.5]
  if (legality == Legality::kIllegal) return {"SinkAvail: the half is not Pipelined"};
  if (const char* violation = Check(advert, length_min); violation != nullptr) {
    return {violation};
  }
  if (legality == Legality::kIgnored) {
    // [R5.20, R5.23] Not against the running count, which payload sent in Combined has raised.
    if (advert.non_discards == frozen_) return {nullptr, true};
    --frozen_;
    --potential_non_discards_;
    return {};
  }
  if (advert.non_discards != potential_non_discards_) {  // [R8.2.4]
    --potential_non_discards_;
    return {nullptr, false, true};
  }
  // [R5.14]
  if (live_.size() >= adverts_max) return {"SinkAvail: more adverts than MaxAdverts"};
  Advert live;
  live.length = advert.length;
  live.remote = {advert.remote_key, advert.virtual_address};
  live_.PushBack(live);
  return {nullptr, true};
}

uint32_t AdvertWriter::room() const {
  if (live_.empty() || cancelled_) return 0;
  return live_.front().length - live_.front().written;
}

Write AdvertWriter::StartWrite(const OperationRange& source) {
  Advert& oldest = live_.front();
  Write write;
  write.source = source;
  write.target = {oldest.remote.key, oldest.remote.address + oldest.written};
  oldest.written += source.length;
  ++writes_in_flight_;
  return write;
}

AdvertWriter::Completion AdvertWriter::TakeRdmaWrCompl() {  // [R8.1.3]
  const Advert oldest = live_.TakeFront();
  Completion completion;
  completion.message.length = oldest.written;
  completion.finished_key = oldest.remote.key;
  cancelled_ = false;
  return completion;
}

void AdvertWriter::OnSinkAvailCancel() {  // [R8.4.2, R8.4.3, R8.4.4]
  // [R8.4.6] A short RdmaWrCompl completes its advert: only the others count as dropped.
  const size_t completed = in_process() ? 1 : 0;
  if (live_.size() > completed) ack_owed_ = true;
  while (live_.size() > completed) live_.EraseAt(completed);
  cancelled_ = !live_.empty();
}

void AdvertWriter::LeavePipelined() {  // [R5.18, R5.23]
  DropAll();
  frozen_ = potential_non_discards_;
}

void AdvertWriter::DropAll() {
  live_.clear();
  cancelled_ = ack_owed_ = false;
}

bool AdvertWriter::LiveHold() const {
  for (size_t i = 1; i < live_.size(); ++i) {
    if (live_[i].written > 0) return false;
  }
  return live_.front().written <= live_.front().length;
}

void AdvertWriter::AddTo(Digest& digest) const {
  digest.Add(live_.size()).Add(writes_in_flight_).Add(potential_non_discards_).Add(frozen_);
  digest.Add(cancelled_).Add(ack_owed_).Add(unheard_.has_value()).Add(unheard_.value_or(0));
  for (const Advert& advert : live_) {
    digest.Add(advert.length).Add(advert.written).Add(advert.remote.key);
    digest.Add(advert.remote.address);
  }
}

}  // namespace esdp::sdp
