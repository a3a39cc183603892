#include "impl/fabric/qpip/receiver.h"

#include <algorithm>
#include <span>

namespace esdp::fabric::qpip {

Receiver::Outcome Receiver::Read(TcpStream& stream, SegmentHandler& handler,
                                 ReceiveScratch& scratch, size_t budget) {
  const uint64_t before = bytes_;
  while (bytes_ - before < budget) {
    const Outcome outcome = ReadOnce(stream, handler, scratch, /*one_frame=*/false);
    if (outcome != Outcome::kMore) return outcome;
  }
  return Outcome::kMore;
}

Receiver::Outcome Receiver::ReadOneFrame(TcpStream& stream, SegmentHandler& handler,
                                         ReceiveScratch& scratch) {
  const uint64_t before = frames_;
  while (frames_ == before) {
    const Outcome outcome = ReadOnce(stream, handler, scratch, /*one_frame=*/true);
    if (outcome != Outcome::kMore) return outcome;
  }
  return Outcome::kMore;
}

// One system call: the rest of a large payload into its target, then headers into the staging area,
// and perhaps what follows them.
Receiver::Outcome Receiver::ReadOnce(TcpStream& stream, SegmentHandler& handler,
                                     ReceiveScratch& scratch, bool one_frame) {
  IoVector& target = scratch.target;
  target.Clear();
  if (stage_ == Stage::kPayload && payload_bytes_ >= kDirectBytes) {
    if (const Refusal refusal = handler.Place(payload_left_, target)) {
      refusal_ = *refusal;
      return Outcome::kRefused;
    }
  }
  const size_t direct = target.bytes();
  scratch.ahead_count = scratch.staged = 0;
  if (direct == 0 || direct == payload_left_) Aim(handler, scratch, one_frame);
  const size_t asked = target.bytes();
  const IoResult result = stream.Read(target);
  if (result.outcome == IoOutcome::kWouldBlock) return Outcome::kDrained;
  if (result.outcome == IoOutcome::kEnd) return Outcome::kEnd;
  if (result.outcome == IoOutcome::kFailed) {
    error_ = result.error;
    return Outcome::kFailed;
  }

  bytes_ += result.bytes;
  saw_large_ = direct != 0;
  const size_t placed = std::min(result.bytes, direct);
  if (placed != 0) CountPlaced(target, placed, handler);
  const size_t rest = result.bytes - placed;
  if (const Refusal refusal = Sort(rest, handler, scratch)) {
    refusal_ = *refusal;
    return Outcome::kRefused;
  }
  Adapt(scratch.staged != 0 && rest == scratch.staged);
  return result.bytes < asked ? Outcome::kDrained : Outcome::kMore;
}

// Adds what is to be read behind the present payload.
void Receiver::Aim(SegmentHandler& handler, ReceiveScratch& scratch, bool one_frame) {
  IoVector& target = scratch.target;
  const bool guesses = !one_frame && window_ == 0 && target.bytes() != 0;
  const size_t guess_end = target.bytes() + kAheadBytes;
  size_t gap_bytes = one_frame ? UnitBytesLeft() : StagingBytes();
  for (size_t later = 1;; ++later) {
    const Bytes gap = Bytes(scratch.staging).subspan(scratch.staged, gap_bytes);
    if (!target.Add(gap)) return;
    scratch.staged += gap_bytes;
    ReceiveScratch::Ahead& ahead = scratch.ahead[scratch.ahead_count++];
    ahead = {gap, {}};
    if (!guesses || later > ReceiveScratch::kAheadMax || target.room() < 2) return;
    const Bytes guess = handler.Guess(later);
    if (guess.size() < kDirectBytes || target.bytes() + guess.size() > guess_end) return;
    target.Add(guess);
    ahead.payload = guess;
    gap_bytes =
        FpduTrailerBytes(header_->bytes() + guess.size()) + kFpduLengthBytes + header_->bytes();
  }
}

// Takes up what was read behind the present payload.
Receiver::Refusal Receiver::Sort(size_t bytes, SegmentHandler& handler, ReceiveScratch& scratch) {
  for (size_t i = 0; bytes != 0; ++i) {
    const ReceiveScratch::Ahead& ahead = scratch.ahead[i];
    const ConstBytes gap = ahead.gap.first(std::min(bytes, ahead.gap.size()));
    if (const Refusal refusal = Consume(gap, handler, scratch.target)) return refusal;
    bytes -= gap.size();
    if (bytes == 0) break;
    if (!IsRight(ahead.payload, handler, scratch.place)) {
      return SortMisplaced(i, bytes, handler, scratch);
    }
    const size_t placed = std::min(bytes, ahead.payload.size());
    CountPlaced(scratch.place, placed, handler);
    bytes -= placed;
  }
  return std::nullopt;
}

// Whether the segment that has just begun is the one that was guessed.
bool Receiver::IsRight(Bytes guess, SegmentHandler& handler, IoVector& place) const {
  if (stage_ != Stage::kPayload || payload_bytes_ != guess.size()) return false;
  if (payload_left_ != payload_bytes_) return false;
  place.Clear();
  if (handler.Place(payload_left_, place)) return false;
  return place.count() == 1 && place[0].data() == guess.data() && place[0].size() == guess.size();
}

// Another one. All that follows is fetched first: its true place may be where it lies now.
Receiver::Refusal Receiver::SortMisplaced(size_t at, size_t bytes, SegmentHandler& handler,
                                          ReceiveScratch& scratch) {
  scratch.misplaced.clear();
  const auto fetch = [&](ConstBytes piece) {
    piece = piece.first(std::min(bytes, piece.size()));
    scratch.misplaced.insert(scratch.misplaced.end(), piece.begin(), piece.end());
    bytes -= piece.size();
  };
  fetch(scratch.ahead[at].payload);
  for (size_t i = at + 1; i < scratch.ahead_count; ++i) {
    fetch(scratch.ahead[i].gap);
    fetch(scratch.ahead[i].payload);
  }
  return Consume(scratch.misplaced, handler, scratch.target);
}

size_t Receiver::StagingBytes() const {
  const size_t next_header = kFpduLengthBytes + (header_ ? header_->bytes() : kUntaggedHeaderBytes);
  if (stage_ == Stage::kHeader) {
    return std::max<size_t>(window_, std::max(HeaderBytesNeeded(), next_header) - filled_);
  }
  size_t left = FpduTrailerBytes(ulpdu_bytes_);
  if (stage_ == Stage::kTrailer) left -= filled_;
  if (stage_ == Stage::kPayload && payload_bytes_ < kDirectBytes) left += payload_left_;
  return std::max<size_t>(window_, left + next_header);
}

// What is missing of the header, payload or trailer that is being read.
size_t Receiver::UnitBytesLeft() const {
  if (stage_ == Stage::kHeader) return HeaderBytesNeeded() - filled_;
  if (stage_ == Stage::kTrailer) return FpduTrailerBytes(ulpdu_bytes_) - filled_;
  return payload_bytes_ < kDirectBytes ? payload_left_ : 0;
}

size_t Receiver::HeaderBytesNeeded() const {
  if (filled_ < kFpduLengthBytes) return kFpduLengthBytes;
  if (LoadBigEndian<uint16_t>(head_, 0) == 0) return kFpduLengthBytes;
  if (filled_ == kFpduLengthBytes) return kFpduLengthBytes + kTaggedHeaderBytes;
  return kFpduLengthBytes + DdpHeaderBytes(head_[kFpduLengthBytes]);
}

// How long the header is that `bytes` begins with, if all of it is there and it may be right.
size_t Receiver::WholeHeaderBytes(ConstBytes bytes) {
  if (bytes.size() < kFpduLengthBytes + kTaggedHeaderBytes) return 0;
  if (LoadBigEndian<uint16_t>(bytes, 0) < kTaggedHeaderBytes) return 0;
  const size_t whole = kFpduLengthBytes + DdpHeaderBytes(bytes[kFpduLengthBytes]);
  return bytes.size() < whole ? 0 : whole;
}

void Receiver::Adapt(bool staging_was_filled) {
  if (saw_large_) {
    window_ = 0;
  } else if (staging_was_filled) {
    window_ = std::clamp<uint32_t>(window_ * 4, kWindowFirst, ReceiveScratch::kStagingBytes);
  }
}

Receiver::Refusal Receiver::Consume(ConstBytes bytes, SegmentHandler& handler, IoVector& target) {
  while (!bytes.empty()) {
    Refusal refusal;
    switch (stage_) {
      case Stage::kHeader:
        refusal = ConsumeHeader(bytes, handler);
        break;
      case Stage::kPayload:
        refusal = ConsumePayload(bytes, handler, target);
        break;
      case Stage::kTrailer:
        refusal = ConsumeTrailer(bytes, handler);
        break;
    }
    if (refusal) return refusal;
  }
  return std::nullopt;
}

Receiver::Refusal Receiver::ConsumeHeader(ConstBytes& bytes, SegmentHandler& handler) {
  const size_t whole = filled_ == 0 ? WholeHeaderBytes(bytes) : 0;
  const size_t taken = whole != 0 ? whole : std::min(bytes.size(), HeaderBytesNeeded() - filled_);
  CopyBytes(Bytes(head_).subspan(filled_), bytes.first(taken));
  filled_ = static_cast<uint8_t>(filled_ + taken);
  bytes = bytes.subspan(taken);
  if (whole != 0) return BeginSegment(handler);
  if (filled_ < kFpduLengthBytes) return std::nullopt;
  // Judged before more is awaited: the peer may have nothing more to send.
  const uint16_t ulpdu_bytes = LoadBigEndian<uint16_t>(head_, 0);
  if (ulpdu_bytes != 0 && ulpdu_bytes < kTaggedHeaderBytes) {
    header_.reset();
    return TerminateReason::kMpaLength;
  }
  if (filled_ < HeaderBytesNeeded()) return std::nullopt;
  return BeginSegment(handler);
}

Receiver::Refusal Receiver::BeginSegment(SegmentHandler& handler) {
  const ConstBytes head = ConstBytes(head_).first(filled_);
  filled_ = 0;
  ulpdu_bytes_ = LoadBigEndian<uint16_t>(head, 0);
  crc_ = Crc32c();
  if (checksum_) crc_.Add(head);
  if (ulpdu_bytes_ == 0) {
    header_.reset();
    stage_ = Stage::kTrailer;
    return std::nullopt;
  }
  DdpHeader header;
  if (!DecodeDdp(head.subspan(kFpduLengthBytes), header)) return TerminateReason::kMpaLength;
  header_ = header;
  if (ulpdu_bytes_ < header.bytes()) return TerminateReason::kMpaLength;
  payload_bytes_ = payload_left_ = static_cast<uint32_t>(ulpdu_bytes_ - header.bytes());
  saw_large_ = saw_large_ || payload_bytes_ >= kDirectBytes;
  stage_ = payload_bytes_ == 0 ? Stage::kTrailer : Stage::kPayload;
  return handler.OnHeader(header, payload_bytes_);
}

// Payload that was read along with a header.
Receiver::Refusal Receiver::ConsumePayload(ConstBytes& bytes, SegmentHandler& handler,
                                           IoVector& target) {
  target.Clear();
  const size_t here = std::min<size_t>(bytes.size(), payload_left_);
  if (const Refusal refusal = handler.Place(here, target)) return refusal;
  const size_t placed = target.bytes();
  for (size_t i = 0; i < target.count(); ++i) {
    const Bytes piece = target[i];
    CopyBytes(piece, bytes.first(piece.size()));
    bytes = bytes.subspan(piece.size());
  }
  CountPlaced(target, placed, handler);
  return std::nullopt;
}

void Receiver::CountPlaced(const IoVector& target, size_t bytes, SegmentHandler& handler) {
  size_t left = checksum_ ? bytes : 0;
  for (size_t i = 0; left != 0; ++i) {
    const ConstBytes piece = target[i];
    const size_t part = std::min(left, piece.size());
    crc_.Add(piece.first(part));
    left -= part;
  }
  handler.OnPlaced(bytes);
  payload_left_ -= static_cast<uint32_t>(bytes);
  if (payload_left_ == 0) stage_ = Stage::kTrailer;
}

Receiver::Refusal Receiver::ConsumeTrailer(ConstBytes& bytes, SegmentHandler& handler) {
  const size_t needed = FpduTrailerBytes(ulpdu_bytes_);
  const size_t taken = std::min(bytes.size(), needed - filled_);
  CopyBytes(Bytes(trailer_).subspan(filled_), bytes.first(taken));
  filled_ = static_cast<uint8_t>(filled_ + taken);
  bytes = bytes.subspan(taken);
  return filled_ < needed ? std::nullopt : EndFrame(handler);
}

Receiver::Refusal Receiver::EndFrame(SegmentHandler& handler) {
  filled_ = 0;
  stage_ = Stage::kHeader;
  if (checksum_) {
    const size_t pad = FpduPadBytes(ulpdu_bytes_);
    crc_.Add(ConstBytes(trailer_).first(pad));
    if (LoadFpduCrc(ConstBytes(trailer_).subspan(pad)) != crc_.value()) {
      return TerminateReason::kMpaCrc;
    }
  }
  ++frames_;
  return ulpdu_bytes_ == 0 ? handler.OnEmptyFrame() : handler.OnSegment();
}

}  // namespace esdp::fabric::qpip
