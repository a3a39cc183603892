#ifndef ESDP_STREAM_H_
#define ESDP_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "esdp/address.h"
#include "esdp/context.h"
#include "esdp/operation.h"
#include "esdp/options.h"
#include "esdp/region.h"
#include "esdp/socket.h"
#include "esdp/stats.h"

// Blocking reads and writes from memory that nobody registered, for programs that are written as
// for TCP. docs/guide.md, "Blocking calls", has the first program.

namespace esdp {

namespace sockets {
class BlockingListener;
class BlockingStream;
}  // namespace sockets

// Sizes in bytes.
struct StreamOptions {
  // From this size on a Write goes zero-copy, its memory registered for the call, and a Read takes
  // what the peer shows straight into the caller's memory. Absent: 64 KiB where a registration is
  // cheap (qpip, sim), 512 KiB on an RDMA device. kNever: all is copied.
  std::optional<uint64_t> zcopy_min = {};
  // Registered at a time, and so many of them: what one call has registered at most, however long it
  // is. 4096 .. 2^30, and 1 .. 16.
  size_t chunk_bytes = 256 * 1024;
  size_t chunks_max = 4;
  // What Write takes before the peer has read it: it promises what a socket's buffer does. Memory of
  // the Stream's own, from the first Write on. 65,536 .. 2^30.
  size_t send_buffer_bytes = 1024 * 1024;
  // A zero-copy Write that makes no progress for so long takes its memory back from the peer, and
  // copies what is left. Zero: all is copied.
  absl::Duration patience = absl::Milliseconds(20);
  // True: a signal does not end a wait. False: see Errors below.
  bool restart_on_signal = false;
};

struct ReadArgs {
  size_t min = 1;     // bytes to wait for; no more than there is room for. 0 is as wait = false
  bool peek = false;  // the bytes stay in the stream: of those, up to 256 KiB
  bool wait = true;   // false: only what is here
  absl::Time deadline = absl::InfiniteFuture();  // on Context::Now()
};

struct WriteArgs {
  bool wait = true;     // false: only what the send buffer has room for, copied; not of a Slice
  bool urgent = false;  // its last byte is urgent
  Path path = Path::kByThreshold;
  absl::Time deadline = absl::InfiniteFuture();
};

// What could be done now without a wait.
struct StreamReadiness {
  bool readable = false;    // bytes, or the end of the stream
  bool writable = false;    // bytes would be taken
  bool urgent = false;      // the peer has announced an urgent byte
  bool peer_ended = false;  // nothing comes behind what is readable
  bool failed = false;      // the connection has ended otherwise than in order
  uint64_t bytes = 0;       // that wait to be read; 0 at the end
};

struct StreamStats {
  SocketStats socket;
  uint64_t registrations = 0;      // of memory of calls, made and undone
  uint64_t registered_bytes = 0;   // by these, in all
  uint64_t registered_now = 0;     // 0 outside of calls
  uint64_t patience_ran_out = 0;   // Writes that went on by copying
  uint64_t register_failures = 0;  // calls that copied because memory could not be registered
  uint64_t read_ahead_bytes = 0;   // by way of private memory, of what the peer had shown
  uint64_t send_buffer_waits = 0;  // times that a Write waited for room in the send buffer
};

// One end of a connected stream for callers that block and register nothing.
//
//   Owns:     its Socket and private memory: a send buffer, and 256 KiB to read ahead, each from
//             its first use on. Moves, does not copy. Of the caller's memory nothing is registered or
//             pinned once a call has returned. Its destructor aborts, unless Close was called.
//   Threads:  any. One reader and one writer go on in parallel, further ones wait for their turn.
//             Close and Abort may be called while others wait inside, who then come back with an
//             error. Not while another thread moves or destroys it.
//   Blocks:   Read and Write, where they are to wait; Connect, Close. A thread that waits moves the
//             protocol meanwhile, spins for a short time, and sleeps.
//   Units:    bytes; times are on the clock of Context::Now().
//   Errors:   NotFound (empty handle, closed Context), InvalidArgument, the root cause where the
//             connection has failed, FailedPrecondition (kShutDown: after Close, or a Write behind
//             ShutdownWrite; kAfterFork), ResourceExhausted (kMemory). Where bytes have moved a call
//             returns their number, and the next one tells. Only if none has: DeadlineExceeded;
//             Cancelled (kSignal) where a signal has interrupted it; ResourceExhausted
//             (kWouldBlock) where it was not to wait.
//             A Write that is interrupted, or late, takes back what the peer is shown and waits for
//             that: at most the socket's cancel_grace, after which the connection is aborted. A
//             signal does not end the wait for one's turn.
//
// A Write that has returned may still be in the send buffer, as with TCP. Memory that another thread
// changes, or unmaps, during a call is as undefined as with any call.
class Stream {
 public:
  Stream();  // an empty handle
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  // The deadline is 30 s unless told. Errors as of the kConnect event.
  static absl::StatusOr<Stream> Connect(Context& context, const Address& address,
                                        const StreamOptions& options = {},
                                        absl::Time deadline = absl::InfiniteFuture());
  // Of a socket of this Context that is connected. FailedPrecondition (kWrongState) where it never
  // was. A socket that is refused is dropped, which aborts its connection.
  static absl::StatusOr<Stream> Of(Context& context, Socket connected,
                                   const StreamOptions& options = {});
  bool valid() const { return state_ != nullptr; }

  // At least args.min bytes, or fewer where the stream ends; 0 at its end.
  absl::StatusOr<size_t> Read(absl::Span<std::byte> memory, const ReadArgs& args = {});
  // The same into several pieces, one after the other; args.min counts all of them.
  absl::StatusOr<size_t> ReadV(absl::Span<const absl::Span<std::byte>> pieces,
                               const ReadArgs& args = {});
  // All of it, unless it is interrupted, late, or not to wait.
  absl::StatusOr<size_t> Write(absl::Span<const std::byte> bytes, const WriteArgs& args = {});
  absl::StatusOr<size_t> WriteV(absl::Span<const absl::Span<const std::byte>> pieces,
                                const WriteArgs& args = {});
  // From registered memory of the same Context, which costs no registration: all of it, once the
  // memory may be written again.
  absl::StatusOr<size_t> Write(const Slice& slice, const WriteArgs& args = {});

  StreamReadiness readiness() const;

  // Nothing is written any more; the peer reads what was, and then the end. Does not wait.
  absl::Status ShutdownWrite();
  // Ends both directions. Waits until the peer has all that was written and has shut down too, or
  // `deadline` has passed, then aborts (DeadlineExceeded). What is unread goes.
  absl::Status Close(absl::Time deadline = absl::InfiniteFuture());
  // Ends it at once; the peer learns that it was aborted.
  void Abort();

  absl::Status SetOptions(const StreamOptions& options);
  StreamOptions options() const;
  StreamStats Stats() const;
  // To set and ask its options, and for AwaitUrgent. What is sent or received there comes out of
  // turn. Lives as long as the Stream.
  Socket& socket();

 private:
  friend class StreamListener;
  std::unique_ptr<sockets::BlockingStream> state_;
};

// A listener whose Accept blocks.
//
//   Owns:     its Socket. Moves, does not copy. Its destructor closes it.
//   Threads:  any; several may accept.
//   Blocks:   Accept.
//   Units:    –
//   Errors:   Listen: as Socket::Bind and Socket::Listen. Accept: DeadlineExceeded, Cancelled
//             (kSignal), FailedPrecondition (kShutDown: after Close).
class StreamListener {
 public:
  StreamListener();
  StreamListener(StreamListener&&) noexcept;
  StreamListener& operator=(StreamListener&&) noexcept;
  ~StreamListener();

  static absl::StatusOr<StreamListener> Listen(Context& context, const Address& address,
                                               int backlog = 128);
  // The socket's options are the listener's.
  absl::StatusOr<Stream> Accept(const StreamOptions& options = {},
                                absl::Time deadline = absl::InfiniteFuture());
  Address local() const;
  void Close();

 private:
  std::unique_ptr<sockets::BlockingListener> state_;
};

}  // namespace esdp

#endif  // ESDP_STREAM_H_
