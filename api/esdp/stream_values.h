#ifndef ESDP_STREAM_VALUES_H_
#define ESDP_STREAM_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "esdp/operation.h"
#include "esdp/stats.h"

// What the calls of a Stream take and tell.

namespace esdp {

// How a Stream's reads meet an urgent byte. Of several the last is the one: those before it are
// among the others.
enum class UrgentBytes : uint8_t {
  kAmongOthers,  // it is read as any other byte
  kInLine,       // as TCP with SO_OOBINLINE: a Read ends before it, and the next one begins with it
  kApart,        // as TCP without: a Read ends before it, the next one goes on behind it, and
                 // ReadUrgent gives it; in the memory of a Read it may stand behind the bytes
                 // that are told
};

// Sizes in bytes.
struct StreamOptions {
  // From this size on a Write goes zero-copy, its memory registered for the call, and a Read takes
  // what the peer shows straight into the caller's memory. Absent: 64 KiB where a registration is
  // cheap (qpip, sim), 512 KiB on an RDMA device; from there Writes learn it, but on qpip, from what
  // they take, registration included. kNever: all is copied.
  std::optional<uint64_t> zcopy_min = {};
  // Registered at a time, 4096 .. 2^30, and so many of these at once, 1 .. 16: what one call has
  // registered at most, however long it is. Absent: 256 KiB and 4 where a registration is cheap,
  // 512 KiB and 2 on an RDMA device.
  std::optional<size_t> chunk_bytes = {};
  std::optional<size_t> chunks_max = {};
  // What Write takes before the peer has read it: it promises what a socket's buffer does. Memory of
  // the Stream's own, from the first Write on. 65,536 .. 2^30.
  size_t send_buffer_bytes = 1024 * 1024;
  // A zero-copy Write that makes no progress for so long takes its memory back from the peer, and
  // copies what is left. Zero: all is copied.
  absl::Duration patience = absl::Milliseconds(20);
  // True: no signal ends a wait. False: as of recv, which those do not end whose handlers have
  // SA_RESTART where the call has no deadline; but only where no other handler lacks it.
  bool restart_on_signal = false;
  UrgentBytes urgent = UrgentBytes::kAmongOthers;
};

struct ReadArgs {
  size_t min = 1;     // bytes to wait for; no more than there is room for. 0 is as wait = false
  bool peek = false;  // the bytes stay in the stream: of those, up to 256 KiB
  bool wait = true;   // false: only what is here
  // It ends before the place of an urgent byte also where nothing is before that: kWouldBlock then.
  bool until_mark = false;
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
  bool urgent = false;      // an urgent byte is announced that was not heard of, or read apart
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

// Which end of a connection this process has: the one that has asked for it, or the one that was
// asked.
enum class StreamSide : uint8_t { kConnects, kAccepts };

}  // namespace esdp

#endif  // ESDP_STREAM_VALUES_H_
