#ifndef ESDP_IMPL_FABRIC_PORT_H_
#define ESDP_IMPL_FABRIC_PORT_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "impl/base/time.h"
#include "impl/fabric/types.h"

// The port: reliable connected queue pairs, whatever carries them. CONTRACT.md, beside this file,
// states what an implementation must do; tests/fabric/contract_test.cc holds every implementation
// to it.

namespace esdp::fabric {

// A Fabric is one device, or its equivalent in software, opened once by one Context.
//
//   Owns:     queue pairs, registrations (not the memory), listeners, everything it hands out a
//             handle for.
//   Threads:  one caller at a time; the caller serialises. fd() may be waited on by any thread at
//             any time.
//   Blocks:   never. Answers arrive through Poll and PollRendezvous.
//   Units:    bytes; time on the clock of Now().
//   Errors:   a call that fails changes nothing. Every call's default answer is Unimplemented.
//             Unknown or stale handles give NotFound, wrong states FailedPrecondition, full queues
//             ResourceExhausted, bad ranges OutOfRange.
class Fabric {
 public:
  virtual ~Fabric() = default;
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  virtual const char* name() const = 0;  // "qpip", "sim", ...: a static text
  virtual const Limits& limits() const = 0;
  virtual Time Now() const = 0;

  // --- memory
  // ---------------------------------------------------------------------------------------------------------
  // Makes [base, base + length) usable in work requests. With remote rights, RegionKey names the
  // key a peer may use.
  virtual absl::StatusOr<RegionId> Register(std::byte* base, uint64_t length, Access access);
  // The same for memory that is mapped from a file without a name, from its `offset` on, as
  // MakeWritableMemory makes it: a fabric may pass the file on to a peer that may read the memory.
  // By default as Register. The descriptor is duplicated where it is needed.
  virtual absl::StatusOr<RegionId> RegisterShared(const SharedFile& file, std::byte* base,
                                                  uint64_t length, Access access);
  // The same for a dma-buf. In work requests and keys it has the addresses [base, base + length),
  // where nothing else lies; `base` and the offset are alike within a page. Unimplemented where the
  // fabric or the device has no way to it.
  virtual absl::StatusOr<RegionId> RegisterDmaBuf(const DmaBuf& buffer, std::byte* base,
                                                  uint64_t length, Access access);
  // FailedPrecondition while a window is bound to it or posted work names it.
  virtual absl::Status Deregister(RegionId region);
  // The region's own remote key, good on every queue pair of this fabric, for kRegionKey exposure.
  // `address` is that of the region's first byte in the key's space.
  virtual absl::StatusOr<RemoteRange> RegionKey(RegionId region);

  // Binds a window over exactly [address, address + length) of `region` for the peer of one queue
  // pair. The key is usable by the peer for messages posted after this call; it is hard to guess
  // and not reused soon.
  virtual absl::StatusOr<RemoteRange> Bind(QueuePairId queue_pair, RegionId region,
                                           std::byte* address, uint64_t length, Access access);
  // Withdraws a key of Bind without work on the queue pair. Legal only when the queue pair is not
  // connected.
  virtual absl::Status Unbind(QueuePairId queue_pair, uint32_t key);
  // So many bytes, from the first on and without a gap, the peer has written under a live key of
  // Bind; kWrittenUnknown where nobody can tell, as on every device.
  virtual uint64_t Written(QueuePairId queue_pair, uint32_t key) const;

  // --- queue pairs
  // ----------------------------------------------------------------------------------------------------
  virtual absl::StatusOr<QueuePairId> CreateQueuePair(const QueuePairOptions& options);
  // Flushes what is posted (those completions are still polled), then forgets the queue pair. A
  // connected one is broken off. No rendezvous event for it is polled afterwards.
  virtual absl::Status DestroyQueuePair(QueuePairId queue_pair);

  // Posts a batch, in order, all or nothing. Every accepted element completes exactly once, in
  // posting order within the send queue (kInvalidate included) and within the receive queue.
  // Receives may be posted before connecting.
  virtual absl::Status PostSend(QueuePairId queue_pair, absl::Span<const SendWork> batch);
  virtual absl::Status PostReceive(QueuePairId queue_pair, absl::Span<const ReceiveWork> batch);
  // The memory of posted receives that nothing has been written to may lose its content: its pages
  // go back to the system until they are written. Does nothing where memory is pinned.
  virtual void ReleaseUnusedReceives(QueuePairId queue_pair);

  // --- rendezvous
  // -----------------------------------------------------------------------------------------------------
  // Port 0 asks for a free port: ListenerAddress tells which. AlreadyExists when the port is taken.
  virtual absl::StatusOr<ListenerId> Listen(const Address& address, int backlog);
  virtual absl::StatusOr<Address> ListenerAddress(ListenerId listener) const;
  // Requests not yet answered are rejected.
  virtual absl::Status StopListening(ListenerId listener);
  // A listener for the one connection that `descriptor` is, a connected TCP socket from which
  // nothing of the peer's request has been read. It is duplicated, to a number above it, and
  // nothing else may read or write it any more. Its request comes as any listener's, or
  // kTurnedAway. InvalidArgument where it is no such socket.
  virtual absl::StatusOr<ListenerId> ListenOver(int descriptor);
  // Takes a local port for the Connect to `peer` to come, where its private data has to name it:
  // `local` is then the answer of this, with its address too where that has to be named.
  // Unimplemented where nobody compares.
  virtual absl::StatusOr<Address> ReserveAddress(QueuePairId queue_pair, const Address& local,
                                                 const Address& peer);
  // Answered by kEstablished or kConnectFailed, at `deadline` at the latest. A local address with
  // port 0 and zero bytes means "any".
  virtual absl::Status Connect(QueuePairId queue_pair, const Address& local, const Address& peer,
                               ConstBytes private_data, Time deadline);
  // The same over `descriptor`, a connected TCP socket on which this side has the first word. It
  // is duplicated as by ListenOver.
  virtual absl::Status ConnectOver(QueuePairId queue_pair, int descriptor, ConstBytes private_data,
                                   Time deadline);
  // Answered by kEstablished or kConnectFailed on `queue_pair`.
  virtual absl::Status Accept(RequestId request, QueuePairId queue_pair, ConstBytes private_data);
  virtual absl::Status Reject(RequestId request, ConstBytes private_data);
  // Leaves the ready state: what is posted is flushed, then kDisconnected is polled. `orderly` lets
  // sends that are posted reach the wire first and tells the peer kPeerDisconnect; otherwise the
  // peer sees kPeerReset. One that is not orderly waits for nobody and may cut an orderly one
  // short.
  virtual absl::Status Disconnect(QueuePairId queue_pair, bool orderly);

  // --- progress
  // -------------------------------------------------------------------------------------------------------
  // Moves data and fetches completions, in order per queue; returns how many. 0: nothing to do now.
  // What an earlier Poll has lent is the fabric's again.
  virtual size_t Poll(absl::Span<Completion> completions);
  // The oldest message that Poll has lent of this queue pair is not looked at any more: the peer
  // may have its room sooner than with the next Poll.
  virtual void ReturnLent(QueuePairId queue_pair);
  // Fetches one rendezvous event; false when there is none. A queue pair's kDisconnected comes
  // after its completions have been polled; kEstablished comes before its first receive completion.
  virtual bool PollRendezvous(RendezvousEvent& event);
  // A descriptor for poll and epoll, readable (level-triggered) when Poll or PollRendezvous would
  // find something that the outside world caused. What our own calls completed at once is not
  // signalled: poll after posting. -1: none.
  virtual int fd() const { return -1; }
  // Whether anybody may wait on fd() from now on; so it is at first. Until then it may stay silent
  // about all but rendezvous events, which spares who polls without a rest what it costs to be told.
  // True: it has been silent, so Poll once more before waiting.
  virtual bool ExpectWaits(bool expected);
  // Whether Poll or PollRendezvous would find something that is here already, of which fd() need not
  // tell: what our own calls have completed, or what was fetched and not taken. Looks at nothing
  // outside. Where waits are not expected, or nobody knows, it may be true for nothing.
  virtual bool HasUnpolled() const { return true; }
  // When Poll must be called again although fd() stays silent (connect deadlines, keep-alive);
  // kTimeInfinite for never.
  virtual Time NextDeadline() const { return kTimeInfinite; }

  // Virtual time only: moves the world to its next event, at most to `deadline`, and rings the
  // doorbell of every fabric that has something to poll. False when nothing was left to do before
  // `deadline`, which is then the time.
  virtual bool Advance(Time deadline);
  // Called from Advance when this fabric has something to poll. Set before use; by nullptr taken
  // back, before what it calls is gone.
  virtual void SetDoorbell(std::function<void()> doorbell);
  // Virtual time only: Advance also stops at `time` and rings this fabric's doorbell then, though
  // there may be nothing to poll. Replaces an earlier wish; kTimeInfinite takes it back. Where time
  // is real there is nothing to do.
  virtual void WakeAt(Time time);
};

}  // namespace esdp::fabric

#endif  // ESDP_IMPL_FABRIC_PORT_H_
