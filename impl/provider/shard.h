#ifndef ESDP_IMPL_PROVIDER_SHARD_H_
#define ESDP_IMPL_PROVIDER_SHARD_H_

#include <csignal>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/fabric/port.h"
#include "impl/provider/observer.h"
#include "impl/provider/types.h"

namespace esdp::provider {

// A Shard runs SDP connections over one fabric, or over the first of several that leads to the
// peer: it is what stands behind one Context. Everything below it (cores, queue pairs, buffers) is
// touched only by whoever has the shard lock.
//
//   Threads:  every call from any thread. Submit never waits; the others wait for the shard lock,
//             which is never held across a wait. With kManual nothing moves but inside Submit,
//             Progress and Advance.
//   Blocks:   only WaitForWork.
//   Ends:     the destructor aborts what is open, bounded by a second, and joins the thread. No
//             observer call comes after.
class Shard {
 public:
  static absl::StatusOr<std::unique_ptr<Shard>> Create(std::unique_ptr<fabric::Fabric> fabric,
                                                       Observer& observer,
                                                       const ShardOptions& options);
  // The last of them reaches every address; none has virtual time.
  static absl::StatusOr<std::unique_ptr<Shard>> Create(
      std::vector<std::unique_ptr<fabric::Fabric>> fabrics, Observer& observer,
      const ShardOptions& options);
  ~Shard();

  const char* fabric_name() const;
  Time Now() const;
  bool virtual_time() const;

  // Runs the request at once if the shard lock is free, else leaves it to whoever holds the shard
  // lock. A transfer on an unknown or ended connection is finished with its root cause, or
  // kLocalAbort. Room for so many operations at once; what is submitted beyond that may end for
  // want of memory. Throws std::bad_alloc.
  void ReserveOperations(size_t operations);
  void Submit(const Request& request);
  // As many Submits, in their order, in one turn where the lock is free.
  void SubmitAll(std::span<const Request> transfers);

  // Sends at once what is small and has nothing before it, if the shard lock is free: then it has
  // been posted, and OnImmediateSent was called. False: nothing has happened, and Submit takes it.
  // Several parts leave also while an earlier message is on its way: they need no company.
  bool TrySendImmediate(ConnectionId connection, ImmediateSend& send);

  // Memory. Long ranges are split into chunks of what the fabric takes. ResourceExhausted names
  // limit, use and cure. `file`: see MemoryRegion::Register.
  absl::StatusOr<std::shared_ptr<MemoryRegion>> Register(std::span<std::byte> memory,
                                                         bool local_write, Exposure exposure,
                                                         int file = -1);
  // Whether a fabric makes use of such a file.
  bool SharesMemory() const;
  // To send from. `addresses` name it, and nothing else may lie there. Unimplemented where a fabric
  // has no way to it.
  absl::StatusOr<std::shared_ptr<MemoryRegion>> RegisterDmaBuf(const fabric::DmaBuf& buffer,
                                                               std::span<std::byte> addresses,
                                                               Exposure exposure);
  // FailedPrecondition while transfers use it.
  absl::Status Deregister(MemoryRegion& region);
  static RegionDetails Describe(const MemoryRegion& region);
  // For receives that are copied into memory that no fabric knows: `region`, made if it is null,
  // means these bytes from now on. No transfer may use it.
  static void NameUnregistered(std::shared_ptr<MemoryRegion>& region, std::span<std::byte> memory);

  // Connections. The observer may hear of a new one before the call that makes it has returned:
  // `named`, if given, is called with its name before that, under the shard lock.
  absl::StatusOr<ListenerId> Listen(const Address& address, int backlog,
                                    const ConnectionOptions& options,
                                    const std::function<void(ListenerId)>& named = nullptr);
  // For the one connection that this connected TCP socket is, as fabric::Fabric::ListenOver.
  absl::StatusOr<ListenerId> ListenOver(int descriptor, const ConnectionOptions& options,
                                        const std::function<void(ListenerId)>& named = nullptr);
  absl::StatusOr<Address> ListenerAddress(ListenerId listener);
  // The place of the first fabric that listens.
  uint8_t FabricOf(ListenerId listener);
  absl::Status StopListening(ListenerId listener);
  // What the fabric refuses at once is the call's status, and the observer hears nothing of it.
  absl::StatusOr<ConnectionId> Connect(const Address& local, const Address& peer,
                                       const ConnectionOptions& options, Time deadline,
                                       const std::function<void(ConnectionId)>& named = nullptr);
  // The same over a connected TCP socket, as fabric::Fabric::ConnectOver.
  absl::StatusOr<ConnectionId> ConnectOver(
      int descriptor, const ConnectionOptions& options, Time deadline,
      const std::function<void(ConnectionId)>& named = nullptr);
  absl::StatusOr<ConnectionCounters> Counters(ConnectionId connection);
  // Of the peer's that no transfer has taken: arrived, or shown to us. 0 for one that has ended.
  uint64_t UnreadBytes(ConnectionId connection);

  // kThread: a thread that waits anyway may lead meanwhile, which is to do the work of the shard's
  // own thread as with manual progress. False if another leads already, or the thread is pinned.
  bool TryLead();
  // `hands_over`: it will not lead again soon, and the shard's thread goes on at once.
  void EndLead(bool hands_over = false);
  // Somebody has led a moment ago, and is relied on to come back.
  bool LedLately() const;

  // Manual progress, or with the lead: one bounded round of what can move now; true if anything
  // did, and then there may be more. Otherwise it does nothing. `began`: if given, the time of it,
  // which spares who polls in vain again and again a look at the clock.
  bool Poll(Time* began = nullptr);
  // Manual progress: readable when Poll would find work (level-triggered; may be readable for
  // nothing).
  int fd() const;
  // As Poll: blocks until that would find work, `deadline`, Wake, or a signal (then false).
  // A descriptor of the caller's ends it too when it is readable: what one thread's Poll finds may
  // be what another waits for.
  bool WaitForWork(Time deadline, int also = -1, const sigset_t* signals = nullptr);
  void Wake();
  // Virtual time: moves the world on, at most to `deadline`; false if nothing was left to happen
  // before it.
  bool Advance(Time deadline);

 private:
  class Impl;
  explicit Shard(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SHARD_H_
