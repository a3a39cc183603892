#ifndef ESDP_IMPL_FABRIC_QPIP_RDMAP_H_
#define ESDP_IMPL_FABRIC_QPIP_RDMAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "impl/base/bytes.h"
#include "impl/fabric/qpip/ddp.h"

// RDMAP (RFC 5040): what a DDP message means. Pure.

namespace esdp::fabric::qpip {

inline constexpr uint8_t kRdmapVersion = 1;

enum class RdmapOpcode : uint8_t {
  kWrite = 0,
  kReadRequest = 1,
  kReadResponse = 2,
  kSend = 3,
  kSendInvalidate = 4,
  kSendSolicited = 5,
  kSendSolicitedInvalidate = 6,
  kTerminate = 7,
};

constexpr uint8_t RdmapControl(RdmapOpcode opcode) {
  return static_cast<uint8_t>((kRdmapVersion << 6) | static_cast<uint8_t>(opcode));
}
constexpr uint8_t RdmapVersionOf(uint8_t control) { return control >> 6; }
// Nothing for the values that RFC 5040 reserves.
constexpr std::optional<RdmapOpcode> RdmapOpcodeOf(uint8_t control) {
  if ((control & 0x0f) > static_cast<uint8_t>(RdmapOpcode::kTerminate)) return std::nullopt;
  return static_cast<RdmapOpcode>(control & 0x0f);
}
constexpr bool IsTagged(RdmapOpcode opcode) {
  return opcode == RdmapOpcode::kWrite || opcode == RdmapOpcode::kReadResponse;
}
constexpr bool IsSend(RdmapOpcode opcode) {
  return opcode >= RdmapOpcode::kSend && opcode <= RdmapOpcode::kSendSolicitedInvalidate;
}
constexpr bool Invalidates(RdmapOpcode opcode) {
  return opcode == RdmapOpcode::kSendInvalidate || opcode == RdmapOpcode::kSendSolicitedInvalidate;
}
constexpr DdpQueue QueueOf(RdmapOpcode untagged) {
  if (untagged == RdmapOpcode::kReadRequest) return DdpQueue::kReadRequest;
  return untagged == RdmapOpcode::kTerminate ? DdpQueue::kTerminate : DdpQueue::kSend;
}

// --- RDMA Read Request: the payload of an untagged message (RFC 5040 section 4.4) ---

inline constexpr size_t kReadRequestBytes = 28;

struct ReadRequest {
  uint32_t sink_tag = 0;
  uint64_t sink_offset = 0;
  uint32_t length = 0;
  uint32_t source_tag = 0;
  uint64_t source_offset = 0;
  friend bool operator==(const ReadRequest&, const ReadRequest&) = default;
};
// `bytes` holds at least kReadRequestBytes.
ReadRequest DecodeReadRequest(ConstBytes bytes);
void EncodeReadRequest(const ReadRequest& request, Bytes out);

// --- Terminate (RFC 5040 section 4.8) ---

// What went wrong: layer and error type in the upper byte, error code in the lower.
enum class TerminateReason : uint16_t {
  kCatastrophic = 0x0000,
  // RDMAP, remote protection
  kRdmapInvalidTag = 0x0100,
  kRdmapBounds = 0x0101,
  kRdmapAccessRights = 0x0102,
  kRdmapTagOfAnotherStream = 0x0103,
  kRdmapOffsetWraps = 0x0104,
  kRdmapTagCannotBeInvalidated = 0x0109,
  // RDMAP, remote operation
  kRdmapVersion = 0x0205,
  kRdmapUnexpectedOpcode = 0x0206,
  kRdmapStreamCatastrophe = 0x0207,
  kRdmapGlobalCatastrophe = 0x0208,
  kRdmapUnspecified = 0x02ff,
  // DDP, tagged buffer
  kTaggedInvalidTag = 0x1100,
  kTaggedBounds = 0x1101,
  kTaggedTagOfAnotherStream = 0x1102,
  kTaggedOffsetWraps = 0x1103,
  kTaggedVersion = 0x1104,
  // DDP, untagged buffer
  kUntaggedInvalidQueue = 0x1201,
  kUntaggedNoBuffer = 0x1202,
  kUntaggedSequence = 0x1203,
  kUntaggedMessageOffset = 0x1204,
  kUntaggedTooLong = 0x1205,
  kUntaggedVersion = 0x1206,
  // MPA
  kMpaClosed = 0x2001,
  kMpaCrc = 0x2002,
  kMpaLength = 0x2003,
  kMpaStartup = 0x2004,
  kMpaLocalCatastrophe = 0x2005,
  kMpaInsufficientReads = 0x2006,
  kMpaNoMatchingReadiness = 0x2007,
};
// As RFC 5040, 5041, 5044 and 6581 name it: layer, type, error, and all three as a number.
std::string ToString(TerminateReason reason);
// A fault of whoever ends the stream; else it complains of the other side.
bool IsOwnFault(TerminateReason reason);
// The peer reached for memory that it was not shown.
bool IsAccessError(TerminateReason reason);
bool IsMpaError(TerminateReason reason);

struct Terminate {
  TerminateReason reason = TerminateReason::kCatastrophic;
  std::optional<uint16_t> segment_bytes;  // of the offending segment
  std::optional<DdpHeader> segment;
  std::optional<ReadRequest> read_request;
  friend bool operator==(const Terminate&, const Terminate&) = default;
};
inline constexpr size_t kTerminateControlBytes = 4;
inline constexpr size_t kTerminateBytesMax =
    kTerminateControlBytes + 2 + kDdpHeaderMax + kReadRequestBytes;

// Nothing when `bytes` ends before what its control word announces. A truncated list of headers
// still tells the reason: the rest is then left out.
std::optional<Terminate> DecodeTerminate(ConstBytes bytes);
// Returns how many bytes were written; `out` holds kTerminateBytesMax.
size_t EncodeTerminate(const Terminate& terminate, Bytes out);

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_RDMAP_H_
