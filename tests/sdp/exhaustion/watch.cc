#include "tests/sdp/exhaustion/watch.h"

#include <utility>
#include <variant>

#include "impl/sdp/common/limits.h"

namespace esdp::sdp::exhaustion {
namespace {

template <typename T>
bool Is(const wire::Message& message) {
  return std::holds_alternative<T>(message.body);
}

}  // namespace

void Watch::Start(uint16_t own_buffers, uint16_t peer_buffers) {
  const Watch before = std::exchange(*this, Watch{});
  marks_ = before.marks_;
  urgent_out_ = before.urgent_out_;
  urgent_in_ = before.urgent_in_;
  told_buffers_ = own_buffers;
  peer_buffers_ = peer_buffers;
}

Marks Watch::TakeMarks() { return std::exchange(marks_, 0); }

// --- what leaves ---

const char* Watch::OnSend(const wire::Message& message, uint32_t payload, size_t posted,
                          size_t reads) {
  const char* wrong = CheckCredits(message, payload, posted);
  if (wrong == nullptr) wrong = CheckUrgent(message, payload);
  if (wrong == nullptr) wrong = CheckHold(message, reads);
  if (wrong != nullptr) return wrong;
  last_sent_ = message.base.sequence;
  told_buffers_ = message.base.buffers;
  told_acknowledged_ = message.base.acknowledged;
  NoteSent(message, payload);
  return nullptr;
}

// [4.3]
const char* Watch::CheckCredits(const wire::Message& message, uint32_t payload,
                                size_t posted) const {
  const wire::BaseHeader& base = message.base;
  if (base.sequence != last_sent_ + 1) return "MSeq is not the next";
  if (base.buffers > posted) return "Bufs promises receives that are not posted";
  if (!AtOrAfter(last_received_, base.acknowledged)) return "MSeqAck of what has not arrived";
  const auto credits =
      static_cast<int32_t>(peer_buffers_) - static_cast<int32_t>(last_sent_ - peer_acknowledged_);
  if (payload > 0) return credits >= kCreditsForPayload ? nullptr : "payload without 3 credits";
  if (credits >= kCreditsForControl) return nullptr;
  if (credits < kCreditsForUpdate) return "a message without a credit";
  const auto knows = static_cast<int32_t>(told_buffers_) -
                     static_cast<int32_t>(last_received_ - told_acknowledged_);
  const auto would_know =
      static_cast<int32_t>(base.buffers) - static_cast<int32_t>(last_received_ - base.acknowledged);
  return would_know > knows ? nullptr : "the last credit goes to a message that gives none";
}

// [10]
const char* Watch::CheckUrgent(const wire::Message& message, uint32_t payload) {
  const bool announces = (message.base.flags & wire::kFlagOobPending) != 0;
  const bool brings = (message.base.flags & wire::kFlagOobPresent) != 0;
  if (announces && urgent_out_) return "an urgent byte is announced while another is";
  if (brings && !announces && !urgent_out_) return "an urgent byte that was not announced";
  if (brings && (!Is<wire::Data>(message) || payload == 0)) return "OOB_PRES without its byte";
  if (announces && !brings) {
    Saw(Mark::kUrgentOvertook);
    if (!shown_.empty()) Saw(Mark::kUrgentOvertookAdvert);
  }
  urgent_out_ = (urgent_out_ || announces) && !brings;
  return nullptr;
}

// [7.4, step 3]
const char* Watch::CheckHold(const wire::Message& message, size_t reads) {
  const bool owed = owes_report_ && !Is<wire::RdmaRdCompl>(message);
  if (!owed) owes_report_ = false;
  if (!holding_) return nullptr;
  const bool reaches = AtOrAfter(message.base.acknowledged, *holding_);
  if (!reaches) Saw(Mark::kAcknowledgementHeld);
  if (reaches && reads > 0) return "MSeqAck reaches SrcAvailCancel while a READ runs";
  if (reaches && owed) return "MSeqAck reaches SrcAvailCancel before the report";
  if (reads == 0 && !owes_report_) holding_.reset();
  return nullptr;
}

void Watch::NoteSent(const wire::Message& message, uint32_t payload) {
  if (const auto* advert = std::get_if<wire::SrcAvail>(&message.body)) {
    shown_.PushBack({advert->length - payload, false});
  } else if (Is<wire::SrcAvailCancel>(message)) {
    cancel_ = message.base.sequence;
    read_since_cancel_ = false;
  } else if (Is<wire::SendSm>(message)) {
    if (!shown_.empty()) Saw(Mark::kBlockedBothWays);
  } else if (const auto* sink = std::get_if<wire::SinkAvail>(&message.body)) {
    sinks_.PushBack(sink->length);
  } else if (Is<wire::SinkAvailCancel>(message)) {
    sink_cancel_ = message.base.sequence;
    filled_since_cancel_ = false;
  } else if (const auto* change = std::get_if<wire::ModeChange>(&message.body)) {
    NoteModeChangeSent(*change);
  } else if (Is<wire::DisConn>(message)) {
    disconn_sent_ = true;
  } else if (Is<wire::ChRcvBuf>(message)) {
    resize_sent_ = true;
  } else if (Is<wire::SuspComm>(message)) {
    NoteSuspCommSent();
  }
}

void Watch::NoteModeChangeSent(const wire::ModeChange& change) {
  if (change.changes_send_half) Saw(Mark::kRaisedFromBuffered);
  if (change.mode == wire::Mode::kBuffered) Saw(Mark::kBuffered);
  const bool lowers = !change.changes_send_half && change.mode == wire::Mode::kCombined;
  if (!lowers || shown_.empty()) return;
  Saw(Mark::kLeftPipelinedShown);
  if (cancel_) Saw(Mark::kLeftPipelinedInCancel);
}

void Watch::NoteSuspCommSent() {
  suspcomm_sent_ = true;
  if (!shown_.empty()) Saw(Mark::kSuspendedShown);
  if (!shown_.empty() && shown_.front().part_read) Saw(Mark::kSuspendedPartRead);
  if (!shown_.empty() && cancel_) Saw(Mark::kSuspendedInCancel);
  if (!sinks_.empty()) Saw(Mark::kSuspendedSink);
}

// --- what arrives ---

void Watch::OnDelivered(const wire::Message& message, uint32_t payload, size_t reads) {
  last_received_ = message.base.sequence;
  peer_buffers_ = message.base.buffers;
  peer_acknowledged_ = message.base.acknowledged;
  NoteArrivalOfRest(message);
  NoteArrivalForSink(message, payload);
  NoteArrivalForSource(message);
  const bool running = reads > 0 || owes_report_;
  if (Is<wire::SrcAvailCancel>(message) && running) holding_ = message.base.sequence;
  if (Is<wire::DisConn>(message) && disconn_sent_ &&
      !AtOrAfter(message.base.acknowledged, last_sent_)) {
    Saw(Mark::kDisConnCrossed);
  }
}

void Watch::NoteArrivalOfRest(const wire::Message& message) {
  const bool announces = (message.base.flags & wire::kFlagOobPending) != 0;
  const bool brings = (message.base.flags & wire::kFlagOobPresent) != 0;
  urgent_in_ = (urgent_in_ || announces) && !brings;
  if (Is<wire::ChRcvBuf>(message)) {
    if (resize_sent_) Saw(Mark::kResizesCrossed);
    if (!sinks_.empty()) Saw(Mark::kResizeMetSink);
  }
  if (Is<wire::ChRcvBufAck>(message)) resize_sent_ = false;
  if (!Is<wire::SuspComm>(message)) return;
  if (suspcomm_sent_) Saw(Mark::kSuspendsCrossed);
  if (!sinks_.empty()) Saw(Mark::kSuspendMetSink);
}

void Watch::NoteArrivalForSource(const wire::Message& message) {
  if (Is<wire::SrcAvail>(message) && !shown_.empty()) Saw(Mark::kAdvertsCrossed);
  if (Is<wire::RdmaRdCompl>(message)) NoteRdmaRdCompl(message);
  if (Is<wire::SendSm>(message)) NoteSendSm(message);
}

// --- as sink of WRITEs ---

void Watch::NoteArrivalForSink(const wire::Message& message, uint32_t payload) {
  if (sinks_.empty()) return;
  if (Is<wire::SrcAvail>(message)) Saw(Mark::kSrcAvailIgnored);
  if (payload > 0) {
    Saw(sink_cancel_ ? Mark::kPayloadCrossedSinkCancel : Mark::kPayloadTookAdvert);
    TakeOldestSink();
  } else if (const auto* completion = std::get_if<wire::RdmaWrCompl>(&message.body)) {
    NoteRdmaWrCompl(completion->length);
  } else if (Is<wire::SinkCancelAck>(message) && sink_cancel_) {
    Saw(filled_since_cancel_ ? Mark::kSinkCancelOfRest : Mark::kSinkCancelAnswered);
    sinks_.clear();
    sink_cancel_.reset();
  } else if (const auto* change = std::get_if<wire::ModeChange>(&message.body)) {
    if (change->changes_send_half || change->mode != wire::Mode::kCombined) return;
    Saw(Mark::kLeftPipelined);
    if (sink_cancel_) Saw(Mark::kLeftPipelinedInSinkCancel);
    sinks_.clear();
    sink_cancel_.reset();
  } else if (Is<wire::DisConn>(message)) {
    sinks_.clear();
    sink_cancel_.reset();
  }
}

void Watch::NoteRdmaWrCompl(uint32_t length) {
  Saw(length < sinks_.front() ? Mark::kWrittenShort : Mark::kWritten);
  filled_since_cancel_ = sink_cancel_.has_value();
  const bool cancelled = sink_cancel_.has_value();
  TakeOldestSink();
  if (cancelled && sinks_.empty()) Saw(Mark::kWriteCrossedSinkCancel);
}

void Watch::TakeOldestSink() {
  sinks_.PopFront();
  if (sinks_.empty()) sink_cancel_.reset();
}

// --- as source of READs ---

bool Watch::CrossedCancel(const wire::Message& message) const {
  return cancel_ && !AtOrAfter(message.base.acknowledged, *cancel_);
}

void Watch::NoteRdmaRdCompl(const wire::Message& message) {
  if (shown_.empty()) return;
  const uint32_t length = std::get<wire::RdmaRdCompl>(message.body).length;
  Shown& oldest = shown_.front();
  oldest.left -= length;
  if (cancel_) read_since_cancel_ = true;
  if (oldest.left > 0) {
    oldest.part_read = true;
    return;
  }
  Saw(oldest.part_read ? Mark::kReadInParts : Mark::kReadWhole);
  shown_.PopFront();
  if (!shown_.empty() || !cancel_) return;
  Saw(Mark::kFinalReadCrossedCancel);
  cancel_.reset();
}

void Watch::NoteSendSm(const wire::Message& message) {
  if (shown_.empty()) return;
  const Shown oldest = shown_.front();
  if (cancel_ && !CrossedCancel(message)) {
    const bool first_read = read_since_cancel_ && !oldest.part_read;
    Saw(oldest.part_read ? Mark::kPartReadThenCancelled
        : first_read     ? Mark::kFirstReadRestRevoked
                         : Mark::kUnreadCancelled);
    shown_.clear();
    cancel_.reset();
    return;
  }
  if (CrossedCancel(message)) {
    Saw(Mark::kSendSmCrossedCancel);
  } else {
    Saw(oldest.part_read ? Mark::kSendSmAfterPart : Mark::kSendSmPlain);
  }
  shown_.PopFront();
  if (shown_.empty()) cancel_.reset();
}

void Watch::AddTo(Digest& digest) const {
  digest.Add(last_sent_).Add(last_received_).Add(told_buffers_).Add(peer_buffers_);
  digest.Add(told_acknowledged_).Add(peer_acknowledged_).Add(disconn_sent_);
  digest.Add(shown_.size()).Add(cancel_ ? 1u + uint64_t{*cancel_} : 0u).Add(read_since_cancel_);
  digest.Add(sinks_.size()).Add(sink_cancel_ ? 1u + uint64_t{*sink_cancel_} : 0u);
  digest.Add(filled_since_cancel_);
  for (const uint32_t length : sinks_) digest.Add(length);
  for (const Shown& shown : shown_) digest.Add(shown.left).Add(shown.part_read);
  digest.Add(urgent_out_).Add(urgent_in_).Add(resize_sent_).Add(suspcomm_sent_);
  digest.Add(holding_ ? 1u + uint64_t{*holding_} : 0u).Add(owes_report_).Add(marks_);
}

}  // namespace esdp::sdp::exhaustion
