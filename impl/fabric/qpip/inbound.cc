#include "impl/fabric/qpip/inbound.h"

#include <algorithm>

namespace esdp::fabric::qpip {
namespace {

using soft::TagAccess;
using soft::TagError;
using soft::TagRight;

// RFC 5041 section 7.1 has no code for missing rights: RFC 5040's is taken.
TerminateReason TaggedReason(TagError error) {
  switch (error) {
    case TagError::kOtherStream:
      return TerminateReason::kTaggedTagOfAnotherStream;
    case TagError::kBounds:
      return TerminateReason::kTaggedBounds;
    case TagError::kWraps:
      return TerminateReason::kTaggedOffsetWraps;
    case TagError::kRights:
      return TerminateReason::kRdmapAccessRights;
    case TagError::kNone:
    case TagError::kInvalid:
      break;
  }
  return TerminateReason::kTaggedInvalidTag;
}

TerminateReason InvalidateReason(TagError error) {
  switch (error) {
    case TagError::kRights:
      return TerminateReason::kRdmapTagCannotBeInvalidated;
    case TagError::kOtherStream:
      return TerminateReason::kRdmapTagOfAnotherStream;
    default:
      return TerminateReason::kRdmapInvalidTag;
  }
}

}  // namespace

Inbound::Refusal Inbound::OnHeader(const DdpHeader& header, size_t payload_bytes) {
  header_ = header;
  payload_bytes_ = static_cast<uint32_t>(payload_bytes);
  placed_ = 0;
  if (header.version != kDdpVersion) {
    return header.tagged ? TerminateReason::kTaggedVersion : TerminateReason::kUntaggedVersion;
  }
  if (RdmapVersionOf(header.ulp_control) != kRdmapVersion) return TerminateReason::kRdmapVersion;
  const std::optional<RdmapOpcode> opcode = RdmapOpcodeOf(header.ulp_control);
  if (!opcode || IsTagged(*opcode) != header.tagged) {
    return TerminateReason::kRdmapUnexpectedOpcode;
  }
  if (*opcode == RdmapOpcode::kWrite) return BeginWrite();
  if (*opcode == RdmapOpcode::kReadResponse) return BeginReadResponse();
  return BeginUntagged(*opcode);
}

Inbound::Refusal Inbound::BeginUntagged(RdmapOpcode opcode) {
  const uint32_t queue = static_cast<uint32_t>(QueueOf(opcode));
  if (header_.queue != queue) return TerminateReason::kUntaggedInvalidQueue;
  if (header_.sequence != sequence_[queue]) return TerminateReason::kUntaggedSequence;
  return IsSend(opcode) ? BeginSend() : BeginControl(opcode);
}

Inbound::Refusal Inbound::BeginSend() {
  kind_ = Kind::kSend;
  if (next_receive_ == receives_.end()) return TerminateReason::kUntaggedNoBuffer;
  const ReceiveSlot& slot = receives_.At(next_receive_);
  if (header_.message_offset != slot.received) return TerminateReason::kUntaggedMessageOffset;
  if (slot.received == 0) receive_place_ = slot.place;
  if (payload_bytes_ > slot.length - slot.received) return TerminateReason::kUntaggedTooLong;
  return std::nullopt;
}

// Read Requests and Terminates are one segment each: both fit into the smallest frame.
Inbound::Refusal Inbound::BeginControl(RdmapOpcode opcode) {
  kind_ = Kind::kControl;
  if (header_.message_offset != 0) return TerminateReason::kUntaggedMessageOffset;
  if (opcode == RdmapOpcode::kReadRequest) {
    if (payload_bytes_ > kReadRequestBytes) return TerminateReason::kUntaggedTooLong;
    const bool whole = header_.last && payload_bytes_ == kReadRequestBytes;
    return whole ? Refusal() : TerminateReason::kRdmapUnspecified;
  }
  if (payload_bytes_ > control_.size()) return TerminateReason::kUntaggedTooLong;
  return std::nullopt;
}

Inbound::Refusal Inbound::BeginWrite() {
  kind_ = Kind::kWrite;
  // A tag under which nothing is placed is not looked at (RFC 5040 section 5.2).
  if (payload_bytes_ == 0) return std::nullopt;
  const TagAccess access =
      regions_.Resolve(queue_pair_, header_.tag, header_.offset, payload_bytes_, TagRight::kWrite);
  if (access.error != TagError::kNone) return TaggedReason(access.error);
  return std::nullopt;
}

Inbound::Refusal Inbound::BeginReadResponse() {
  kind_ = Kind::kReadResponse;
  if (reads_.empty()) return TerminateReason::kRdmapUnexpectedOpcode;
  const ReadInFlight& read = reads_.front();
  if (header_.tag != read.sink_tag) return TerminateReason::kTaggedInvalidTag;
  if (header_.offset != read.received) return TerminateReason::kTaggedBounds;
  const uint32_t left = read.length - read.received;
  if (payload_bytes_ > left) return TerminateReason::kTaggedBounds;
  if (header_.last && payload_bytes_ != left) return TerminateReason::kRdmapUnspecified;
  return std::nullopt;
}

Inbound::Refusal Inbound::Place(size_t bytes_max, IoVector& target) {
  switch (kind_) {
    case Kind::kControl:
      target.Add(Bytes(control_).subspan(placed_, bytes_max));
      return std::nullopt;
    case Kind::kWrite: {
      const TagAccess access = regions_.Resolve(queue_pair_, header_.tag, header_.offset + placed_,
                                                bytes_max, TagRight::kWrite);
      if (access.error != TagError::kNone) return TaggedReason(access.error);
      target.Add(Bytes(access.data, bytes_max));
      return std::nullopt;
    }
    case Kind::kSend:
    case Kind::kReadResponse:
      break;
  }
  const bool send = kind_ == Kind::kSend;
  const EntryList& entries = send ? receives_.entries() : sends_.entries();
  esdp::fabric::qpip::Place place = send ? receive_place_ : reads_.front().place;
  // One piece is left free for what follows the payload.
  while (bytes_max != 0 && target.room() > 1) {
    const Bytes piece = entries.Next(place, bytes_max);
    target.Add(piece);
    bytes_max -= piece.size();
  }
  return std::nullopt;
}

// Not in a window: there the peer writes what it names, and nothing else.
Bytes Inbound::Guess(size_t later) {
  if (kind_ == Kind::kSend) return GuessSend(later);
  return kind_ == Kind::kReadResponse ? GuessReadResponse(later) : Bytes();
}

// Another message of the same length, into a later receive.
Bytes Inbound::GuessSend(size_t later) const {
  const uint64_t index = next_receive_ + later;
  if (!header_.last || header_.message_offset != 0 || index >= receives_.end()) return {};
  const ReceiveSlot& slot = receives_.At(index);
  if (slot.length < payload_bytes_) return {};
  esdp::fabric::qpip::Place place = slot.place;
  const Bytes piece = receives_.entries().Next(place, payload_bytes_);
  return piece.size() == payload_bytes_ ? piece : Bytes();
}

// The same read goes on.
Bytes Inbound::GuessReadResponse(size_t later) const {
  const ReadInFlight& read = reads_.front();
  const uint64_t from = header_.offset + uint64_t{payload_bytes_} * later;
  if (from >= read.length) return {};
  const size_t bytes = std::min<size_t>(payload_bytes_, read.length - from);
  esdp::fabric::qpip::Place place = read.place;
  sends_.entries().Skip(place, from - read.received);
  const Bytes piece = sends_.entries().Next(place, bytes);
  return piece.size() == bytes ? piece : Bytes();
}

void Inbound::OnPlaced(size_t bytes) {
  if (kind_ == Kind::kWrite) {
    regions_.NoteWritten(header_.tag, header_.offset + placed_, bytes);
  }
  placed_ += static_cast<uint32_t>(bytes);
  if (kind_ == Kind::kSend) {
    receives_.entries().Skip(receive_place_, bytes);
    receives_.At(next_receive_).received += static_cast<uint32_t>(bytes);
  } else if (kind_ == Kind::kReadResponse) {
    sends_.entries().Skip(reads_.front().place, bytes);
    reads_.front().received += static_cast<uint32_t>(bytes);
  }
}

Inbound::Refusal Inbound::OnSegment() {
  const RdmapOpcode opcode = *RdmapOpcodeOf(header_.ulp_control);
  const bool empty_write = kind_ == Kind::kWrite && payload_bytes_ == 0;
  const bool empty_read =
      opcode == RdmapOpcode::kReadRequest && DecodeReadRequest(control_).length == 0;
  if (const Refusal refusal = events_.OnReadySign(empty_write || empty_read)) return refusal;
  const bool empty_piece = payload_bytes_ == 0 && !header_.last;
  if (const Refusal refusal = CountFrame(empty_write || empty_read || empty_piece)) return refusal;
  switch (kind_) {
    case Kind::kSend:
      return EndSend(opcode);
    case Kind::kControl:
      return EndControl(opcode);
    case Kind::kReadResponse:
      return EndReadResponse();
    case Kind::kWrite:
      break;
  }
  return std::nullopt;
}

Inbound::Refusal Inbound::OnEmptyFrame() {
  if (const Refusal refusal = events_.OnReadySign(true)) return refusal;
  return CountFrame(true);
}

// No code of RFC 5040 or RFC 5041 is for this: every one of the frames is right.
Inbound::Refusal Inbound::CountFrame(bool empty) {
  empty_frames_ = empty ? empty_frames_ + 1 : 0;
  return IsFlooded() ? Refusal(TerminateReason::kRdmapStreamCatastrophe) : Refusal();
}

Inbound::Refusal Inbound::EndSend(RdmapOpcode opcode) {
  if (!header_.last) return std::nullopt;
  ReceiveSlot& slot = receives_.At(next_receive_);
  if (Invalidates(opcode)) {
    slot.written = regions_.Written(queue_pair_, header_.ulp_word);
    const TagError error = regions_.Invalidate(queue_pair_, header_.ulp_word);
    if (error != TagError::kNone) return InvalidateReason(error);
    slot.has_invalidated = true;
    slot.invalidated_key = header_.ulp_word;
  }
  ++sequence_[static_cast<uint32_t>(DdpQueue::kSend)];
  events_.OnMessage(next_receive_++);
  return std::nullopt;
}

Inbound::Refusal Inbound::EndControl(RdmapOpcode opcode) {
  if (opcode == RdmapOpcode::kTerminate) {
    const std::optional<Terminate> terminate =
        DecodeTerminate(ConstBytes(control_).first(payload_bytes_));
    events_.OnTerminate(terminate.value_or(Terminate{}));
    return TerminateReason::kCatastrophic;  // stops the receiver; it is not sent
  }
  ++sequence_[static_cast<uint32_t>(DdpQueue::kReadRequest)];
  const ReadRequest request = DecodeReadRequest(control_);
  const Refusal refusal = events_.OnReadRequest(request);
  if (refusal) refused_request_ = request;
  return refusal;
}

Inbound::Refusal Inbound::EndReadResponse() {
  if (header_.last) events_.OnReadComplete();
  return std::nullopt;
}

}  // namespace esdp::fabric::qpip
