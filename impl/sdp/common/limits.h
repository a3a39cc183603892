#ifndef ESDP_IMPL_SDP_COMMON_LIMITS_H_
#define ESDP_IMPL_SDP_COMMON_LIMITS_H_

#include <chrono>
#include <cstdint>

#include "impl/base/time.h"
#include "impl/sdp/wire/messages.h"

// Every constant of the protocol that the core uses, with the clause of the sdp wire protocol that
// fixes it. Sizes of messages are in wire/messages.h.

namespace esdp::sdp {

inline constexpr uint8_t kMajorVersion = 2;  // [R3.3.2]
inline constexpr uint8_t kMinorVersion = 2;

inline constexpr uint16_t kBuffersMin = 3;  // [R4.5.1] posted at set-up, both ways
inline constexpr uint32_t kReceiveBufferBytesMax = 1u << 31;  // [R3.3.4]

inline constexpr int32_t kCreditsForPayload = 3;  // [R4.3.4] user bytes
inline constexpr int32_t kCreditsForControl = 2;  // [R4.3.3] no user bytes
inline constexpr int32_t kCreditsForUpdate = 1;  // [R4.3.2] no user bytes, and it gives new credits
inline constexpr int32_t kMustUpdateAt = 1;      // [R4.4.1] the peer has this many or fewer

inline constexpr uint32_t kWorkSlotsForControl = 4;  // [R15.3] never taken by payload

inline constexpr uint32_t kInlineBytes = 1;    // [R5.8] Combined: mandatory, and one is enough
inline constexpr uint32_t kInlineUseMin = 64;  // [R7.1.2] fewer are ignored and read again
inline constexpr uint32_t kSourceAdvertBytesMin = kInlineBytes + 1;  // [R3.7.2] inline < Len

inline constexpr uint32_t kResizeSlack = 16;  // [11] a deployed peer's ActSz leaves the header out
inline constexpr uint32_t kUrgentAheadMax = 65'535;  // [R10.2] user bytes from OOB_PEND to its byte

// Local choices, not the standard's.
inline constexpr uint32_t kResizeAfterBuffers = 4;  // so much Data goes before we ask for a size
// The same where nobody has wished for one: new buffers cost about what they save in so much.
inline constexpr uint32_t kResizeByNeedAfterBuffers = 64;
inline constexpr uint32_t kSendBufferBytes = 16 * 1024;  // coalesced payload of one send buffer
inline constexpr uint32_t kDataBytesMax =
    1u << 20;  // payload of one message, however large the peer's buffers

// Receive buffers beside those that are announced: a resumed connection announces three at least,
// though unread data of the old queue pair may leave only two of the others free [4.3, 4.5, 12].
inline constexpr uint16_t kSpareReceiveBuffers = 1;

// The receive window. On a path with shorter turns the first buffers already carry 650 MB a second;
// where a turn is longer, the sender has rested. The first turns show what the path takes.
inline constexpr Duration kShortestTurn = std::chrono::microseconds(400);
inline constexpr Duration kLongestTurn = std::chrono::seconds(2);
inline constexpr uint16_t kTurnsAtFirst = 3;
inline constexpr uint16_t kTurnsAfterRefusal = 16;
// A grown window that nothing has arrived for shrinks.
inline constexpr Duration kWindowIdle = std::chrono::seconds(5);

// [R4.4.4] Bare Data that only restores what the peer's bare Data took: so many at once, the next
// after one acknowledge_delay, then twice as long each time, up to 2^3.
inline constexpr uint32_t kPromptRestores = 4;
inline constexpr uint32_t kRestoreDoublingsMax = 3;

// [R4.1.6] Serial arithmetic: a is b or came after it.
constexpr bool AtOrAfter(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) >= 0; }

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_COMMON_LIMITS_H_
