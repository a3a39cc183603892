#ifndef ESDP_IMPL_FABRIC_TYPES_H_
#define ESDP_IMPL_FABRIC_TYPES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "impl/base/bytes.h"
#include "impl/base/time.h"
#include "impl/fabric/memory_types.h"

// The vocabulary of the port: what a queue pair is asked to do and what it answers. Plain values;
// sizes in bytes.

namespace esdp::fabric {

enum class Family : uint8_t { kIpv4 = 4, kIpv6 = 6 };

// One end of a connection. IPv4 fills the last four bytes of `bytes`, the first twelve are zero.
struct Address {
  Family family = Family::kIpv4;
  uint16_t port = 0;
  uint32_t scope_id = 0;  // IPv6 link-local only
  std::array<uint8_t, 16> bytes{};
  friend bool operator==(const Address&, const Address&) = default;
};
std::string ToString(const Address& address);  // "127.0.0.1:5001", "[::1]:5001"
bool IsWildcard(const Address& address);       // every address of this host

// Handles. 0 is never valid; stale ones are detected by generation: NotFound.
enum class RegionId : uint64_t { kNone = 0 };
enum class QueuePairId : uint64_t { kNone = 0 };
enum class ListenerId : uint64_t { kNone = 0 };
enum class RequestId : uint64_t { kNone = 0 };  // an incoming request, until it is answered

// What a fabric can do. Fixed for the life of the fabric.
struct Limits {
  uint64_t region_bytes_max = 0;   // longest single registration
  uint64_t message_bytes_max = 0;  // longest send or RDMA transfer of one work request
  // Up to this length, messages cost the less for each byte the longer they are; 0: nothing is known.
  uint32_t message_bytes_best = 0;
  uint32_t send_work_max = 0;            // posted and not completed, per queue pair
  uint32_t receive_work_max = 0;         // the same for receives
  uint32_t scatter_gather_max = 0;       // entries of a send or receive
  uint32_t read_scatter_gather_max = 0;  // entries of an RDMA read's target
  uint32_t reads_in_flight_max = 0;      // most RDMA reads a queue pair can negotiate, either way
  // Bytes that a user of the port may pass: in Connect and Reject, and in Accept. Where messages of
  // the rendezvous have a fixed size, zeros follow what was passed.
  uint32_t private_data_max = 0;
  uint32_t answer_data_max = 0;
  bool pads_private_data = false;
  bool windows = false;                 // Bind and PostInvalidate work
  bool remote_invalidate = false;       // Send with Invalidate is sent and delivered
  bool initiator_speaks_first = false;  // the accepting side sends behind the first arrival only
  // A send reaches the peer only behind the answers to all reads posted before it.
  bool sends_wait_for_reads = false;
  // Has the addresses of one device, and no others. Fabrics like this of one Context have their
  // ports in common: on a wildcard all of them listen, each for the requests through its device.
  bool of_one_device = false;
  // Reaches programs on this host alone, and these at once: who has not refused is there.
  bool of_this_host = false;
  // Registered memory is resident, and a queue pair has room for all its work from the start.
  bool pins_memory = false;
  bool shares_memory = false;   // RegisterShared is more than Register
  bool lends_messages = false;  // QueuePairOptions::lend_messages makes a difference
  bool takes_tcp = false;       // ListenOver and ConnectOver work
  bool virtual_time = false;    // Advance moves time; nothing happens by itself
  // The peer of an end that was not orderly learns why. If not, it may be told kPeerDisconnect in
  // place of kPeerReset, kLocalAccess or kProtocol.
  bool tells_why = true;
};

// A piece of local memory inside one registration.
struct ScatterEntry {
  RegionId region = RegionId::kNone;
  std::byte* address = nullptr;
  uint32_t length = 0;
};

enum class Opcode : uint8_t { kSend, kReceive, kRead, kWrite, kInvalidate };

// One element of a batch for PostSend. The scatter list is copied at post.
struct SendWork {
  uint64_t work_id = 0;                   // comes back in the Completion
  Opcode opcode = Opcode::kSend;          // kSend, kRead, kWrite or kInvalidate
  const ScatterEntry* entries = nullptr;  // source of a send or write, target of a read
  uint32_t entry_count = 0;
  RemoteRange remote;           // of a read or write
  uint32_t invalidate_key = 0;  // kSend with has_invalidate: the peer's key; kInvalidate: ours
  bool has_invalidate = false;
  bool solicited = false;
};

struct ReceiveWork {
  uint64_t work_id = 0;
  const ScatterEntry* entries = nullptr;
  uint32_t entry_count = 0;
};

enum class WorkStatus : uint8_t {
  kSuccess,
  kFlushed,          // the queue pair left the ready state; the cause is in its kDisconnected event
  kLocalProtection,  // a bad region, range or right of ours
  kRemoteAccess,     // the peer refused the key, range or right
  kRemoteOperation,  // the peer could not carry it out
  kReceiverNotReady,  // the peer had no receive posted
  kTransport,         // lost connection, malformed frames
};
const char* ToString(WorkStatus status);

inline constexpr uint64_t kWrittenUnknown = ~uint64_t{0};

// So many bytes of a message that is lent lie in the entries of its receive, too.
inline constexpr size_t kLentHeadBytes = 64;

struct Completion {
  QueuePairId queue_pair = QueuePairId::kNone;
  uint64_t work_id = 0;
  Opcode opcode = Opcode::kSend;
  WorkStatus status = WorkStatus::kSuccess;
  uint32_t byte_length = 0;      // kReceive: bytes of the message
  uint32_t invalidated_key = 0;  // has_invalidated: our key that the peer's Send invalidated
  bool has_invalidated = false;
  uint64_t written = kWrittenUnknown;  // has_invalidated: Fabric::Written of that key at its end
  // kReceive: the message lies here, and not in the entries but for its first kLentHeadBytes. To be
  // read until ReturnLent or the next Poll, whatever becomes of the queue pair. The peer may still
  // change it: what is looked at twice may differ.
  const std::byte* lent = nullptr;
};

// Why a connection attempt or a connection ended.
enum class Cause : uint8_t {
  kNone,
  kLocalDisconnect,  // we asked
  kPeerDisconnect,   // the peer closed in order
  kPeerReset,        // the peer or the network broke it off
  kPeerSilent,       // keep-alive gave up
  kRejected,         // the peer's program refused; its private data is in the event
  kRefused,          // nobody listens there
  kUnreachable,      // no route
  kTimedOut,
  kProtocol,  // the peer's bytes were no legal frames, or it broke a rule of the fabric's protocol
  kRemoteTerminate,  // the peer ended the stream and told us that we broke a rule
  kLocalAccess,      // the peer asked for memory it was not shown; we ended the stream
  kDevice,           // the fabric itself failed (out of descriptors, device removed)
};
const char* ToString(Cause cause);

inline constexpr size_t kPrivateDataMax = 512;

enum class RendezvousType : uint8_t {
  kConnectRequest,
  kTurnedAway,
  kShort,
  kEstablished,
  kConnectFailed,
  kDisconnected
};

// kConnectRequest: listener, request, local, peer, private data of the connecting side.
// kTurnedAway: the fabric has rejected it, or none came: listener, local, peer, cause, detail.
// kShort: no descriptor is left for a connection that waits there: listener. Who holds set-ups that
// have not come about may let some go.
// kEstablished: queue_pair, local, peer; on the connecting side the private data of the answer.
// kConnectFailed: queue_pair, cause, and the private data of a rejection. No kDisconnected follows.
// kDisconnected: queue_pair, cause. All its work is completed or flushed before this is polled.
struct RendezvousEvent {
  RendezvousType type = RendezvousType::kDisconnected;
  ListenerId listener = ListenerId::kNone;
  RequestId request = RequestId::kNone;
  QueuePairId queue_pair = QueuePairId::kNone;
  Cause cause = Cause::kNone;
  std::string detail;  // of the cause, for people
  Address local;
  Address peer;
  uint32_t initiator_depth = 0;      // RDMA reads this side may have in flight
  uint32_t responder_resources = 0;  // RDMA reads the peer may have in flight
  uint16_t private_data_bytes = 0;
  std::array<std::byte, kPrivateDataMax> private_data{};
};

struct QueuePairOptions {
  uint32_t send_work = 64;
  uint32_t receive_work = 32;
  uint32_t initiator_depth = 16;  // asked for; the negotiated values come with kEstablished
  uint32_t responder_resources = 16;
  bool checksum = false;       // ask for an end-to-end checksum where the fabric can do without
  bool lend_messages = false;  // what arrives need not be copied into the entries: Completion::lent
  Duration keep_alive_idle{};  // a dead peer is told within 4 times this; 0: the fabric's default
};

}  // namespace esdp::fabric

#endif  // ESDP_IMPL_FABRIC_TYPES_H_
