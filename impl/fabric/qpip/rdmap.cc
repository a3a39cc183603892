#include "impl/fabric/qpip/rdmap.h"

namespace esdp::fabric::qpip {
namespace {

constexpr size_t kSinkTagAt = 0;
constexpr size_t kSinkOffsetAt = 4;
constexpr size_t kLengthAt = 12;
constexpr size_t kSourceTagAt = 16;
constexpr size_t kSourceOffsetAt = 20;

// The third byte of the Terminate control word tells what follows.
constexpr size_t kHeaderControlAt = 2;
constexpr uint8_t kHasLength = 0x80;
constexpr uint8_t kHasSegment = 0x40;
constexpr uint8_t kHasReadRequest = 0x20;

const char* TextOf(TerminateReason reason) {
  switch (reason) {
    case TerminateReason::kCatastrophic:
      return "local catastrophic error";
    case TerminateReason::kRdmapInvalidTag:
    case TerminateReason::kTaggedInvalidTag:
      return "invalid steering tag";
    case TerminateReason::kRdmapBounds:
    case TerminateReason::kTaggedBounds:
      return "outside the range of the steering tag";
    case TerminateReason::kRdmapAccessRights:
      return "the steering tag does not give that right";
    case TerminateReason::kRdmapTagOfAnotherStream:
    case TerminateReason::kTaggedTagOfAnotherStream:
      return "the steering tag belongs to another stream";
    case TerminateReason::kRdmapOffsetWraps:
    case TerminateReason::kTaggedOffsetWraps:
      return "the tagged offset wraps";
    case TerminateReason::kRdmapTagCannotBeInvalidated:
      return "the steering tag cannot be invalidated";
    case TerminateReason::kRdmapVersion:
      return "unknown RDMAP version";
    case TerminateReason::kRdmapUnexpectedOpcode:
      return "unexpected RDMAP opcode";
    case TerminateReason::kRdmapStreamCatastrophe:
      return "catastrophic error of the stream";
    case TerminateReason::kTaggedVersion:
    case TerminateReason::kUntaggedVersion:
      return "unknown DDP version";
    case TerminateReason::kUntaggedInvalidQueue:
      return "invalid queue number";
    case TerminateReason::kUntaggedNoBuffer:
      return "no buffer posted for the message";
    case TerminateReason::kUntaggedSequence:
      return "message sequence number out of range";
    case TerminateReason::kUntaggedMessageOffset:
      return "invalid message offset";
    case TerminateReason::kUntaggedTooLong:
      return "message longer than its buffer";
    case TerminateReason::kMpaClosed:
      return "TCP connection closed";
    case TerminateReason::kMpaCrc:
      return "MPA CRC error";
    case TerminateReason::kMpaLength:
      return "MPA frame length does not fit its content";
    case TerminateReason::kMpaStartup:
      return "invalid MPA request or reply";
    case TerminateReason::kMpaInsufficientReads:
      return "not enough RDMA read resources";
    case TerminateReason::kMpaNoMatchingReadiness:
      return "no ready-to-receive frame that both sides know";
    case TerminateReason::kRdmapUnspecified:
      break;
  }
  return "unspecified error";
}

}  // namespace

ReadRequest DecodeReadRequest(ConstBytes bytes) {
  return ReadRequest{
      .sink_tag = LoadBigEndian<uint32_t>(bytes, kSinkTagAt),
      .sink_offset = LoadBigEndian<uint64_t>(bytes, kSinkOffsetAt),
      .length = LoadBigEndian<uint32_t>(bytes, kLengthAt),
      .source_tag = LoadBigEndian<uint32_t>(bytes, kSourceTagAt),
      .source_offset = LoadBigEndian<uint64_t>(bytes, kSourceOffsetAt),
  };
}

void EncodeReadRequest(const ReadRequest& request, Bytes out) {
  StoreBigEndian(out, kSinkTagAt, request.sink_tag);
  StoreBigEndian(out, kSinkOffsetAt, request.sink_offset);
  StoreBigEndian(out, kLengthAt, request.length);
  StoreBigEndian(out, kSourceTagAt, request.source_tag);
  StoreBigEndian(out, kSourceOffsetAt, request.source_offset);
}

std::string ToString(TerminateReason reason) {
  const unsigned code = static_cast<unsigned>(reason);
  return std::string(TextOf(reason)) + " (layer " + std::to_string(code >> 12) + ", type " +
         std::to_string((code >> 8) & 0xf) + ", code " + std::to_string(code & 0xff) + ")";
}

bool IsAccessError(TerminateReason reason) {
  const unsigned layer_and_type = static_cast<unsigned>(reason) >> 8;
  return layer_and_type == 0x01 ||
         (layer_and_type == 0x11 && reason != TerminateReason::kTaggedVersion);
}

bool IsMpaError(TerminateReason reason) { return static_cast<unsigned>(reason) >> 12 == 2; }

std::optional<Terminate> DecodeTerminate(ConstBytes bytes) {
  if (bytes.size() < kTerminateControlBytes) return std::nullopt;
  Terminate terminate;
  terminate.reason = static_cast<TerminateReason>(LoadBigEndian<uint16_t>(bytes, 0));
  const uint8_t follows = LoadBigEndian<uint8_t>(bytes, kHeaderControlAt);
  ConstBytes rest = bytes.subspan(kTerminateControlBytes);

  if ((follows & kHasLength) != 0) {
    if (rest.size() < 2) return terminate;
    terminate.segment_bytes = LoadBigEndian<uint16_t>(rest, 0);
    rest = rest.subspan(2);
  }
  if ((follows & kHasSegment) != 0) {
    DdpHeader header;
    if (!DecodeDdp(rest, header)) return terminate;
    terminate.segment = header;
    rest = rest.subspan(header.bytes());
  }
  if ((follows & kHasReadRequest) != 0 && rest.size() >= kReadRequestBytes) {
    terminate.read_request = DecodeReadRequest(rest);
  }
  return terminate;
}

size_t EncodeTerminate(const Terminate& terminate, Bytes out) {
  const int follows = (terminate.segment_bytes ? kHasLength : 0) |
                      (terminate.segment ? kHasSegment : 0) |
                      (terminate.read_request ? kHasReadRequest : 0);
  StoreBigEndian(out, 0, static_cast<uint16_t>(terminate.reason));
  StoreBigEndian(out, kHeaderControlAt, static_cast<uint16_t>(follows << 8));
  size_t used = kTerminateControlBytes;
  if (terminate.segment_bytes) {
    StoreBigEndian(out, used, *terminate.segment_bytes);
    used += 2;
  }
  if (terminate.segment) used += EncodeDdp(*terminate.segment, out.subspan(used));
  if (terminate.read_request) {
    EncodeReadRequest(*terminate.read_request, out.subspan(used));
    used += kReadRequestBytes;
  }
  return used;
}

}  // namespace esdp::fabric::qpip
