#ifndef ESDP_STREAM_H_
#define ESDP_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "esdp/address.h"
#include "esdp/context.h"
#include "esdp/region.h"
#include "esdp/socket.h"
#include "esdp/stream_values.h"

// Blocking reads and writes from memory that nobody registered, for programs that are written as
// for TCP. docs/guide.md, "Blocking calls", has the first program.

namespace esdp {

namespace sockets {
class BlockingListener;
class BlockingStream;
}  // namespace sockets

// One end of a connected stream for callers that block and register nothing.
//
//   Owns:     its Socket and private memory: a send buffer, and 256 KiB to read ahead, each from
//             its first use on. Moves, does not copy. Of the caller's memory nothing is registered or
//             pinned once a call has returned. Its destructor aborts, unless Close was called.
//   Threads:  any. One reader and one writer go on in parallel, further ones wait for their turn.
//             Close and Abort may be called while others wait inside, who then come back with an
//             error. Not while another thread moves or destroys it.
//   Blocks:   Read and Write, where they are to wait; Connect, Over, Close. A thread that waits
//             moves the protocol meanwhile, spins for a short time, and sleeps.
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
  // Over a TCP socket that is connected already: Socket::ConnectOver, or ListenOver and Accept. The
  // deadline of kConnects is 30 s unless told; kAccepts waits 10 s for the peer's first word.
  static absl::StatusOr<Stream> Over(Context& context, int descriptor, StreamSide side,
                                     const StreamOptions& options = {},
                                     absl::Time deadline = absl::InfiniteFuture());
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

  // With UrgentBytes::kApart: the last urgent byte, ahead of what is unread before it, once. It can
  // be had until a Read has gone on behind it. `peek`: it stays. Does not wait: ResourceExhausted
  // (kWouldBlock) where one is announced and has not come, or more than 256 KiB are unread before
  // it; InvalidArgument where there is none.
  absl::StatusOr<std::byte> ReadUrgent(bool peek = false);
  // Whether the place of an urgent byte is next; never with kAmongOthers. Does not wait.
  absl::StatusOr<bool> AtUrgentMark();

  StreamReadiness readiness() const;
  // A descriptor that shows the readiness to poll, select and epoll as a TCP socket does, level- and
  // edge-triggered: POLLIN, POLLOUT, POLLPRI, POLLRDHUP, POLLHUP and POLLERR. Made at the first
  // call, from when on each change costs a system call; the Stream's, and closed with it. For
  // nothing but waiting: calls with wait = false do the rest. With Progress::kManual it changes as
  // the Context is moved on. ResourceExhausted (kMemory) where the system has none.
  absl::StatusOr<int> fd();
  // The same in a pair of UNIX stream sockets that the caller has made, in which nothing is on its
  // way: whatever leads to `shown` shows it from now on. Takes both descriptors over; `shown` may be
  // a duplicate. FailedPrecondition (kWrongState) where fd() or ShowIn was called before, and then
  // both stay the caller's.
  absl::Status ShowIn(int shown, int hidden);
  // Whether what arrives on top of unread bytes is a new edge there, as it is at first: each such
  // arrival then costs a system call. Only who waits edge-triggered, or by SIGIO, needs it. May be
  // called before fd() and ShowIn; does not wait, and does nothing on an empty handle.
  void SetEdges(bool on);
  // What fd() or ShowIn has begun ends, and either may be called anew. After ShowIn: shown and
  // hidden, which are the caller's again, to move bytes through; nothing, and both are closed, where
  // the end of the peer was shown already, which no pair takes back. After fd(): nothing, and its
  // descriptor is closed.
  std::optional<std::pair<int, int>> StopShowing();

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
