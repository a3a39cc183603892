#include "impl/fabric/qpip/rdmap.h"

namespace esdp::fabric::qpip {
namespace {

constexpr size_t kSinkTagAt = 0;
constexpr size_t kSinkOffsetAt = 4;
constexpr size_t kReadLengthAt = 12;
constexpr size_t kSourceTagAt = 16;
constexpr size_t kSourceOffsetAt = 20;

// The third byte of the Terminate control word tells what follows.
constexpr size_t kHeaderControlAt = 2;
constexpr uint8_t kHasLength = 0x80;
constexpr uint8_t kHasSegment = 0x40;
constexpr uint8_t kHasReadRequest = 0x20;

struct Named {
  unsigned value;  // layer and type
  const char* name;
};

constexpr Named kTypes[] = {
    {0x00, "RDMAP, Local Catastrophic Error"},
    {0x01, "RDMAP, Remote Protection Error"},
    {0x02, "RDMAP, Remote Operation Error"},
    {0x10, "DDP, Local Catastrophic Error"},
    {0x11, "DDP, Tagged Buffer Error"},
    {0x12, "DDP, Untagged Buffer Error"},
    {0x20, "MPA Error"},
};

const char* TypeOf(unsigned code) {
  for (const Named& type : kTypes) {
    if (type.value == code >> 8) return type.name;
  }
  return "unknown layer or type";
}

const char* ErrorOf(TerminateReason reason) {
  switch (reason) {
    case TerminateReason::kRdmapInvalidTag:
    case TerminateReason::kTaggedInvalidTag:
      return "Invalid STag";
    case TerminateReason::kRdmapBounds:
    case TerminateReason::kTaggedBounds:
      return "Base or bounds violation";
    case TerminateReason::kRdmapAccessRights:
      return "Access rights violation";
    case TerminateReason::kRdmapTagOfAnotherStream:
      return "STag not associated with RDMAP Stream";
    case TerminateReason::kTaggedTagOfAnotherStream:
      return "STag not associated with DDP Stream";
    case TerminateReason::kRdmapOffsetWraps:
    case TerminateReason::kTaggedOffsetWraps:
      return "TO wrap";
    case TerminateReason::kRdmapTagCannotBeInvalidated:
      return "STag cannot be Invalidated";
    case TerminateReason::kRdmapVersion:
      return "Invalid RDMAP version";
    case TerminateReason::kRdmapUnexpectedOpcode:
      return "Unexpected OpCode";
    case TerminateReason::kRdmapStreamCatastrophe:
      return "Catastrophic error, localized to RDMAP Stream";
    case TerminateReason::kRdmapGlobalCatastrophe:
      return "Catastrophic error, global";
    case TerminateReason::kCatastrophic:
    case TerminateReason::kRdmapUnspecified:
      return "Unspecified Error";
    case TerminateReason::kTaggedVersion:
    case TerminateReason::kUntaggedVersion:
      return "Invalid DDP version";
    case TerminateReason::kUntaggedInvalidQueue:
      return "Invalid QN";
    case TerminateReason::kUntaggedNoBuffer:
      return "Invalid MSN - no buffer available";
    case TerminateReason::kUntaggedSequence:
      return "Invalid MSN - MSN range is not valid";
    case TerminateReason::kUntaggedMessageOffset:
      return "Invalid MO";
    case TerminateReason::kUntaggedTooLong:
      return "DDP Message too long for available buffer";
    case TerminateReason::kMpaClosed:
      return "TCP connection closed, terminated or lost";
    case TerminateReason::kMpaCrc:
      return "MPA CRC does not match";
    case TerminateReason::kMpaLength:
      return "ULPDU Length does not fit the FPDU";
    case TerminateReason::kMpaStartup:
      return "Invalid MPA Request or Reply Frame";
    case TerminateReason::kMpaLocalCatastrophe:
      return "Local catastrophic";
    case TerminateReason::kMpaInsufficientReads:
      return "Insufficient IRD resources";
    case TerminateReason::kMpaNoMatchingReadiness:
      return "No matching RTR option";
  }
  return "unknown error";
}

}  // namespace

ReadRequest DecodeReadRequest(ConstBytes bytes) {
  return ReadRequest{
      .sink_tag = LoadBigEndian<uint32_t>(bytes, kSinkTagAt),
      .sink_offset = LoadBigEndian<uint64_t>(bytes, kSinkOffsetAt),
      .length = LoadBigEndian<uint32_t>(bytes, kReadLengthAt),
      .source_tag = LoadBigEndian<uint32_t>(bytes, kSourceTagAt),
      .source_offset = LoadBigEndian<uint64_t>(bytes, kSourceOffsetAt),
  };
}

void EncodeReadRequest(const ReadRequest& request, Bytes out) {
  StoreBigEndian(out, kSinkTagAt, request.sink_tag);
  StoreBigEndian(out, kSinkOffsetAt, request.sink_offset);
  StoreBigEndian(out, kReadLengthAt, request.length);
  StoreBigEndian(out, kSourceTagAt, request.source_tag);
  StoreBigEndian(out, kSourceOffsetAt, request.source_offset);
}

std::string ToString(TerminateReason reason) {
  const unsigned code = static_cast<unsigned>(reason);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string number = "0x";
  for (int shift = 12; shift >= 0; shift -= 4) number += kDigits[(code >> shift) & 0xf];
  return std::string(TypeOf(code)) + ": " + ErrorOf(reason) + " (" + number + ")";
}

bool IsOwnFault(TerminateReason reason) {
  switch (reason) {
    case TerminateReason::kCatastrophic:
    case TerminateReason::kRdmapGlobalCatastrophe:
    case TerminateReason::kMpaClosed:
    case TerminateReason::kMpaLocalCatastrophe:
      return true;
    default:
      return static_cast<unsigned>(reason) >> 8 == 0x10;
  }
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
