#ifndef ESDP_LIMITS_H_
#define ESDP_LIMITS_H_

#include <cstddef>
#include <cstdint>

// What peers may do, and how much of a Context they may take. Context::Diagnose tells each limit
// with its value; docs/security.md says what each is for.

namespace esdp {

// "local": which programs of this user may take what a transfer shows them out of our memory by
// themselves, in one copy. What they cannot take is copied twice.
enum class LocalShare : uint8_t {
  // Those that the system lets read all our memory anyway, as they prove: not where ptrace_scope of
  // Yama is 1 or more, nor from another user or pid namespace.
  kProved,
  // Also any other: of a region of Allocate that it was once sent from it sees every byte, as long
  // as the connection lives. For programs that trust one another.
  kUser,
  kNever,  // none
};

// Whether the peer of a connection may move it to another queue pair (docs/protocol.md,
// Suspending). To follow it this side connects to a port that the peer names, at the peer's
// address; the connection ends, kPeerProtocol, where that is not allowed.
enum class PeerMoves : uint8_t {
  kRefused,
  kGuarded,    // whoever comes back shows a secret of 128 bits that only the two ends know
  kUnguarded,  // also a peer that knows no such secret, as the standard has it: then whoever
               // connects first from the peer's address gets the connection. For networks that are
               // trusted.
};

// Each is 1 .. 2^20 unless it says otherwise.
struct ContextLimits {
  // Connections in all: accepted, connecting, being set up or closed. One more that comes is
  // rejected, unless another one whose set-up stays half open makes room for it; Connect answers
  // ResourceExhausted (kMemory).
  uint32_t connections_max = 1 << 16;
  // Of the incoming ones, so many may be of one address, or of one network of IPv6 (the first 64
  // bits); one more is rejected.
  uint32_t connections_per_address_max = 1 << 14;
  // So many a second may come from one address or network, after a burst of so many at once, or as
  // many as the listener's backlog. Who comes faster is rejected, and may come again.
  uint32_t accept_rate = 1 << 12;
  uint32_t accept_burst = 1 << 14;
  // Bytes by which the private receive buffers of all connections may grow together, beyond those
  // that they begin with (SocketOptions::receive_window_max). Any number; 0: none grow.
  size_t receive_growth_max = size_t{256} << 20;
  // So many connections that have ended may leave behind in the process's heap what they used, some
  // 40 KiB each, for those to come; four of them their private buffers too, 2 MiB at most. Where
  // more have ended, a second later all of it goes back to the system (malloc_trim, on the thread
  // that moves the protocol: some 10 us for each). 0 .. 2^20.
  uint32_t spare_connections_max = 256;
  // Registered memory that SendFile and RecvFile pass bytes through: 1 MiB for each transfer as it
  // begins, until there is so much, which further ones share. Any number; at least 1 MiB.
  size_t file_pool_max = size_t{64} << 20;
  // Threads that wait for the media of files. 0 .. 64; 0, and with manual progress: whoever moves
  // the protocol waits.
  uint32_t file_threads = 2;
};

}  // namespace esdp

#endif  // ESDP_LIMITS_H_
