#ifndef ESDP_IMPL_FABRIC_QPIP_MPA_H_
#define ESDP_IMPL_FABRIC_QPIP_MPA_H_

#include <cstddef>
#include <cstdint>

#include "impl/base/bytes.h"

// MPA (RFC 5044, with the enhanced set-up of RFC 6581): the frames that open a connection, and the
// frame (FPDU) round every DDP segment. Pure: bytes in, values out.

namespace esdp::fabric::qpip {

// --- start-up frames: 20 bytes, then private data (RFC 5044 section 7.1.1) ---

inline constexpr size_t kMpaHeaderBytes = 20;
inline constexpr size_t kMpaWordsBytes = 4;          // IRD and ORD, in front of the private data
inline constexpr size_t kMpaPrivateDataMax = 512;    // on the wire, the words included
inline constexpr uint16_t kMpaDepthMax = 0x3ffe;     // 14 bits, without "not negotiated"
inline constexpr uint16_t kMpaDepthUnsaid = 0x3fff;  // RFC 6581 section 9: not negotiated here

enum class MpaKind : uint8_t { kRequest, kReply };

struct MpaStartup {
  MpaKind kind = MpaKind::kRequest;
  uint8_t revision = 2;
  bool markers = false;
  bool checksum = false;
  bool rejected = false;
  bool enhanced = false;            // revision 2: the words are there
  uint16_t private_data_bytes = 0;  // without the words

  // The words; meaningful only if enhanced. Depths are the sender's: IRD, ORD.
  uint16_t inbound_reads = 0;
  uint16_t outbound_reads = 0;
  bool peer_to_peer = false;
  bool ready_by_empty_frame = false;  // the three kinds of ready-to-receive (RTR) frame
  bool ready_by_write = false;
  bool ready_by_read = false;

  // Private data as the frame counts it.
  size_t wire_data_bytes() const { return private_data_bytes + (enhanced ? kMpaWordsBytes : 0); }
  friend bool operator==(const MpaStartup&, const MpaStartup&) = default;
};

enum class MpaError : uint8_t {
  kNone,
  kShort,          // more bytes are needed
  kWrongKey,       // no MPA frame of this kind
  kWrongRevision,  // neither 1 nor 2
  kDataTooLong,    // more private data than 512 bytes
  kWordsMissing,   // enhanced, but no room for the words
};
const char* ToString(MpaError error);

// Reads the fixed part: kWrongKey as soon as one byte differs, since who speaks something else may
// say no more for long. `startup.private_data_bytes` then tells how much follows (with the words,
// startup.wire_data_bytes()). Words are not read yet.
MpaError DecodeMpaHeader(ConstBytes bytes, MpaKind kind, MpaStartup& startup);
// Reads the words of an enhanced frame. `data` begins behind the fixed part.
MpaError DecodeMpaWords(ConstBytes data, MpaStartup& startup);

// Writes the fixed part and the words; returns how many bytes. The caller appends
// startup.private_data_bytes bytes. `out` holds at least 24.
size_t EncodeMpa(const MpaStartup& startup, Bytes out);

// --- FPDU: length, ULPDU, padding to 4 bytes, CRC (RFC 5044 section 4.1) ---

inline constexpr size_t kFpduLengthBytes = 2;
inline constexpr size_t kFpduCrcBytes = 4;
inline constexpr size_t kFpduTrailerMax = 3 + kFpduCrcBytes;
inline constexpr size_t kUlpduBytesMax = 0xffff;

constexpr size_t FpduPadBytes(size_t ulpdu_bytes) {
  return (0 - (kFpduLengthBytes + ulpdu_bytes)) & 3;
}
constexpr size_t FpduTrailerBytes(size_t ulpdu_bytes) {
  return FpduPadBytes(ulpdu_bytes) + kFpduCrcBytes;
}
constexpr size_t FpduBytes(size_t ulpdu_bytes) {
  return kFpduLengthBytes + ulpdu_bytes + FpduTrailerBytes(ulpdu_bytes);
}

// The CRC goes out with its least significant byte first, as iSCSI has it (RFC 5044 section 4.4).
void StoreFpduCrc(Bytes four, uint32_t crc);
uint32_t LoadFpduCrc(ConstBytes four);

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_MPA_H_
