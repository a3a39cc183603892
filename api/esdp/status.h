#ifndef ESDP_STATUS_H_
#define ESDP_STATUS_H_

#include <cstdint>

#include "absl/status/status.h"

// Every error of the library: who causes it and what to do next. Calls answer with absl::Status;
// the code says what kind of answer fits, ErrorKind tells similar ones apart, and the text says
// what happened and what to do.
//
// Nothing here prints, aborts or throws.

namespace esdp {

enum class ErrorKind : uint16_t {
  kNone = 0,

  // The caller's own: nothing has changed, no event will come.
  kInvalidArgument,  // InvalidArgument, EINVAL: an argument is wrong; the text names it
  kBadHandle,        // NotFound, EBADF: a handle that is empty, unknown or has ended
  kBadRange,         // OutOfRange, EFAULT: a range that does not lie inside its region
  kWrongState,       // FailedPrecondition, ENOTCONN: not (yet, any more) possible in this
                     // state
  kShutDown,         // FailedPrecondition, EPIPE: posted after or pending at Shutdown or Close
  kBusy,             // FailedPrecondition, EBUSY: operations still use it; wait for their events
  kAfterFork,  // FailedPrecondition, EPERM: opened before fork(); open a Context of your own in the
               // child
  kUnsupported,  // Unimplemented, EOPNOTSUPP: this fabric or version cannot

  // Try again later: nothing has changed, no event will come.
  kQueueFull,     // ResourceExhausted, EAGAIN: every slot of the event queue is taken or promised:
                  // dequeue, then post again
  kSocketWindow,  // ResourceExhausted, EAGAIN: the bounce pool of SendCopy is in use:
                  // dequeue, then post again
  kWouldBlock,  // ResourceExhausted, EAGAIN: a call of a Stream that was not to wait would have to
  kMemory,  // ResourceExhausted, ENOMEM: a limit of memory or registration; the text names it, its
            // use and the cure. Also an allocation that failed: no call throws. In an event: the
            // connection ended, because its protocol found no memory

  // An operation ended so because somebody asked.
  kCancelled,         // Cancelled, ECANCELED: Cancel or Wake
  kSignal,            // Cancelled, EINTR: a signal interrupted a wait; no event was consumed
  kDeadlineExceeded,  // DeadlineExceeded, ETIMEDOUT: its deadline passed
  kLocalAbort,  // Aborted, ECONNABORTED: this side aborted the connection or dropped the socket

  // The world's.
  kAddressInUse,      // AlreadyExists, EADDRINUSE: another listener has the port
  kRefused,           // Unavailable, ECONNREFUSED: nobody listens there
  kRejected,          // Unavailable, ECONNREFUSED: somebody listens and would not have us
  kUnreachable,       // Unavailable, EHOSTUNREACH: no route, or no such address
  kHandshakeRefused,  // DataLoss, EPROTO: the peer does not speak SDP as we can
  kPeerReset,     // Aborted, ECONNRESET: the peer went away without shutting down; where it said
                  // why, with Terminate, the text tells what it complains of
  kPeerSilent,    // Unavailable, ETIMEDOUT: keep-alive gave up on the peer
  kPeerProtocol,  // DataLoss, EPROTO: the peer broke the protocol; the text names the rule
  kRemoteAccess,  // PermissionDenied, EACCES: a remote key, range or right was refused
  kFabric,        // Unavailable, ENODEV: the fabric failed
  kInternal,      // Internal, EIO: a fault of ours; the connection has ended

  // The file of a SendFile or RecvFile.
  kFile,     // DataLoss, EIO: it ends early, or its medium failed: Event::sys_errno is the system's
  kNoSpace,  // ResourceExhausted, ENOSPC: its file system is full, or a quota or limit of its size
             // is reached; free some, and resume behind Event::file_offset
};

// What a Status of this library carries beside its text, under the payload type name "esdp.Detail":
// both in digits, a space between.
struct ErrorDetail {
  ErrorKind kind = ErrorKind::kNone;
  int32_t sys_errno = 0;
};

// The detail of a status; all zero for OK and for a status that is none of ours.
ErrorDetail DetailOf(const absl::Status& status);
inline ErrorKind KindOf(const absl::Status& status) { return DetailOf(status).kind; }

const char* ToString(ErrorKind kind);  // "kQueueFull" -> "queue full"

}  // namespace esdp

#endif  // ESDP_STATUS_H_
