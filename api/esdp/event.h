#ifndef ESDP_EVENT_H_
#define ESDP_EVENT_H_

#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "esdp/address.h"
#include "esdp/status.h"

// What a completion says. The rules of completion (the contract) are in socket.h.

namespace esdp {

// Names one accepted operation of one Context. Generation tagged: an old one is never mistaken for
// a new one.
enum class OpId : uint64_t { kNone = 0 };
// Names one socket of one Context, also after its handle is gone.
enum class SocketId : uint64_t { kNone = 0 };

enum class EventType : uint8_t {
  kNone,
  kConnect,
  kAccept,
  kSend,
  kRecv,
  kSendV,
  kRecvV,
  kShutdown,
  kClose,
  kUrgent,  // of Socket::AwaitUrgent
  kSuspend,
  kPoll,  // of Socket::Poll
  kSendFile,
  kRecvFile
};
const char* ToString(EventType type);

// Bits of Event::flags.
enum EventFlag : uint32_t {
  kTerminal = 1u << 0,   // the last event of its operation: what it lent to the library is the
                         // application's again
  kMore = 1u << 1,       // not the last: a multi-shot Accept goes on
  kEof = 1u << 2,        // receive: the peer has shut down, and no byte is left after these
  kWaitAll = 1u << 3,    // receive: it was asked to be filled
  kZeroCopy = 1u << 4,   // some of its bytes went by RDMA
  kCopied = 1u << 5,     // some of its bytes went in messages, by way of private buffers
  kCancelled = 1u << 6,  // ended by Cancel or by its deadline
  kPeerReset = 1u << 7,  // ended because the peer went away without shutting down
  kUrgent = 1u << 8,     // receive: its last byte is urgent; AwaitUrgent: the peer sends one
  kWritten = 1u << 9,    // receive: some of its bytes were written by the peer, see show_receives
};

// An Event is one completion: a plain value that owns nothing.
//
//   Owns:     nothing. The buffer of a terminal event is the application's again.
//   Threads:  a value.
//   Blocks:   -
//   Units:    bytes.
//   Errors:   `code`, `sys_errno` and `kind` tell the operation's own result; status() adds the
//   text.
struct Event {
  EventType type = EventType::kNone;
  absl::StatusCode code = absl::StatusCode::kOk;
  ErrorKind kind = ErrorKind::kNone;
  uint32_t flags = 0;
  int32_t sys_errno = 0;
  uint32_t detail = 0;  // names the text of status(), one of the last 4096 different ones
  uint64_t cookie = 0;  // the application's own, from OpArgs
  OpId op = OpId::kNone;
  SocketId socket = SocketId::kNone;
  uint64_t bytes = 0;            // moved; valid also with an error. kPoll: what holds, of PollMask
  uint64_t stream_offset = 0;    // of the operation's first byte in its direction of the socket
  uint64_t bytes_zero_copy = 0;  // of `bytes`, by RDMA
  SocketId accepted = SocketId::kNone;  // kAccept: hand it to Context::TakeAccepted
  Address accepted_peer;  // kAccept; of an error: the peer that the text of status() names
  // kSendFile: behind the last byte that went, in the range of this index. kRecvFile: behind the
  // last one that was written; where a sync has failed, behind the last one that was synced.
  uint64_t file_offset = 0;
  uint32_t file_range = 0;

  bool ok() const { return code == absl::StatusCode::kOk; }
  bool terminal() const { return (flags & kTerminal) != 0; }
  bool eof() const { return (flags & kEof) != 0; }
  // The result as a Status with text and detail. Allocates for an error. An event that is kept
  // until the process has seen 4096 other texts (the addresses of peers aside) has that of its
  // kind.
  absl::Status status() const;
};
static_assert(std::is_trivially_copyable_v<Event>);

}  // namespace esdp

#endif  // ESDP_EVENT_H_
