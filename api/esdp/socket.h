#ifndef ESDP_SOCKET_H_
#define ESDP_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "esdp/address.h"
#include "esdp/event.h"
#include "esdp/file.h"
#include "esdp/operation.h"
#include "esdp/options.h"
#include "esdp/region.h"
#include "esdp/stats.h"

// The contract of completion; tests/sockets holds the library to it, rule by rule:
//   1  A post that returns OK is followed by exactly one event with kTerminal for its OpId.
//   2  A post that fails produces no event and takes no reference.
//   3  The buffer is the library's from OK to that event; lists of slices are copied at post.
//   4  Terminal events come in posting order per socket and direction, except that an operation
//      that moved no byte and ends Cancelled or DeadlineExceeded may overtake.
//   5  Send, OK: bytes is the length. Send, error: bytes are known accepted (kReusable) or
//      delivered (kDelivered).
//   6  Recv, OK: 1..length bytes; with kWaitAll all, unless kEof. End of stream: OK, kEof, 0 bytes
//      (or a short kWaitAll); all later receives the same.
//      An urgent byte ends the receive that gets it, as its last: kUrgent, also under kWaitAll.
//   7  The first error of a socket ends every pending operation with that root cause; later posts
//      fail with it at once.
//   8  Cancel is a request; the terminal event tells what became of it. A receive under kWaitAll
//      that is cancelled with a part of its bytes ends Cancelled, and `bytes` tells the part: it is
//      in the buffer and has left the stream. One that an urgent byte has ended is not cancelled
//      any more: kUrgent comes with OK, and an urgent byte that has not come is the next one's.
//   9  A passed deadline is a cancel with DeadlineExceeded, by the socket's DeadlinePolicy.
//  10  Close comes last: afterwards the SocketId is never heard of again.
//  11  Memory that the peer could reach is out of its reach before the terminal event is delivered.
//  12  A queue that operations name does not close; one that is destroyed aborts their connections,
//      those excepted that only a Close names: it goes on by itself.

namespace esdp {

namespace sockets {
class SocketState;
class SocketAccess;
}  // namespace sockets

// A Socket is one end of a stream, or a listener.
//
//   Owns:     the connection. Moves, does not copy. Its destructor is Close(kAbort) in the
//             background, unless Close was called: that then goes on by itself.
//   Threads:  any. Operations posted by two threads go out in an order that neither decides.
//   Blocks:   never: every wait is an event.
//   Units:    bytes.
//   Errors:   every post: NotFound (empty handle, closed Context), InvalidArgument (empty slice, a
//             queue of another Context, an unknown flag, an urgent send of no byte),
//             ResourceExhausted (kQueueFull: dequeue first; kMemory: too many operations),
//             FailedPrecondition (kWrongState: not connected or not listening; kShutDown: after
//             Shutdown or Close; kAfterFork), or the root cause if the connection has ended.
class Socket {
 public:
  Socket() = default;
  Socket(Socket&&) noexcept = default;
  Socket& operator=(Socket&&) noexcept;
  ~Socket();

  bool valid() const { return state_ != nullptr; }
  SocketId id() const;

  // Sets the local address, for Listen or Connect. FailedPrecondition once one of these was called.
  // InvalidArgument for another family.
  absl::Status Bind(const Address& address);
  // Begins to take connections; where `backlog` of them wait for an Accept, further ones are
  // rejected, but for those whose set-up has begun. One that ends before an Accept takes it goes,
  // and is counted in Stats. AlreadyExists when the port is taken.
  absl::Status Listen(int backlog);

  // Event kConnect. Refusals, unreachable or silent peers are told there; the default deadline is
  // 30 s.
  absl::StatusOr<OpId> Connect(const Address& address, const OpArgs& args);

  // The same two over a TCP socket that is connected already, from which nobody has read and which
  // the peer hands over likewise: on qpip, which an `auto` Context has too. Bind does not count. The
  // descriptor is duplicated, to a number above its own, and stays the caller's to close; nothing
  // may be read or written there any more. InvalidArgument where it is no such socket, Unimplemented
  // where no fabric takes one.
  //
  // ListenOver makes this a listener for that one connection, of which the peer is the connecting
  // side: an Accept takes it, or ends with what has become of its set-up (kPeerProtocol where the
  // peer does not speak iWARP or SDP), or of itself before an Accept was there, as later ones do.
  absl::Status ListenOver(int descriptor);
  absl::StatusOr<OpId> ConnectOver(int descriptor, const OpArgs& args);

  // Events kAccept: one for each connection with kMore, the last with kTerminal. `count` 0: until
  // cancelled or the socket is closed. Each event's `accepted` goes to Context::TakeAccepted.
  absl::StatusOr<OpId> Accept(int count, const OpArgs& args);

  absl::StatusOr<OpId> Send(const Slice& slice, SendFlags flags, const OpArgs& args);
  absl::StatusOr<OpId> SendV(absl::Span<const Slice> slices, SendFlags flags, const OpArgs& args);
  // As many Sends, or Recvs, as there are slices, in order and in one turn; small sends share messages.
  // Each is an operation with an event of its own; `ops` is empty, or takes their names. Returns how
  // many were accepted, at least one: fewer where the queue or the Context has room for no more, or the
  // connection ends. InvalidArgument, and nothing is posted: no slice, or one that is refused; room for
  // some of the names only.
  absl::StatusOr<size_t> SendBatch(absl::Span<const Slice> slices, SendFlags flags,
                                   const OpArgs& args, absl::Span<OpId> ops = {});
  absl::StatusOr<size_t> RecvBatch(absl::Span<const Slice> slices, RecvFlags flags,
                                   const OpArgs& args, absl::Span<OpId> ops = {});
  // The bytes are taken before it returns. ResourceExhausted (kSocketWindow) when they need the
  // bounce pool, as up to SocketOptions::coalesce_max with nothing before them do not, and it has
  // no room now: each socket has up to 64 KiB, whatever others hold. InvalidArgument for more.
  absl::StatusOr<OpId> SendCopy(absl::Span<const std::byte> bytes, SendFlags flags,
                                const OpArgs& args);
  // The regions must be registered with local_write. No two receives at a time into the same bytes,
  // whatever regions they name: a debug build of the library refuses the second, with
  // InvalidArgument.
  absl::StatusOr<OpId> Recv(const Slice& slice, RecvFlags flags, const OpArgs& args);
  absl::StatusOr<OpId> RecvV(absl::Span<const Slice> slices, RecvFlags flags, const OpArgs& args);
  // Filled by copying before the event is delivered; `bytes` must stay until then. Takes no room of
  // the bounce pool, however long it waits.
  absl::StatusOr<OpId> RecvCopy(absl::Span<std::byte> bytes, RecvFlags flags, const OpArgs& args);
  template <size_t kExtent>
  absl::StatusOr<OpId> RecvCopy(std::span<std::byte, kExtent> bytes, RecvFlags flags,
                                const OpArgs& args) {
    return RecvCopy(absl::MakeSpan(bytes.data(), bytes.size()), flags, args);
  }

  // As one Send or receive would, of parts of files: see file.h. Events kSendFile, kRecvFile.
  absl::StatusOr<OpId> SendFile(const FilePlan& plan, const OpArgs& args);
  absl::StatusOr<OpId> RecvFile(const FileSink& sink, const OpArgs& args);

  // Event kUrgent when the peer announces an urgent byte, which may be long before the byte itself
  // comes in its place in the stream. Each urgent byte is told once, in order, also one that was
  // announced while nobody waited; kEof when the peer has shut down and none is left to tell. An
  // urgent send that is announced has begun and cannot be cancelled any more. Ends with Cancelled
  // or DeadlineExceeded when it is cancelled or late, and takes no announcement with it: the next
  // AwaitUrgent hears of it. Otherwise with the root cause, as a receive does.
  absl::StatusOr<OpId> AwaitUrgent(const OpArgs& args);

  // Event kPoll once any of the bits of `mask` (PollMask) holds, at once where one does; its `bytes`
  // are those that hold, of all that were asked for, and kPollFailed. Level-triggered: it takes
  // nothing away. Bytes that a receive waits for are none that are readable. A listener is readable
  // while a connection waits that no Accept is there for, and nothing else; readable and failed
  // where none can come (ListenOver). Where the connection has ended, or ends, it succeeds too and
  // says so in its bits; after Close it ends with kShutDown.
  // Cancelled and DeadlineExceeded when it is cancelled or late. InvalidArgument for a mask without a
  // bit, or with one that means nothing.
  absl::StatusOr<OpId> Poll(uint32_t mask, const OpArgs& args);

  // Moves the connection to a new queue pair: what is in process comes to rest, the old queue pair
  // ends, and the peer connects anew to a port that is opened for it; one that was made over a TCP
  // socket by the first fabric of both Contexts that leads there, see transport(). Streams,
  // operations and adverts outlive it; local() and peer() stay. Bytes that nobody receives, on
  // either side, can hold it up. Event kSuspend when data flows again. Its errors, after which the
  // connection is as before: Unimplemented (the peer lets nobody move it, ContextOptions::peer_moves,
  // or one side is as_deployed), FailedPrecondition (kShutDown: it is being closed), Cancelled, and
  // DeadlineExceeded, when it could not begin in time. Cancel does nothing once the peer is told; a
  // move that is not over at the deadline (30 s, unless told) then ends the connection with
  // kPeerSilent. The post: FailedPrecondition (kWrongState: not connected; kBusy: one is under way).
  absl::StatusOr<OpId> Suspend(const OpArgs& args);

  // Ends the sending direction after all that was posted. Event kShutdown when the peer has been
  // told, or DeadlineExceeded: what was posted goes on then, unless the DeadlinePolicy aborts.
  // Cancel does nothing, or aborts the connection.
  absl::StatusOr<OpId> Shutdown(const OpArgs& args);
  // Event kClose, the last of this socket. kGraceful: sends drain until args.deadline or the linger
  // option, then it aborts; receives end with kShutDown. kAbort: everything ends with kLocalAbort,
  // also a graceful Close that was called before, whose event then comes first. Cancel does
  // nothing, or makes it abort.
  absl::StatusOr<OpId> Close(CloseMode mode, const OpArgs& args);

  // Asks an operation to end. NotFound when it is unknown or has ended. What has not begun ends
  // with Cancelled. kIfNotStarted lets what has partly gone finish, and asks the peer for memory
  // that it is shown: see SocketOptions::cancel_grace. kAbortConnection asks the peer for nothing:
  // what has begun or is shown takes the connection down at once, whatever the peer does (kLocalAbort).
  absl::Status Cancel(OpId op, CancelMode mode = CancelMode::kIfNotStarted);
  // Asks every operation of a direction; returns how many were asked.
  absl::StatusOr<int> CancelAll(Direction direction);

  // InvalidArgument names the legal range. FailedPrecondition: fixed once connected or listening.
  absl::Status SetOption(const Option& option);
  // What Connect and Listen go by: durations as they were rounded. A device that has less than a
  // number of buffers asks for gives what it has.
  absl::StatusOr<Option> GetOption(OptionName name) const;

  Transport transport() const;  // kNone before Connect or Listen, and where neither ever was
  SocketStats Stats() const;
  Address local() const;
  Address peer() const;

 private:
  friend class sockets::SocketAccess;
  std::shared_ptr<sockets::SocketState> state_;
};

}  // namespace esdp

#endif  // ESDP_SOCKET_H_
