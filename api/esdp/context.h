#ifndef ESDP_CONTEXT_H_
#define ESDP_CONTEXT_H_

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "esdp/event_queue.h"
#include "esdp/options.h"
#include "esdp/region.h"
#include "esdp/socket.h"
#include "esdp/stats.h"
#include "esdp/status.h"

namespace esdp {

namespace sockets {
class ContextState;
class ContextAccess;
}  // namespace sockets

struct FabricReport {
  std::string name;
  bool available = false;
  std::string text;  // what it is, or why it is not there and what to do
};

// One limit of the Context that the options would open.
struct LimitReport {
  std::string name;  // the option's
  uint64_t value = 0;
  std::string text;  // what it bounds
};

struct DiagnosticsReport {
  std::vector<FabricReport> fabrics;
  std::string chosen;  // what the options given would open; empty if Open would fail
  std::string reason;
  uint64_t memlock_soft = 0;  // bytes; ~0: no limit
  uint64_t memlock_hard = 0;
  std::vector<LimitReport> limits;  // of what peers and operations may take
  std::string ToString() const;
};

struct WaitBesideArgs {
  absl::Time deadline = absl::InfiniteFuture();  // on the clock of Context::Now
  // The mask of the thread while it sleeps, as ppoll has it, read during the call; null: as it is.
  const sigset_t* signals = nullptr;
  // It waits so again soon. False: the Context's thread goes on at once when this wait is over.
  bool comes_back = true;
};

// A Context opens one fabric, holds registered memory, queues and sockets, and moves the protocol.
// It is one shard: programs that want more cores open more Contexts.
//
//   Owns:     everything made through it. Moves, does not copy. Handles may outlive it: their calls
//             then answer NotFound.
//   Threads:  any, also while another thread closes it: each call comes before the end or is told.
//   Blocks:   Open and every Register (the fabric's own work); Close and WaitBeside until their
//             deadlines; the destructor at most a second.
//   Units:    bytes; times are on the clock of Now().
//   Errors:   see each call; after fork() every call in the child answers FailedPrecondition
//             (kAfterFork).
class Context {
 public:
  Context() = default;  // an empty handle: every call answers NotFound
  Context(Context&&) noexcept = default;
  Context& operator=(Context&&) noexcept;
  // Aborts what is open.
  ~Context();

  // InvalidArgument: an unknown fabric; the text lists the known ones. Unimplemented: a fabric that
  // this build has not. Unavailable: the named fabric cannot be opened here; nothing falls back in
  // silence.
  static absl::StatusOr<Context> Open(const ContextOptions& options);
  // What Open would find. Never fails.
  static DiagnosticsReport Diagnose(const ContextOptions& options);

  // Registers memory with the fabric, at once. ResourceExhausted (kMemory) names the limit, what is
  // in use, what was asked and how to raise it. InvalidArgument for no memory.
  absl::StatusOr<Region> Register(absl::Span<std::byte> memory,
                                  const RegisterOptions& options = {});
  template <size_t kExtent>
  absl::StatusOr<Region> Register(std::span<std::byte, kExtent> memory,
                                  const RegisterOptions& options = {}) {
    return Register(absl::MakeSpan(memory.data(), memory.size()), options);
  }
  // The same for memory that is only sent from.
  absl::StatusOr<Region> RegisterReadOnly(absl::Span<const std::byte> memory,
                                          RegisterOptions options = {});
  // A dma-buf, such as memory of a GPU, to send from: the device reads it, and nothing copies it.
  // It is never received into, whatever options.local_write says. Region::info().base is null. The
  // descriptor may be closed afterwards. Unimplemented where the fabric or the device has no way to
  // it. InvalidArgument for no descriptor, no bytes, a range that has no end in 64 bits, or the
  // exposure kNone. ResourceExhausted as Register.
  absl::StatusOr<Region> RegisterDmaBuf(int fd, uint64_t offset, uint64_t length,
                                        RegisterOptions options = {});
  // Page-aligned zeroed memory that belongs to the Region; Region::info().base tells where. From
  // 2 MiB on it lies in huge pages if the system has any to give. What is shareable lies in a file
  // without a name instead, of which the Context keeps a descriptor: in small pages, and not in a
  // child of fork. InvalidArgument for no bytes. ResourceExhausted as Register, where there is no
  // memory, and with kAlways where there is no descriptor; Unimplemented with kAlways on a system
  // that cannot seal such a file (before Linux 5.1).
  absl::StatusOr<Region> Allocate(size_t bytes, const AllocateOptions& options = {});

  absl::StatusOr<EventQueue> CreateQueue(const QueueOptions& options);
  absl::StatusOr<Socket> CreateSocket(Family family, SocketType type = SocketType::kStream,
                                      const SocketOptions& options = {});
  // The connection of a kAccept event, once; NotFound after that or when it is unknown. What is not
  // taken is aborted: when its listener, the queue of an event that was not dequeued, or the
  // Context closes, or ContextOptions::take_accepted_within after the event was dequeued.
  absl::StatusOr<Socket> TakeAccepted(SocketId accepted);

  // The clock of every deadline: the wall clock, or the simulated world's.
  absl::Time Now() const;
  // So long from now on that clock, for deadlines. What is longer than any time is for ever.
  absl::Time After(absl::Duration wait) const { return Now() + wait; }
  template <typename Rep, typename Period>
  absl::Time After(std::chrono::duration<Rep, Period> wait) const {
    return After(absl::Seconds(Period::num) * wait.count() / Period::den);
  }
  // Manual progress: moves what can move, for at most `max` (virtual time with "sim"); returns how
  // many rounds did something. FailedPrecondition with kThread.
  absl::StatusOr<int> Progress(absl::Duration max = absl::ZeroDuration());
  // For a program with a loop of its own, of which one thread waits with epoll for the descriptors of
  // Streams, among others: waits until `descriptor`, that of its epoll set, is readable, and does the
  // work of the Context's thread meanwhile, so that neither has to wake the other. It looks for up to
  // ContextOptions::progress_spin before it sleeps, as long as that finds something now and then.
  // True: something has moved, or the descriptor is readable: to be asked without a wait. False: the
  // deadline has passed; with one that has passed before it looks once. The descriptor stays the
  // caller's, and open as long as this waits; -1: none, and only what moves ends it.
  // The Context's thread counts on this one to be soon back, and may notice 4 ms late that it is not:
  // what other threads wait for outside the library stands still so long. `comes_back` says better.
  // ResourceExhausted (kWouldBlock), at once: another thread does the work, or the Context's is pinned;
  // then wait in the system. Cancelled (kSignal): a signal has ended the wait. NotFound: the Context
  // is closed. FailedPrecondition with kManual, where Progress does it.
  absl::StatusOr<bool> WaitBeside(int descriptor, const WaitBesideArgs& args = {});
  // The WaitBeside that is under way, or else the next one, answers true. From any thread; never
  // blocks or fails, and does nothing where the Context is closed.
  void WakeWaitBeside();
  ContextStats Stats() const;
  // The fabrics that Open has opened, in the order in which a connect tries them, a device each.
  // Empty for an empty handle.
  std::vector<Transport> transports() const;

  // Closes every socket gracefully until `deadline`, then aborts. Every pending operation has its
  // event before this returns. DeadlineExceeded when something had to be aborted.
  absl::Status Close(absl::Time deadline);

 private:
  friend class sockets::ContextAccess;
  std::shared_ptr<sockets::ContextState> state_;
};

}  // namespace esdp

#endif  // ESDP_CONTEXT_H_
