#ifndef ESDP_OPERATION_H_
#define ESDP_OPERATION_H_

#include <cstdint>

#include "absl/time/time.h"
#include "esdp/event_queue.h"

// What a Socket and its operations take.

namespace esdp {

enum class SocketType : uint8_t { kStream };
enum class Transport : uint8_t { kNone, kQpip, kSim, kLocal, kVerbs };
const char* ToString(Transport transport);

enum class CompleteAt : uint8_t {
  kReusable,   // the buffer may be written again
  kDelivered,  // the peer's provider has the bytes
};
enum class Path : uint8_t { kByThreshold, kCopy, kZeroCopy };
enum class CancelMode : uint8_t {
  kIfNotStarted,     // what has partly gone finishes; what the peer is shown is asked back
  kAbortConnection,  // what has begun ends at once, with the connection
};
enum class CloseMode : uint8_t { kGraceful, kAbort };
enum class Direction : uint8_t { kSend, kReceive, kBoth };
// Its last byte is urgent: the peer hears of it ahead of what waits before it in the stream.
enum class SendFlags : uint32_t { kNone = 0, kUrgent = 1 };
enum class RecvFlags : uint32_t { kNone = 0, kWaitAll = 1 };

// What Socket::Poll waits for, and what its event tells in `bytes`: any of these bits.
enum PollMask : uint32_t {
  kPollReadable = 1u << 0,   // a receive would get bytes, or the end of the stream; or a connection
  kPollWritable = 1u << 1,   // a small send would be taken at once
  kPollUrgent = 1u << 2,     // an urgent byte is announced of which no AwaitUrgent has told
  kPollPeerEnded = 1u << 3,  // the peer has shut down: nothing comes behind what is readable
  kPollFailed = 1u << 4,     // the connection has ended otherwise than in order
};
inline constexpr uint32_t kPollAll = 0x1f;

// What every operation takes.
struct OpArgs {
  EventQueue& queue;    // where its event goes; must be of the same Context
  uint64_t cookie = 0;  // comes back in the event
  absl::Time deadline = absl::InfiniteFuture();  // on Context::Now()
  CompleteAt complete_at = CompleteAt::kReusable;
  Path path = Path::kByThreshold;  // kZeroCopy and kCopy overrule the thresholds for this operation
};

}  // namespace esdp

#endif  // ESDP_OPERATION_H_
