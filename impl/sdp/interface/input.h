#ifndef ESDP_IMPL_SDP_INTERFACE_INPUT_H_
#define ESDP_IMPL_SDP_INTERFACE_INPUT_H_

#include <cstdint>
#include <optional>
#include <variant>

#include "impl/base/time.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/wire/messages.h"

// What can happen to a connection. Each is one argument of Connection::Step.

namespace esdp::sdp {

// --- set-up ---

struct AskConnect {};  // connecting side, first input
// A Hello that decoded. Accepting side, first input; or the answer to AwaitHello.
struct HelloArrived {
  wire::Message hello;
};
struct HelloRefused {       // either side: the peer's Hello or HelloAck did not decode
  const char* reason = "";  // a static text
};
// What the transport calls the two ends: known when the queue pair is ready.
struct PathAddresses {
  uint16_t local_port = 0;
  uint16_t peer_port = 0;
  wire::AddressBytes local{};
  wire::AddressBytes peer{};
};

// The queue pair is ready. Connecting side: with the HelloAck that decoded; accepting side:
// without.
struct Established {
  std::optional<wire::Message> hello_ack;
  uint32_t reads_out_max = 1;                   // RDMA reads we may have in flight
  uint32_t reads_in_max = 1;                    // RDMA reads the peer may have in flight
  std::optional<PathAddresses> addresses = {};  // absent: those of the configuration
};
// No connection; the provider keeps the cause. `another_way`: of a move [12] whoever follows its peer
// can try it with another queue pair, and whoever is followed can be come back to once more.
struct ConnectFailed {
  bool another_way = false;
};

// --- the wire ---

// A message that decoded, in the oldest posted receive buffer. Its payload, if any, lies in that
// buffer.
struct MessageArrived {
  wire::Message message;
  ReceiveBuffer buffer{};
  uint32_t payload_offset = 0;
  uint32_t payload_length = 0;
  std::optional<uint32_t> invalidated_key;  // the Send invalidated this key of ours
  // RdmaWrCompl: so much of our oldest SinkAvail has been written, if the fabric can tell.
  uint64_t written = ~uint64_t{0};
};
struct MessageRefused {     // what arrived is no message
  const char* reason = "";  // a static text that names field and fault
};
struct SendFinished {};   // the oldest unfinished Send has left; its gathered memory is ours again
struct ReadFinished {};   // the oldest unfinished Read is placed
struct WriteFinished {};  // the oldest unfinished Write has left

// The queue pair has left the ready state and all its work is flushed: no byte moves any more. Last
// input of the wire. `clean`: the peer ended it in order, or we did.
struct ConnectionLost {
  bool clean = false;
  bool fabric_error = false;  // not the peer but the queue pair failed (bad key, device)
  bool reset = false;         // the fabric says that the peer broke it off
};

// --- the application ---

// One contiguous piece of a send operation, in order; `more` if another piece of the same operation
// follows at once. A zero-length operation is one piece of length 0.
struct AskSend {
  OperationRange piece;
  bool more = false;
  bool exposable = false;  // the peer may be shown this memory
  bool copyable = true;    // the processor may read it
  Path path = Path::kByThreshold;
  CompleteAt complete_at = CompleteAt::kReusable;
  uint64_t zcopy_min = 0;  // the threshold in force for this operation
  bool adaptive = false;   // that one is only where learning starts; one piece by threshold teaches
  bool urgent = false;     // the operation's last byte is urgent; no piece of it is empty
  uint32_t sends = 1;      // so many of the application's as one: with several it needs no company
};

// One contiguous piece of a receive operation, in order; `more` as above.
struct AskReceive {
  OperationRange piece;
  bool more = false;
  bool wait_all = false;
  bool placeable = false;  // RDMA may write to this memory
  bool shown = true;       // the peer may be told of it, and write there itself
  // Takes bytes that came in messages, and ends, with what it has, before those of a SrcAvail.
  bool until_advert = false;
  Path path = Path::kByThreshold;
  uint64_t zcopy_min = 0;
};

// `outcome` is kCancelled or kDeadlineExceeded. Unknown operations are ignored: they have ended
// already. kIfNotStarted asks the peer for what it was shown, and aborts when cancel_grace has
// passed without an end; kEndShort does so too, and where bytes of a send have left it ends behind
// them. With kAbortConnection the operation has ended when the step has, or the connection ends,
// whatever the peer does.
struct AskCancel {
  OperationId operation{};
  CancelMode mode = CancelMode::kIfNotStarted;
  Outcome outcome = Outcome::kCancelled;
};

// The modes wanted from now on. For the half in which we are the sink only kBuffered and kPipelined
// differ from kAutomatic in more than degree: never ask for an end of Buffered, hint at Pipelined.
struct AskMode {
  ModeWish send = ModeWish::kAutomatic;
  ModeWish receive = ModeWish::kAutomatic;
};

// Waits until the peer announces an urgent byte; each that is announced finishes one such
// operation. Ends with end_of_stream when the peer has shut down.
struct AskUrgent {
  OperationId operation{};
};

// From now on ReportReadiness says what the application could do, and each change of it.
struct WatchReadiness {};

struct AskShutdown {  // write side; finishes when DisConn has left
  OperationId operation{};
};
// At most once. Graceful: sends drain, receives end with kShutDown, DisConn, the peer's DisConn,
// then kDone; at the linger limit it turns to an abort. Abort: everything pending ends with
// kLocalAbort. The close operation ends last: with the root cause, or with kDone when an abort was
// what it asked for. A graceful one may be followed by one that aborts.
struct AskClose {
  OperationId operation{};
  bool abort = false;
};

// Moves the connection to a new queue pair [12]: the peer connects to `port` of ours, where the
// provider listens. Finishes with kDone when it carries data again; not begun by `until`, it ends
// with kDeadlineExceeded and nothing has changed; begun and not over by then, the connection ends.
// kUnsupported towards a peer that may not know SuspComm.
struct AskSuspend {
  OperationId operation{};
  uint16_t port = 0;
  Time until = kTimeInfinite;
};

// --- answers ---

// To Expose and Withdraw, before any other input.
struct Exposed {
  AdvertId advert{};
  RemoteRange range;
};
struct ExposeFailed {
  AdvertId advert{};
};
// To PrepareReceives, before any other input but the answers to Expose. Not `done`: there is no
// memory, or buffers of a size before the present one are still in use.
struct ReceivesPrepared {
  bool done = false;
};
// The key of this advert is dead: the peer cannot reach the memory any more. Follows Withdraw,
// perhaps after other inputs.
struct Withdrawn {
  AdvertId advert{};
};

struct TimerFired {
  Timer timer{};
};

using Input =
    std::variant<AskConnect, HelloArrived, HelloRefused, Established, ConnectFailed, MessageArrived,
                 MessageRefused, SendFinished, ReadFinished, WriteFinished, ConnectionLost, AskSend,
                 AskReceive, AskUrgent, AskCancel, AskMode, WatchReadiness, AskShutdown, AskClose,
                 AskSuspend, ReceivesPrepared, Exposed, ExposeFailed, Withdrawn, TimerFired>;

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_INTERFACE_INPUT_H_
