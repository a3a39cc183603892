#include "impl/fabric/qpip/transmitter.h"

#include <algorithm>

#include "impl/fabric/qpip/crc32c.h"

namespace esdp::fabric::qpip {
namespace {

using soft::TagAccess;
using soft::TagError;
using soft::TagRight;

// How much one system call is offered: each ends with a short packet, so much is better. With
// checksums little, since what the socket does not take is summed again.
constexpr size_t kOfferedBytes = size_t{1} << 20;
constexpr size_t kOfferedBytesSummed = size_t{256} << 10;

// A frame's header, the entries of its payload, its trailer.
constexpr size_t kPiecesPerFrame = 20;

// Collects the pieces of one frame and, where asked for, their sum.
class FrameWriter {
 public:
  FrameWriter(TransmitScratch& scratch, bool sums) : scratch_(scratch), sums_(sums) {}

  // The next `bytes` of the scratch area, to be filled and then added.
  Bytes Head(size_t bytes) const {
    return Bytes(scratch_.heads).subspan(scratch_.heads_used, bytes);
  }
  void AddHead(size_t bytes) {
    Add(Head(bytes));
    scratch_.heads_used += bytes;
  }
  void Add(ConstBytes piece) {
    scratch_.source.Add(piece);
    if (sums_) crc_.Add(piece);
  }
  void DoNotSum() { sums_ = false; }
  uint32_t crc() const { return crc_.value(); }

 private:
  TransmitScratch& scratch_;
  bool sums_;
  Crc32c crc_;
};

DdpHeader HeaderOf(const OutMessage& message, bool last) {
  DdpHeader header = message.header;
  header.last = last;
  if (header.tagged) {
    header.offset += message.framed;
  } else {
    header.message_offset = message.framed;
  }
  return header;
}

// Only what the peer reads stays as it is until the peer has it: who sends or writes may use the
// memory again as soon as the socket has taken it.
bool Lends(const OutMessage& message, const TransmitScratch& scratch) {
  return scratch.lender.has_value() && message.source == OutMessage::Source::kPeerRead &&
         message.length >= Lender::kPieceMin;
}

}  // namespace

void TransmitScratch::Clear() {
  source.Clear();
  frame_count = 0;
  heads_used = 0;
}

ConstBytes TransmitScratch::Linear() {
  size_t used = 0;
  for (size_t i = 0; i < source.count(); ++i) {
    CopyBytes(Bytes(linear).subspan(used), source[i]);
    used += source[i].size();
  }
  return ConstBytes(linear).first(used);
}

TerminateReason Transmitter::ReadReason(TagError error) {
  switch (error) {
    case TagError::kOtherStream:
      return TerminateReason::kRdmapTagOfAnotherStream;
    case TagError::kBounds:
      return TerminateReason::kRdmapBounds;
    case TagError::kWraps:
      return TerminateReason::kRdmapOffsetWraps;
    case TagError::kRights:
      return TerminateReason::kRdmapAccessRights;
    case TagError::kNone:
    case TagError::kInvalid:
      break;
  }
  return TerminateReason::kRdmapInvalidTag;
}

Transmitter::Outcome Transmitter::Write(TcpStream& stream, TransmitScratch& scratch) {
  scratch.Clear();
  if (!Build(scratch)) return Outcome::kRefused;
  if (partly_sent_ != 0) scratch.source.Skip(partly_sent_);
  const size_t offered = scratch.source.bytes();
  const bool few = offered <= TransmitScratch::kLinearBytes && scratch.source.count() > 1;
  const IoResult result = Lends(messages_.front(), scratch)
                              ? scratch.lender->Write(stream, scratch.source)
                          : few ? stream.Write(scratch.Linear())
                                : stream.Write(scratch.source);
  if (result.outcome == IoOutcome::kWouldBlock) return Outcome::kFull;
  if (result.outcome != IoOutcome::kMoved) {
    error_ = result.error;
    return Outcome::kFailed;
  }
  Count(result.bytes, scratch);
  return result.bytes < offered ? Outcome::kFull : Outcome::kWrote;
}

// False if the first message's source is gone. That of a later one is left for its turn, as is one
// that does not go the first one's way.
bool Transmitter::Build(TransmitScratch& scratch) {
  for (size_t i = 0; i < messages_.size(); ++i) {
    if (Lends(messages_[i], scratch) != Lends(messages_.front(), scratch)) return true;
    if (BuildMessage(messages_[i], scratch)) continue;
    return i != 0 || scratch.frame_count != 0;
  }
  return true;
}

// False when not all of the message was taken up.
bool Transmitter::BuildMessage(OutMessage message, TransmitScratch& scratch) {
  const size_t bytes_max = checksum_ ? kOfferedBytesSummed : kOfferedBytes;
  const auto has_room = [&scratch, bytes_max] {
    return scratch.frame_count < TransmitScratch::kFramesMax &&
           scratch.source.room() >= kPiecesPerFrame && scratch.source.bytes() < bytes_max;
  };
  if (!has_room()) return false;
  const Base base = BaseOf(message);
  if (base.error != TagError::kNone) {
    refusal_ = ReadReason(base.error);
    return false;
  }
  const std::byte* data = base.data;
  while (true) {
    const uint32_t before = message.framed;
    BuildFrame(message, data, scratch);
    if (message.framed == message.length) return true;
    if (data != nullptr) data += message.framed - before;
    if (!has_room()) return false;
  }
}

Transmitter::Base Transmitter::BaseOf(const OutMessage& message) const {
  if (message.source != OutMessage::Source::kPeerRead || message.length == 0) return {};
  const TagAccess access = regions_.Resolve(queue_pair_, message.request.source_tag,
                                            message.request.source_offset + message.framed,
                                            message.length - message.framed, TagRight::kRead);
  return {access.error, access.data};
}

void Transmitter::BuildFrame(OutMessage& message, const std::byte* data,
                             TransmitScratch& scratch) const {
  const bool begun = scratch.frame_count == 0 && partly_sent_ != 0;
  FrameWriter writer(scratch, checksum_ && !begun);
  const uint32_t most = Lends(message, scratch) ? kLentSegmentBytes : kSegmentBytes;
  const uint32_t payload = std::min(message.length - message.framed, most);
  const bool last = message.framed + payload == message.length;
  const DdpHeader header = HeaderOf(message, last);
  const size_t ulpdu_bytes = header.bytes() + payload;
  const size_t wire_start = scratch.source.bytes();

  const Bytes head = writer.Head(kFpduLengthBytes + header.bytes());
  StoreBigEndian(head, 0, static_cast<uint16_t>(ulpdu_bytes));
  EncodeDdp(header, head.subspan(kFpduLengthBytes));
  writer.AddHead(head.size());

  if (message.source == OutMessage::Source::kReadRequest) {
    EncodeReadRequest(message.request, writer.Head(kReadRequestBytes));
    writer.AddHead(kReadRequestBytes);
  } else if (data != nullptr) {
    writer.Add(ConstBytes(data, payload));
  } else {
    for (uint32_t left = payload; left != 0;) {
      const Bytes piece = entries_.Next(message.place, left);
      writer.Add(piece);
      left -= static_cast<uint32_t>(piece.size());
    }
  }

  const size_t pad = FpduPadBytes(ulpdu_bytes);
  std::fill_n(writer.Head(pad).begin(), pad, std::byte{0});
  writer.AddHead(pad);
  // The sum of a frame that has begun to leave stays what it was when it began.
  const uint32_t crc = !checksum_ ? 0 : begun ? partly_sent_crc_ : writer.crc();
  writer.DoNotSum();
  StoreFpduCrc(writer.Head(kFpduCrcBytes), crc);
  writer.AddHead(kFpduCrcBytes);

  message.framed += payload;
  scratch.frames[scratch.frame_count++] = {
      .bytes = static_cast<uint32_t>(scratch.source.bytes() - wire_start),
      .payload = payload,
      .crc = crc,
      .last = last};
}

void Transmitter::Count(size_t bytes, const TransmitScratch& scratch) {
  bytes += partly_sent_;
  size_t index = 0;
  for (; index < scratch.frame_count && bytes >= scratch.frames[index].bytes; ++index) {
    const TransmitScratch::Frame& frame = scratch.frames[index];
    bytes -= frame.bytes;
    OutMessage& message = messages_[sent_];
    if (message.source == OutMessage::Source::kEntries) {
      entries_.Skip(message.place, frame.payload);
    }
    message.framed += frame.payload;
    if (frame.last) ++sent_;
  }
  partly_sent_ = static_cast<uint32_t>(bytes);
  if (bytes != 0) partly_sent_crc_ = scratch.frames[index].crc;
}

std::vector<std::byte> TerminateFrame(const Terminate& terminate, bool checksum) {
  std::array<std::byte, kTerminateBytesMax> payload;
  const size_t payload_bytes = EncodeTerminate(terminate, payload);
  DdpHeader header;
  header.ulp_control = RdmapControl(RdmapOpcode::kTerminate);
  header.queue = static_cast<uint32_t>(DdpQueue::kTerminate);
  header.sequence = 1;
  const size_t ulpdu_bytes = header.bytes() + payload_bytes;
  std::vector<std::byte> frame(FpduBytes(ulpdu_bytes));
  StoreBigEndian(Bytes(frame), 0, static_cast<uint16_t>(ulpdu_bytes));
  EncodeDdp(header, Bytes(frame).subspan(kFpduLengthBytes));
  CopyBytes(Bytes(frame).subspan(kFpduLengthBytes + header.bytes()),
            ConstBytes(payload).first(payload_bytes));
  const size_t summed = FpduBytes(ulpdu_bytes) - kFpduCrcBytes;
  Crc32c crc;
  crc.Add(ConstBytes(frame).first(summed));
  if (checksum) StoreFpduCrc(Bytes(frame).subspan(summed), crc.value());
  return frame;
}

std::vector<std::byte> Transmitter::Farewell(const Terminate& terminate,
                                             TransmitScratch& scratch) const {
  scratch.Clear();
  std::vector<std::byte> zeros;
  if (partly_sent_ != 0) {
    OutMessage message = messages_.front();
    Base base = BaseOf(message);
    if (base.error != TagError::kNone) {
      zeros.resize(kSegmentBytes);
      base.data = zeros.data();
    }
    BuildFrame(message, base.data, scratch);
    scratch.source.Skip(partly_sent_);
  }

  const std::vector<std::byte> last = TerminateFrame(terminate, checksum_);
  scratch.source.Add(last);

  std::vector<std::byte> farewell;
  farewell.reserve(scratch.source.bytes());
  for (size_t i = 0; i < scratch.source.count(); ++i) {
    const ConstBytes piece = scratch.source[i];
    farewell.insert(farewell.end(), piece.begin(), piece.end());
  }
  return farewell;
}

}  // namespace esdp::fabric::qpip
