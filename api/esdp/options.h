#ifndef ESDP_OPTIONS_H_
#define ESDP_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "absl/time/time.h"
#include "esdp/limits.h"

// The options of Contexts, queues and sockets; those of regions are in region.h. Members not named
// keep their defaults: Context::Open({.fabric = "qpip"}). Sizes in bytes.

namespace esdp {

class Context;

// A threshold that no transfer reaches.
inline constexpr uint64_t kNever = ~uint64_t{0};
inline constexpr uint32_t kByFabric = ~uint32_t{0};  // a size that the fabric says
// From this size on, registered memory is shown to the peer instead of being copied.
inline constexpr uint64_t kDefaultThreshold = 64 * 1024;

enum class Progress : uint8_t {
  kThread,  // the Context's own thread moves the protocol, whatever the application does; a thread
            // that waits in Dequeue does it in its place meanwhile
  kManual,  // it moves only inside Dequeue, TryDequeue, Progress and posts; no stepping, no service
            // to the peer
};

// How one direction of a connection carries large data (docs/protocol.md, Data delivery modes).
enum class DeliveryMode : uint8_t {
  kAutomatic,  // as the traffic asks, and back again
  kBuffered,   // in messages only: nothing of the application's memory is shown to the peer
  kCombined,   // the peer reads large sends, one after the other
  kPipelined,  // several of them at once, and receives that wait are written to
};

struct ContextOptions {
  // "auto": each socket takes "local", shared memory, where a program of this user listens by it at
  // the peer's address, else an RDMA device that leads there, else qpip; Socket::transport() tells.
  // "auto:nolocal" leaves "local" out, as does "auto:rxe0", which opens one device. A named fabric
  // is used or Open fails: "qpip", "local", "verbs" (all devices with an active port), "verbs:rxe0",
  // "sim", or "sim:42" with its seed, which implies kManual.
  std::string fabric = "auto";
  Progress progress = Progress::kThread;
  std::optional<int> progress_cpu = {};  // pins the progress thread; then nobody takes its place
  absl::Duration progress_spin = absl::Microseconds(50);  // how long it polls before it sleeps
  uint64_t zcopy_send_min = kDefaultThreshold;            // the context's defaults for its sockets
  uint64_t zcopy_recv_min = kDefaultThreshold;
  // Learn from what sends cost, in time, from which size on they go zero-copy, for each connection:
  // zcopy_send_min is where it starts. What a socket's own zcopy_send_min says, 0, kNever, and the
  // path of an operation are held to. About one send in 32 goes the other way, to compare.
  bool adaptive_threshold = false;
  DeliveryMode send_mode = DeliveryMode::kAutomatic;
  DeliveryMode receive_mode = DeliveryMode::kAutomatic;
  bool as_deployed = false;
  absl::Duration cancel_grace = absl::Seconds(5);
  // Whether peers may write to receives that wait (their events say kWritten). The peer then tells
  // when it has done so: qpip and sim hold it to what was placed, but on an RDMA device nobody but
  // the peer knows, and one that lies has a receive end with the bytes that were in its memory
  // before. With false large receives are read from the peer, which costs a round trip for each.
  bool show_receives = true;
  PeerMoves peer_moves = PeerMoves::kRefused;
  // What peers may take. Of these moves one connection may make so many, and one more each second:
  // beyond that it ends, kPeerProtocol. So many connections may be moving at once: one more ends.
  uint32_t moves_max = 16;          // 1 .. 2^20
  uint32_t moves_at_once_max = 64;  // 1 .. 2^20
  // Incoming connections of all listeners whose set-up has begun and not ended; with a longer
  // backlog as many as that. Where there is no room the oldest makes some, of the address that has
  // most: after a second, or at once if it has more than three quarters. Else the new one is
  // rejected.
  uint32_t half_open_max = 256;  // 1 .. 2^20
  ContextLimits limits = {};     // of connections, and of what each may take
  // An accepted connection that nobody has taken so long after its event was dequeued is aborted:
  // whoever dropped the event has forgotten it. InfiniteDuration: it stays until its listener goes.
  absl::Duration take_accepted_within = absl::Seconds(60);
  // For SendCopy; mapped on first use. Where it is in use a socket still gets up to 64 KiB, beside
  // it, so that peers that take nothing hold up no other connection.
  size_t bounce_pool_bytes = 1 << 20;
  uint32_t operations_max = 1 << 16;  // outstanding in the whole Context
  // qpip: TCP's congestion control by name; empty leaves the system's. Checksum: CRC32C on every
  // frame.
  std::string congestion_control = {};
  bool checksum = false;
  // qpip: lend the memory of zero-copy sends to the system instead of having it copied into the
  // socket, which takes a quarter off what a sender costs. It is read when the peer takes it in. As
  // long as a send is under way that is all the same; but of one that ended with an error, or that
  // the peer said to have read when it had not, bytes written later may arrive: for trusted peers.
  bool lend_pages = false;
  LocalShare local_share = LocalShare::kProved;
  // Where lines about lost and refused connections go. Called on the thread that moves the
  // protocol; must not block nor call the library. Of lines that differ in numbers and addresses
  // alone log_burst go at once, 0: all; then one each second, which tells how many were left out.
  std::function<void(std::string_view)> log = {};
  uint32_t log_burst = 10;  // 0 .. 2^20
  // "sim": joins the simulated world of another Context, which must outlive this one.
  Context* world_of = nullptr;
};

enum class WaitMode : uint8_t {
  kAdaptive,  // polls for QueueOptions::spin, then sleeps; at once where busy programs take turns
  kNotify,    // sleeps at once
  kBusyPoll,  // polls without end, stepping aside in between; sleeps where busy programs take turns
};

struct QueueOptions {
  uint32_t depth = 256;  // events, 1 .. 2^20
  WaitMode wait = WaitMode::kAdaptive;
  absl::Duration spin = absl::Microseconds(50);
  bool restart_on_signal = false;        // true: a signal does not end a wait
  bool restart_as_handler_says = false;  // true: as recv(2); needs Progress::kThread
};

// What a passed deadline does to what has begun: a send of which bytes have gone or are shown to
// the peer, a receive that the peer is shown or that is being filled.
enum class DeadlinePolicy : uint8_t {
  kFinish,           // as CancelMode::kIfNotStarted
  kAbortConnection,  // the connection is aborted at once: a stream cannot lose bytes in the middle
};

// Of one socket. What is absent is the Context's.
struct SocketOptions {
  std::optional<uint64_t> zcopy_send_min = {};  // 0: always, kNever: never
  std::optional<uint64_t> zcopy_recv_min = {};
  std::optional<bool> adaptive_threshold = {};
  // Wishes: the standard gives each change of mode to one end, and the peer may want another one. For
  // what is received: kAutomatic, or kBuffered, which leaves a peer that sends in messages alone.
  std::optional<DeliveryMode> send_mode = {};
  std::optional<DeliveryMode> receive_mode = {};
  // As the deployed SDP implementations: one advert at a time, none of it invalidated by the peer,
  // only kCombined, whatever is wished, no receive shown. For peers that take no more.
  std::optional<bool> as_deployed = {};
  uint16_t receive_buffers = 16;              // 3 .. 1024 private buffers
  uint32_t receive_buffer_bytes = 16 * 1024;  // payload of each, 1024 .. 2^20
  // Where the path is long, so that the peer waits for buffers to be free again, there are twice as
  // many, and twice as many again, up to so many bytes of payload: as TCP's window. They are as at
  // first again when nothing has arrived for 5 s. On an RDMA device, where memory is pinned, no
  // more than four times as many. Not above the first ones: they stay. At most 2^30.
  uint32_t receive_window_max = 16 << 20;
  // What the peer may have our buffers enlarged to, payload of each; at most 2^20. Not above
  // receive_buffer_bytes: they keep their size.
  uint32_t receive_buffer_bytes_max = 64 * 1024;
  // What the peer's buffers are asked to become once data streams in messages: 1024 .. 2^20; 0: as
  // they are; kByFabric: larger, where sends do not fit: 64 KiB on local, 65,456 on qpip, as they are
  // on an RDMA device. Larger ones mean fewer messages for what is copied. The peer may grant less
  // or nothing; one that declares itself a deployed peer is not asked.
  uint32_t peer_receive_buffer_bytes = kByFabric;
  uint16_t send_buffers = 8;  // 1 .. 64, for coalesced small sends
  // A send up to this long is copied and may share a message; at most 16 KiB.
  uint32_t coalesce_max = 2048;
  absl::Duration linger = absl::Seconds(60);  // bound of a graceful close
  // What a cancel or a passed deadline takes back, and the peer does not let go of in this time,
  // aborts the connection. InfiniteDuration: it is waited for as long as the connection lives.
  std::optional<absl::Duration> cancel_grace = {};
  // A silent dead peer is found within four times this: whole seconds, rounded up, at most 32,767.
  // On qpip; an RDMA device finds it when something is sent, or its link has been down for 10 s.
  //   the peer's host is gone, or no path leads to it,     within four times this, as kPeerSilent
  //   also where a router says "unreachable"
  //   its process has ended                                at once, as kPeerReset
  //   its process stands still, or takes nothing (its      never by this: deadlines, cancel_grace
  //   window is closed)                                    and linger bound what waits for it
  absl::Duration keep_alive_idle = absl::Seconds(15);
  DeadlinePolicy deadline_policy = DeadlinePolicy::kFinish;
};

// One option of a socket by name, for SetOption and GetOption.
enum class OptionName : uint8_t {
  kZcopySendMin,       // uint64_t; any time, for operations posted later
  kZcopyRecvMin,       // uint64_t; any time
  kAdaptiveThreshold,  // uint64_t: 0 or 1; any time, for operations posted later
  // uint64_t: a DeliveryMode; before Connect or Listen, and while connected. Sends and receives
  // that wait follow.
  kSendMode,
  kReceiveMode,
  kReceiveBuffers,  // uint64_t; before Connect or Listen, as all that follow
  kReceiveBufferBytes,
  kReceiveBufferBytesMax,
  kPeerReceiveBufferBytes,
  kReceiveWindowMax,
  kSendBuffers,
  kCoalesceMax,
  kLinger,          // absl::Duration
  kCancelGrace,     // absl::Duration
  kKeepAliveIdle,   // absl::Duration
  kDeadlinePolicy,  // uint64_t: a DeadlinePolicy
  kAsDeployed,      // uint64_t: 0 or 1
};
struct Option {
  OptionName name;
  std::variant<uint64_t, absl::Duration> value;
};

}  // namespace esdp

#endif  // ESDP_OPTIONS_H_
