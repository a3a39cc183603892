#ifndef ESDP_IMPL_SDP_INTERFACE_IDS_H_
#define ESDP_IMPL_SDP_INTERFACE_IDS_H_

#include <cstdint>

// How the core names what it never touches: operations, buffers, adverts, timers. Also the small
// enumerations that cross its door in both directions.

namespace esdp::sdp {

enum class OperationId : uint32_t {
};  // chosen by the provider; unique among the live ones of a connection
inline constexpr OperationId kNoOperation{0};  // names none: of a send that is over within its step
// 0 .. Config::receive_buffers - 1, and kSpareReceiveBuffers more
enum class ReceiveBuffer : uint16_t {};
enum class SendBuffer : uint16_t {
};  // 0 .. Config::send_buffers - 1: room for one message of coalesced payload
enum class AdvertId : uint32_t {};  // chosen by the core; never reused on a connection

// A range of an operation's memory. The provider has seen to it that each range given with AskSend
// or AskReceive lies in one registered chunk; the core only ever names parts of those.
struct OperationRange {
  OperationId operation{};
  uint32_t length = 0;
  uint64_t offset = 0;  // from the operation's first byte
  friend bool operator==(const OperationRange&, const OperationRange&) = default;
};

struct RemoteRange {
  uint32_t key = 0;
  uint64_t address = 0;
  friend bool operator==(const RemoteRange&, const RemoteRange&) = default;
};

enum class Path : uint8_t { kByThreshold, kCopy, kZeroCopy };
enum class CompleteAt : uint8_t { kReusable, kDelivered };
enum class CancelMode : uint8_t {
  kIfNotStarted,  // what has partly left goes on
  kEndShort,      // a send ends behind the bytes that have left: the rest was never in the stream
  kAbortConnection,  // what has begun takes the connection down
};
// The data delivery mode that an application wants for a half. kAutomatic: as the traffic asks.
enum class ModeWish : uint8_t { kAutomatic, kBuffered, kCombined, kPipelined };
enum class Right : uint8_t { kRemoteRead, kRemoteWrite };

enum class Timer : uint8_t { kAcknowledge, kClose, kSuspend, kCancel, kWindow };
inline constexpr int kTimerCount = 5;

// How an operation or a connection ended. The first that is not kDone is the root cause and stays
// it.
enum class Outcome : uint8_t {
  kDone,
  kCancelled,         // the application asked
  kDeadlineExceeded,  // its deadline passed
  kShutDown,          // posted after Shutdown or Close, or pending at a graceful Close (receives)
  kUnsupported,       // the peer is of a kind that is never asked for this
  kLocalAbort,        // the application asked for an abort, or dropped its socket
  kConnectFailed,  // never connected: refused, rejected, unreachable, timed out; the provider knows
                   // which
  kHandshakeRefused,  // the Hello or HelloAck was none we can live with
  kPeerReset,         // AbortConn, or the connection ended without DisConn
  kPeerProtocol,      // the peer broke SDP; the reason names the rule
  kFabricError,       // the queue pair failed
  kResumeFailed,      // suspended, and never resumed; the reason says what was waited for
  kInternal,          // an invariant of ours did not hold
};
const char* ToString(Outcome outcome);

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_INTERFACE_IDS_H_
