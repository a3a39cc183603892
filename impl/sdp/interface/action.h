#ifndef ESDP_IMPL_SDP_INTERFACE_ACTION_H_
#define ESDP_IMPL_SDP_INTERFACE_ACTION_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "impl/base/time.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/interface/readiness.h"
#include "impl/sdp/wire/messages.h"

// What must be done, in this order, after a step.

namespace esdp::sdp {

// --- set-up and end
// ---------------------------------------------------------------------------------------------------

struct StartConnect {  // connecting side: the rendezvous request, with this Hello
  wire::Message hello;
  std::optional<uint16_t> port = {};  // of the peer's, instead of the one it was first reached at
};
struct AcceptConnection {  // accepting side: the positive answer, with this HelloAck
  wire::Message hello_ack;
};
struct RejectConnection {
  const char* reason = "";
};
// The old queue pair is gone: what follows happens on a new one [12].
struct ReplaceQueuePair {};
// The old queue pair is gone: hand in the Hello that arrives for this connection. Answered by
// AcceptConnection or, as often as need be, by RejectConnection.
struct AwaitHello {};
struct ReportConnected {};  // the connection carries data from now on; once
// Take the queue pair out of the ready state. `orderly`: posted Sends leave first. Answered by
// ConnectionLost. At most one of each kind; one that is not orderly may follow an orderly one that
// takes too long.
struct Disconnect {
  bool orderly = true;
  Outcome cause = Outcome::kDone;
  const char* reason = "";  // static text
};
// Without a queue pair the peer waits for this side to come back [12], and it has ended: connect to
// `port` with this Hello, on a queue pair of its own, and break that off. No answer.
struct Farewell {
  wire::Message hello;
  uint16_t port = 0;
};
// Nothing is left: no input but late application requests will follow. `cause` is the root cause,
// kDone for a clean end.
struct ReportClosed {
  Outcome cause = Outcome::kDone;
  const char* reason = "";
};

// --- the wire
// ---------------------------------------------------------------------------------------------------------

struct PostReceive {
  ReceiveBuffer buffer{};
  uint32_t bytes = 0;  // its size, header included
};
// Memory for so many receive buffers of that size. Answered by ReceivesPrepared; from then on
// buffers are posted there, those numbered higher no more, while others are still in use where they
// were posted before.
struct PrepareReceives {
  uint32_t bytes = 0;
  uint16_t buffers = 0;
};
// This buffer, which is not posted, is one more than are needed.
struct RetireReceive {
  ReceiveBuffer buffer{};
};

inline constexpr size_t kGatherMax = 5;

// One SDP message: header, then `copied_bytes` from the start of `send_buffer`, then the gathered
// ranges. Only one of the two kinds of payload is used in a message. Sends leave in the order of
// these actions.
struct Send {
  Send() {}  // not the default: that would write zeros to the whole of it first
  wire::Message message;
  std::optional<SendBuffer> send_buffer;  // free again when this Send has finished
  uint32_t copied_bytes = 0;
  uint32_t gather_count = 0;
  std::array<OperationRange, kGatherMax> gather{};
  std::optional<uint32_t> invalidate_key;  // Send with Invalidate of this key of the peer's
};
struct Read {  // RDMA read from the peer into an operation's memory
  OperationRange target;
  RemoteRange source;
};
struct Write {  // RDMA write from an operation's memory into the peer's
  OperationRange source;
  RemoteRange target;
};

// --- memory
// -----------------------------------------------------------------------------------------------------------

struct CopyIn {  // from a receive buffer to an operation; done when the step's actions have run
  ReceiveBuffer buffer{};
  uint32_t buffer_offset = 0;
  OperationRange target;
};
struct CopyOut {  // from an operation into a send buffer; done when the step's actions have run
  OperationRange source;
  SendBuffer buffer{};
  uint32_t buffer_offset = 0;
};
struct Expose {  // answered at once by Exposed or ExposeFailed
  AdvertId advert{};
  OperationRange range;
  Right right = Right::kRemoteRead;
};
// Answered by Withdrawn. When the connection is lost the adverts still exposed get no Withdraw: the
// provider lets go of them before it hands in ConnectionLost.
struct Withdraw {
  AdvertId advert{};
  bool already_invalidated =
      false;  // the peer's Send has killed the key: nothing is left to invalidate on the fabric
};

// --- the application
// --------------------------------------------------------------------------------------------------

// Exactly one for every operation that was asked for, and the last word on it.
struct FinishOperation {
  OperationId operation{};
  Outcome outcome = Outcome::kDone;
  bool urgent = false;  // receive: its last byte is urgent; AskUrgent: an urgent byte is announced
  bool end_of_stream = false;    // receive: the peer has shut down and no byte is left after these
  bool written = false;          // receive: the peer says to have written some of its bytes
  uint64_t bytes = 0;            // moved, also with an error
  uint64_t bytes_zero_copy = 0;  // of them by RDMA
  uint64_t stream_offset = 0;    // of the operation's first byte in its direction
};

// It differs from the one before, or is the first behind WatchReadiness. The last of its step.
struct ReportReadiness {
  Readiness readiness;
};

struct SetTimer {  // replaces an earlier setting
  Timer timer{};
  Time at{};
};
struct ClearTimer {
  Timer timer{};
};

using Action =
    std::variant<StartConnect, AcceptConnection, RejectConnection, ReplaceQueuePair, AwaitHello,
                 Farewell, ReportConnected, Disconnect, ReportClosed, PostReceive, PrepareReceives,
                 RetireReceive, Send, Read, Write, CopyIn, CopyOut, Expose, Withdraw,
                 FinishOperation, ReportReadiness, SetTimer, ClearTimer>;

// Those of one step. The caller keeps one for all, so that a steady state allocates nothing.
using Actions = std::vector<Action>;

[[gnu::noinline, gnu::cold]] inline void MakeRoom(Actions& actions) {
  actions.reserve(actions.empty() ? 16 : 2 * actions.size());
}

// One more, to be filled in. The vector's own way to grow would be in the way of each of them.
template <typename Kind>
[[gnu::always_inline]] inline Kind& Append(Actions& actions) {
  if (actions.size() == actions.capacity()) MakeRoom(actions);
  if (actions.size() == actions.capacity()) __builtin_unreachable();
  return *std::get_if<Kind>(&actions.emplace_back(std::in_place_type<Kind>));
}

// `armed`: the deadline that the timer is set to.
inline void ArmTimer(Timer timer, Time deadline, Time& armed, Actions& actions) {
  if (deadline == armed) return;
  armed = deadline;
  if (deadline == kTimeInfinite) {
    actions.emplace_back(ClearTimer{timer});
  } else {
    actions.emplace_back(SetTimer{timer, deadline});
  }
}

// Ends an operation that has moved no byte.
[[gnu::noinline]] inline void FinishNow(OperationId operation, Outcome outcome, Actions& actions) {
  FinishOperation& finish = Append<FinishOperation>(actions);
  finish.operation = operation;
  finish.outcome = outcome;
}

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_INTERFACE_ACTION_H_
