#ifndef ESDP_IMPL_PROVIDER_TYPES_H_
#define ESDP_IMPL_PROVIDER_TYPES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "impl/base/bytes.h"
#include "impl/base/time.h"
#include "impl/fabric/types.h"
#include "impl/sdp/interface/counters.h"
#include "impl/sdp/interface/readiness.h"

// What the front end and the provider say to each other. Sizes in bytes, instants on the shard's
// clock.

namespace esdp::provider {

using fabric::Address;
using fabric::Family;

enum class ConnectionId : uint64_t {
  kNone = 0
};  // generation tagged; stale ones are ignored or NotFound
enum class ListenerId : uint64_t { kNone = 0 };

enum class Exposure : uint8_t { kPerOperation, kRegionKey, kNone };
enum class Path : uint8_t { kByThreshold, kCopy, kZeroCopy };
enum class CompleteAt : uint8_t { kReusable, kDelivered };
enum class CancelMode : uint8_t { kIfNotStarted, kEndShort, kAbortConnection };
enum class ModeWish : uint8_t { kAutomatic, kBuffered, kCombined, kPipelined };

// How an operation or a connection ended. kOk or the root cause.
enum class EndReason : uint8_t {
  kOk,
  kCancelled,
  kDeadlineExceeded,
  kShutDown,    // posted after or pending at our own shutdown or close
  kLocalAbort,  // we aborted
  kTooLate,     // the connection had ended before the transfer reached it: OnClosed has told why
  kRefused,     // nobody listens at the peer's address
  kRejected,    // somebody listens, but would not have us
  kUnreachable,
  kConnectTimedOut,
  kHandshakeRefused,  // the peer's Hello or HelloAck cannot be lived with
  kPeerReset,         // the peer or its process went away without saying good-bye
  kPeerSilent,        // keep-alive gave up
  kPeerProtocol,      // the peer broke SDP or its fabric's protocol
  kRemoteAccess,      // a key, range or right was refused: by the peer to us, or by us to the peer
  kFabricFailed,
  kNoMemory,     // this side's system had none
  kUnsupported,  // the peer cannot do what was asked for; the connection is as before
  kInternal,     // a fault of ours
};

// The root cause with its text. `text` is for people and names the rule, the limit or the system's
// message.
struct Failure {
  EndReason ending = EndReason::kOk;
  std::string text;
  bool input_kept = false;  // the peer had ended its stream before: receives still take that
};

// Registered memory as the provider keeps it: see regions.h. The front end holds it by shared_ptr.
class MemoryRegion;

// One contiguous range of an operation's memory, inside one MemoryRegion.
struct Piece {
  MemoryRegion* region = nullptr;
  uint64_t offset = 0;  // from the region's first byte
  uint64_t length = 0;
};

// A send or receive. The front end owns it and keeps it in place, with its regions and its list of
// pieces, from Submit until OnTransferFinished has been called for it.
struct Transfer {
  bool is_send = true;
  bool awaits_urgent = false;  // neither: it ends when the peer announces an urgent byte; no pieces
  bool urgent = false;         // send: its last byte is urgent
  bool wait_all = false;
  bool shown = true;  // receive: the peer may be shown it, to write to
  bool until_advert =
      false;  // receive: it takes what is in messages, and ends where memory is shown
  // Who submits it has a look at what it completes at once, since nothing is to gather behind it.
  bool tended = false;
  Path path = Path::kByThreshold;
  CompleteAt complete_at = CompleteAt::kReusable;
  CancelMode at_deadline = CancelMode::kIfNotStarted;
  std::span<const Piece> pieces;  // one at least; its length may be 0
  bool adaptive = false;          // send: the threshold is learned, from zcopy_min on
  uint64_t zcopy_min = 0;         // the threshold in force; ~0 is never
  Time deadline = kTimeInfinite;

  std::atomic<uint64_t> tag{
      0};                      // the front end's name of it; changed only while it is not submitted
  uint32_t provider_slot = 0;  // the provider's own
};

// Sends that are over before the call that asks for them returns, or were never asked for: whole
// operations that are copied, from anywhere, in one message, and complete when their memory is
// reusable.
struct ImmediateSend {
  std::span<const ConstBytes> parts;  // of each its bytes, one at least
  uint64_t length = 0;                // of all
  uint64_t stream_offset = 0;         // of the first: the provider's answer
  bool tended = false;                // as a transfer
};

struct TransferResult {
  EndReason ending = EndReason::kOk;
  const Failure* failure =
      nullptr;  // the connection's root cause, if that is what ended it; good during the call
  bool end_of_stream = false;
  bool urgent = false;   // receive: its last byte is urgent; awaits_urgent: one is announced
  bool written = false;  // receive: the peer says to have written some of its bytes
  uint64_t bytes = 0;
  uint64_t bytes_zero_copy = 0;
  uint64_t stream_offset = 0;
};

// What the application could do with a connection, see sdp::ReportReadiness.
using Readiness = sdp::Readiness;

// Whether the peer may move a connection, see sdp::Config.
enum class PeerMoves : uint8_t { kRefused, kGuarded, kUnguarded };

// A size that depends on the fabric.
inline constexpr uint32_t kByFabric = ~uint32_t{0};

// Wishes for one connection. 0 in a size means the default.
struct ConnectionOptions {
  uint16_t receive_buffers = 16;
  uint32_t receive_buffer_bytes = 16 * 1024 + 16;  // header included
  uint64_t receive_window_bytes = 0;       // what they may grow to, on a long path; 0: they stay
  uint32_t receive_buffer_bytes_max = 0;   // the peer may ask for so much; 0: no change
  uint32_t peer_receive_buffer_bytes = 0;  // to ask of the peer, or kByFabric; 0: as they are
  ModeWish send_mode = ModeWish::kAutomatic;
  ModeWish receive_mode = ModeWish::kAutomatic;
  bool as_deployed = false;
  uint16_t send_buffers = 8;
  uint32_t coalesce_max = 2048;
  bool checksum = false;
  Duration keep_alive_idle{};  // 0: the fabric's default
  Duration linger = std::chrono::seconds(60);
  Duration cancel_grace = std::chrono::seconds(5);  // see sdp::Config
  bool shows_receives = true;                       // the peer may write to them
  PeerMoves peer_moves = PeerMoves::kRefused;
  uint32_t moves_max = 16;  // by the peer, see sdp::Config
  bool watch_readiness = false;
};

// What the core counts, and what happens where it does not look. Those of connection_counters.def
// are the application's.
struct ConnectionCounters : sdp::Counters {
  uint64_t returns_rejected = 0;
};

struct RegionDetails {
  std::byte* base = nullptr;  // null where the processor need not reach it
  uint64_t length = 0;
  uint32_t chunks = 0;
  uint32_t operations = 0;  // using it now
  Duration registration_time{};
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_TYPES_H_
