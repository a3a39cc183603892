#include "impl/fabric/qpip/mpa.h"

#include <algorithm>
#include <string_view>

namespace esdp::fabric::qpip {
namespace {

constexpr std::string_view kRequestKey = "MPA ID Req Frame";
constexpr std::string_view kReplyKey = "MPA ID Rep Frame";

constexpr size_t kFlagsAt = 16;
constexpr size_t kRevisionAt = 17;
constexpr size_t kLengthAt = 18;

constexpr uint8_t kMarkers = 0x80;
constexpr uint8_t kChecksum = 0x40;
constexpr uint8_t kRejected = 0x20;
constexpr uint8_t kEnhanced = 0x10;  // RFC 6581 section 6: "S"

// Bits A and B stand above the IRD, C and D above the ORD (RFC 6581 section 9).
constexpr uint16_t kUpper = 0x8000;
constexpr uint16_t kLower = 0x4000;
constexpr uint16_t kDepthMask = 0x3fff;

ConstBytes KeyOf(MpaKind kind) {
  return std::as_bytes(std::span(kind == MpaKind::kRequest ? kRequestKey : kReplyKey));
}

// As far as there are bytes.
bool BeginsWith(ConstBytes bytes, ConstBytes key) {
  const size_t compared = std::min(bytes.size(), key.size());
  return std::equal(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(compared), key.begin());
}

}  // namespace

const char* ToString(MpaError error) {
  switch (error) {
    case MpaError::kNone:
      return "no error";
    case MpaError::kShort:
      return "the MPA frame is not complete";
    case MpaError::kWrongKey:
      return "not an MPA frame of the expected kind";
    case MpaError::kWrongRevision:
      return "MPA revision is neither 1 nor 2";
    case MpaError::kDataTooLong:
      return "more than 512 bytes of MPA private data";
    case MpaError::kWordsMissing:
      return "enhanced MPA frame without its IRD and ORD";
  }
  return "unknown MPA error";
}

MpaError DecodeMpaHeader(ConstBytes bytes, MpaKind kind, MpaStartup& startup) {
  if (!BeginsWith(bytes, KeyOf(kind))) return MpaError::kWrongKey;
  if (bytes.size() < kMpaHeaderBytes) return MpaError::kShort;

  const uint8_t flags = LoadBigEndian<uint8_t>(bytes, kFlagsAt);
  startup = MpaStartup{};
  startup.kind = kind;
  startup.revision = LoadBigEndian<uint8_t>(bytes, kRevisionAt);
  if (startup.revision != 1 && startup.revision != 2) return MpaError::kWrongRevision;
  startup.markers = (flags & kMarkers) != 0;
  startup.checksum = (flags & kChecksum) != 0;
  startup.rejected = (flags & kRejected) != 0;
  // In revision 1 the bit is reserved and not looked at.
  startup.enhanced = startup.revision == 2 && (flags & kEnhanced) != 0;

  const uint16_t length = LoadBigEndian<uint16_t>(bytes, kLengthAt);
  if (length > kMpaPrivateDataMax) return MpaError::kDataTooLong;
  if (startup.enhanced && length < kMpaWordsBytes) return MpaError::kWordsMissing;
  startup.private_data_bytes =
      static_cast<uint16_t>(length - (startup.enhanced ? kMpaWordsBytes : 0));
  return MpaError::kNone;
}

MpaError DecodeMpaWords(ConstBytes data, MpaStartup& startup) {
  if (!startup.enhanced) return MpaError::kNone;
  if (data.size() < kMpaWordsBytes) return MpaError::kShort;
  const uint16_t inbound = LoadBigEndian<uint16_t>(data, 0);
  const uint16_t outbound = LoadBigEndian<uint16_t>(data, 2);
  startup.peer_to_peer = (inbound & kUpper) != 0;
  startup.ready_by_empty_frame = (inbound & kLower) != 0;
  startup.ready_by_write = (outbound & kUpper) != 0;
  startup.ready_by_read = (outbound & kLower) != 0;
  startup.inbound_reads = inbound & kDepthMask;
  startup.outbound_reads = outbound & kDepthMask;
  return MpaError::kNone;
}

size_t EncodeMpa(const MpaStartup& startup, Bytes out) {
  CopyBytes(out, KeyOf(startup.kind));
  const int flags = (startup.markers ? kMarkers : 0) | (startup.checksum ? kChecksum : 0) |
                    (startup.rejected ? kRejected : 0) | (startup.enhanced ? kEnhanced : 0);
  StoreBigEndian(out, kFlagsAt, static_cast<uint8_t>(flags));
  StoreBigEndian(out, kRevisionAt, startup.revision);
  StoreBigEndian(out, kLengthAt, static_cast<uint16_t>(startup.wire_data_bytes()));
  if (!startup.enhanced) return kMpaHeaderBytes;

  const int inbound = (startup.peer_to_peer ? kUpper : 0) |
                      (startup.ready_by_empty_frame ? kLower : 0) |
                      (startup.inbound_reads & kDepthMask);
  const int outbound = (startup.ready_by_write ? kUpper : 0) |
                       (startup.ready_by_read ? kLower : 0) | (startup.outbound_reads & kDepthMask);
  StoreBigEndian(out, kMpaHeaderBytes, static_cast<uint16_t>(inbound));
  StoreBigEndian(out, kMpaHeaderBytes + 2, static_cast<uint16_t>(outbound));
  return kMpaHeaderBytes + kMpaWordsBytes;
}

void StoreFpduCrc(Bytes four, uint32_t crc) {
  for (size_t i = 0; i < kFpduCrcBytes; ++i) four[i] = static_cast<std::byte>(crc >> (8 * i));
}

uint32_t LoadFpduCrc(ConstBytes four) {
  uint32_t crc = 0;
  for (size_t i = 0; i < kFpduCrcBytes; ++i) crc |= std::to_integer<uint32_t>(four[i]) << (8 * i);
  return crc;
}

}  // namespace esdp::fabric::qpip
