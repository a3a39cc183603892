#ifndef ESDP_IMPL_FABRIC_QPIP_DDP_H_
#define ESDP_IMPL_FABRIC_QPIP_DDP_H_

#include <cstddef>
#include <cstdint>

#include "impl/base/bytes.h"

// DDP (RFC 5041): the header of a segment, with the bytes that it reserves for RDMAP. Pure.

namespace esdp::fabric::qpip {

inline constexpr size_t kTaggedHeaderBytes = 14;
inline constexpr size_t kUntaggedHeaderBytes = 18;
inline constexpr size_t kDdpHeaderMax = kUntaggedHeaderBytes;
inline constexpr uint8_t kDdpVersion = 1;

// Untagged queues as RDMAP uses them (RFC 5040 section 5.1).
enum class DdpQueue : uint32_t { kSend = 0, kReadRequest = 1, kTerminate = 2 };
inline constexpr size_t kDdpQueues = 3;

struct DdpHeader {
  bool tagged = false;
  bool last = true;  // the message ends with this segment
  uint8_t version = kDdpVersion;
  uint8_t ulp_control = 0;  // RDMAP's: version and opcode

  uint32_t tag = 0;     // tagged: the buffer's steering tag
  uint64_t offset = 0;  // tagged: "TO", in the tag's own space

  uint32_t ulp_word = 0;        // untagged: RDMAP's, the tag to invalidate
  uint32_t queue = 0;           // untagged: "QN"
  uint32_t sequence = 0;        // untagged: "MSN", from 1
  uint32_t message_offset = 0;  // untagged: "MO"

  size_t bytes() const { return tagged ? kTaggedHeaderBytes : kUntaggedHeaderBytes; }
  friend bool operator==(const DdpHeader&, const DdpHeader&) = default;
};

// How long the header is that begins with this byte.
constexpr size_t DdpHeaderBytes(std::byte first) {
  return (first & std::byte{0x80}) != std::byte{0} ? kTaggedHeaderBytes : kUntaggedHeaderBytes;
}

// False when `bytes` ends before the header does. Whether the values make sense is for the caller
// to judge: each has a Terminate code of its own.
bool DecodeDdp(ConstBytes bytes, DdpHeader& header);

// Returns header.bytes(); `out` holds at least as many.
size_t EncodeDdp(const DdpHeader& header, Bytes out);

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_DDP_H_
