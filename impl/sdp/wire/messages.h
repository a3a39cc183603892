#ifndef ESDP_IMPL_SDP_WIRE_MESSAGES_H_
#define ESDP_IMPL_SDP_WIRE_MESSAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

// The eighteen SDP messages as plain values in host order: one struct for each extended header.
// Names are the standard's. Nothing here has a layout: codec.h places every field by offset (sdp
// wire protocol, section 3).

namespace esdp::sdp::wire {

enum class MessageId : uint8_t {
  kHello = 0x00,
  kHelloAck = 0x01,
  kDisConn = 0x02,
  kAbortConn = 0x03,
  kSendSm = 0x04,
  kRdmaWrCompl = 0x05,
  kRdmaRdCompl = 0x06,
  kModeChange = 0x07,
  kSrcAvailCancel = 0x08,
  kSinkAvailCancel = 0x09,
  kSinkCancelAck = 0x0A,
  kChRcvBuf = 0x0B,
  kChRcvBufAck = 0x0C,
  kSuspComm = 0x0D,
  kSuspCommAck = 0x0E,
  kSinkAvail = 0xFD,
  kSrcAvail = 0xFE,
  kData = 0xFF,
};

// Sizes on the wire, in bytes (section 3.10).
inline constexpr size_t kBaseHeaderBytes = 16;
inline constexpr size_t kHelloBytes = 92;
inline constexpr size_t kCompactHelloBytes = 32;          // bytes 0..31 of a Hello (section 2.6)
inline constexpr size_t kHelloAddressesEnd = 64;          // what a compact one leaves out
inline constexpr size_t kCompactHelloExtendedBytes = 36;  // and bytes 64..67
inline constexpr size_t kCompactHelloTokenBytes = 52;     // and bytes 68..83, of a return
inline constexpr size_t kHelloAckBytes = 196;
inline constexpr size_t kSrcAvailBytes = 32;
inline constexpr size_t kSinkAvailBytes = 36;
inline constexpr size_t kHeaderBytesMax = 36;           // of a message on an established connection
inline constexpr uint32_t kReceiveBufferBytesMin = 37;  // base header, largest fixed body, one byte
inline constexpr uint16_t kInitialBuffersMin = 3;       // of Hello.buffers (section 4.5)
inline constexpr uint32_t kAdvertBytesMax = 1u << 31;   // of SrcAvail.length and SinkAvail.length

// Flags of the base header [R3.1.3]. Other bits are sent as 0 and ignored.
inline constexpr uint8_t kFlagOobPresent = 0x01;
inline constexpr uint8_t kFlagOobPending = 0x02;
inline constexpr uint8_t kFlagReqPipe = 0x04;

struct BaseHeader {
  uint8_t flags = 0;
  uint16_t buffers = 0;   // receive buffers the sender has posted: an absolute count
  uint32_t length = 0;    // of the whole message, bytes. Encode computes it; Decode has checked it
  uint32_t sequence = 0;  // MSeq
  uint32_t acknowledged = 0;  // MSeqAck
  friend bool operator==(const BaseHeader&, const BaseHeader&) = default;
};

// 16 address bytes as Hello carries them: IPv4 in the last four, the first twelve zero [R3.3.5].
using AddressBytes = std::array<uint8_t, 16>;

// Capability bits of Hello and HelloAck (the low nibble of byte 17).
inline constexpr uint8_t kCapabilityInvalidate = 0x1;
inline constexpr uint8_t kCapabilityExtendedMaxAdverts = 0x2;
// Beyond the standard, which reserves these bits and bytes: whoever comes back to a suspended
// connection proves with a secret of the connection that it is the peer.
inline constexpr uint8_t kCapabilityReturnToken = 0x4;  // knows the secret's place, and keeps it
inline constexpr uint8_t kCapabilityMayBeMoved = 0x8;   // answers SuspComm

// Given by the side that accepts, in its HelloAck, and shown in the Hello of a return. All zero:
// none.
using ReturnToken = std::array<uint8_t, 16>;

// The protocol version sent [R3.3.2]. A peer with another minor version is not refused.
inline constexpr uint8_t kMajorVersion = 2;
inline constexpr uint8_t kMinorVersion = 2;

struct Hello {
  uint8_t major_version = kMajorVersion;
  uint8_t minor_version = kMinorVersion;
  uint8_t ip_version = 4;  // 4 or 6
  uint8_t capabilities = 0;
  uint8_t max_adverts = 1;                   // 1..255
  uint32_t desired_remote_receive_size = 0;  // bytes, header included
  uint32_t local_receive_size = 0;           // bytes, header included
  uint16_t local_port = 0;
  AddressBytes source_address{};
  AddressBytes destination_address{};
  uint16_t extended_max_adverts = 0;  // valid with kCapabilityExtendedMaxAdverts
  ReturnToken return_token{};         // valid with kCapabilityReturnToken
  friend bool operator==(const Hello&, const Hello&) = default;
};

struct HelloAck {
  uint8_t major_version = kMajorVersion;
  uint8_t minor_version = kMinorVersion;
  uint8_t capabilities = 0;
  uint8_t max_adverts = 1;
  uint32_t actual_receive_size = 0;  // bytes, header included
  ReturnToken return_token{};        // valid with kCapabilityReturnToken
  friend bool operator==(const HelloAck&, const HelloAck&) = default;
};

enum class Mode : uint8_t { kBuffered = 0, kCombined = 1, kPipelined = 2 };

struct DisConn {
  friend bool operator==(const DisConn&, const DisConn&) = default;
};
struct AbortConn {
  friend bool operator==(const AbortConn&, const AbortConn&) = default;
};
struct SendSm {
  friend bool operator==(const SendSm&, const SendSm&) = default;
};
struct RdmaWrCompl {
  uint32_t length = 0;
  friend bool operator==(const RdmaWrCompl&, const RdmaWrCompl&) = default;
};
struct RdmaRdCompl {
  uint32_t length = 0;
  friend bool operator==(const RdmaRdCompl&, const RdmaRdCompl&) = default;
};
struct ModeChange {
  bool changes_send_half = false;  // the S bit: of the receiver of this message
  Mode mode = Mode::kCombined;
  friend bool operator==(const ModeChange&, const ModeChange&) = default;
};
struct SrcAvailCancel {
  friend bool operator==(const SrcAvailCancel&, const SrcAvailCancel&) = default;
};
struct SinkAvailCancel {
  friend bool operator==(const SinkAvailCancel&, const SinkAvailCancel&) = default;
};
struct SinkCancelAck {
  friend bool operator==(const SinkCancelAck&, const SinkCancelAck&) = default;
};
struct ChRcvBuf {
  uint32_t desired_size = 0;
  friend bool operator==(const ChRcvBuf&, const ChRcvBuf&) = default;
};
struct ChRcvBufAck {
  uint32_t actual_size = 0;
  friend bool operator==(const ChRcvBufAck&, const ChRcvBufAck&) = default;
};
struct SuspComm {
  uint64_t service_id = 0;
  friend bool operator==(const SuspComm&, const SuspComm&) = default;
};
struct SuspCommAck {
  friend bool operator==(const SuspCommAck&, const SuspCommAck&) = default;
};
struct SinkAvail {
  uint32_t length = 0;  // 1..2^31 bytes
  uint32_t remote_key = 0;
  uint64_t virtual_address = 0;
  uint32_t non_discards = 0;
  friend bool operator==(const SinkAvail&, const SinkAvail&) = default;
};
struct SrcAvail {
  uint32_t length = 0;  // 1..2^31 bytes, those sent inline included
  uint32_t remote_key = 0;
  uint64_t virtual_address = 0;
  friend bool operator==(const SrcAvail&, const SrcAvail&) = default;
};
struct Data {
  friend bool operator==(const Data&, const Data&) = default;
};

using Body = std::variant<Data, SrcAvail, RdmaRdCompl, SendSm, SinkAvail, RdmaWrCompl, ModeChange,
                          SrcAvailCancel, SinkAvailCancel, SinkCancelAck, ChRcvBuf, ChRcvBufAck,
                          SuspComm, SuspCommAck, DisConn, AbortConn, Hello, HelloAck>;

// One message without its payload. The payload, if any, lies in the receive buffer right behind the
// header.
struct Message {
  BaseHeader base;
  Body body;
  friend bool operator==(const Message&, const Message&) = default;
};

}  // namespace esdp::sdp::wire

#endif  // ESDP_IMPL_SDP_WIRE_MESSAGES_H_
