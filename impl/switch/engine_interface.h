#ifndef ESDP_IMPL_SWITCH_ENGINE_INTERFACE_H_
#define ESDP_IMPL_SWITCH_ENGINE_INTERFACE_H_

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>

#include "impl/switch/rules/rule.h"

// What the library that is preloaded, which has nothing but libc, and the engine that it loads say
// to each other. Both are of one version, or the engine is not used.

namespace esdp::switching {

inline constexpr uint32_t kEngineVersion = 12;
inline constexpr char kEngineEntry[] = "esdp_switch_engine";

// Why a connection goes the way it goes. The numbers never change.
enum class Reason : uint8_t {
  kNone = 0,
  kNoRule = 1,
  kRuleTcp = 2,
  kPeerNotKnown = 3,
  kAnsweredPlain = 4,
  kAnswerLate = 5,
  kWaitRanOut = 6,
  kCopyPassedOn = 7,
  kSandbox = 8,
  kNoDescriptors = 9,
  kMemory = 10,
  kFabric = 11,
  kForked = 12,
  kRelayed = 13,
  kBoundPort = 14,
};

// What of the connection is known. kUnknown: the first bytes are to tell.
enum class Begin : uint8_t { kAccepts, kConnects, kUnknown };

union Name {
  sockaddr any;
  sockaddr_in ipv4;
  sockaddr_in6 ipv6;
};

struct ConnectionNames {
  Name local{}, peer{};
  socklen_t local_bytes = 0, peer_bytes = 0;
};

struct RelayRequest {
  int number = -1;      // of the program
  int descriptor = -1;  // the TCP socket; stays the caller's
  Begin begin = Begin::kAccepts;
  Verdict verdict = Verdict::kBoth;
  bool is_heard = false;  // kConnects: the peer is known to listen for SDP now
  RuleOptions options = {};
  ConnectionNames names = {};
};

struct RelayMade {
  int program_end = -1;  // of a stream pair; told to `own`, and the caller's to close
  uint64_t id = 0;
};

// What a call that moves bytes has come to: their number, or -1 and an errno. kNotDirect: the pair
// under the number moves them by now.
struct Moved {
  static constexpr int kNotDirect = -1;
  ssize_t bytes = 0;
  int error = 0;
};

// A connection that is not relayed.
struct PlainNote {
  int number = -1;
  Role role = Role::kServer;
  Verdict verdict = Verdict::kTcp;
  Reason reason = Reason::kNone;
  ConnectionNames names = {};
};

// What this process knows of an address.
enum class Learned : uint8_t { kNothing, kSpeaks, kSilent };

// Calls of the engine.
//
//   Owns:     nothing.
//   Threads:  any.
//   Blocks:   flush, for so long at most; prepare, for a tenth of a second.
//   Units:    milliseconds.
//   Errors:   an errno.
struct EngineCalls {
  uint32_t version = kEngineVersion;
  int (*relay)(const RelayRequest& request, RelayMade& made) = nullptr;
  // One is to be made as soon as TCP has connected: what it needs is there when this returns, or
  // cannot be had.
  void (*prepare)(Mode mode) = nullptr;
  // The program closes the number, and what it has written is dropped.
  void (*abort)(uint64_t id) = nullptr;
  // Of a connection that goes directly, as recvmsg and sendmsg on a connected socket, shutdown, and
  // FIONREAD have it; `waits` where the socket blocks.
  Moved (*receive)(uint64_t id, msghdr& message, int flags, bool waits) = nullptr;
  Moved (*send)(uint64_t id, const msghdr& message, int flags, bool waits) = nullptr;
  int (*shut)(uint64_t id, int how) = nullptr;
  Moved (*unread)(uint64_t id) = nullptr;
  // 1: the mark of an urgent byte is reached, as SIOCATMARK has it; else 0.
  Moved (*at_mark)(uint64_t id) = nullptr;
  // How long its calls wait, SO_RCVTIMEO and SO_SNDTIMEO, 0 without end; SO_OOBINLINE.
  void (*options)(uint64_t id, int64_t receive_ns, int64_t send_ns, bool urgent_in_line) = nullptr;
  // What the program writes into a pair may have urgent bytes in it from now on.
  void (*expect_urgent)() = nullptr;
  // Its number is waited for; `shown` is a duplicate of it, the engine's from now on.
  void (*show)(uint64_t id, int shown) = nullptr;
  // Somebody waits for its readiness by edges from now on.
  void (*edges)(uint64_t id) = nullptr;
  // Waits until there may be something in this set of epoll, for so long at most (-1: without end; 0:
  // looks once), and does the work of the engine's Context meanwhile. `signals`, if given, is the mask
  // while it sleeps. 0: the set is to be asked. ETIMEDOUT. EINTR: a signal has come. ENOTSUP: others do
  // that work, and the set is to be waited for. Set -1: looks once, and the others go on at once.
  int (*wait)(int set, int64_t nanoseconds, const sigset_t* signals) = nullptr;
  // Ends the wait that is under way, or else the next one, as if the set had something.
  void (*end_wait)() = nullptr;
  // It is relayed from now on: what is in the pair is its bytes. `fresh` is the program's end of
  // another pair that is to be under the number, and the caller's to close; -1: it is the same one.
  int (*relay_instead)(uint64_t id, const ConnectionNames& names, int& fresh) = nullptr;
  // The program closes the number of a connection that goes directly.
  void (*close_direct)(uint64_t id, bool reset) = nullptr;
  void (*note)(const PlainNote& note) = nullptr;
  Learned (*learned)(const Name& peer) = nullptr;
  // It has been asked for something in this process, and so has its thread.
  bool (*runs)() = nullptr;
  // `due` of the host is called then.
  void (*later)(unsigned milliseconds, uint64_t what) = nullptr;
  void (*flush)(unsigned milliseconds) = nullptr;
  // In a child: what the parent has is left alone.
  void (*after_fork)() = nullptr;
};

// Calls back, on the engine's thread but for `own` and `undivided`.
struct HostCalls {
  uint32_t version = kEngineVersion;
  // A call of libc, as it is behind what is interposed.
  void* (*real)(const char* name) = nullptr;
  // Descriptors from this number on are the engine's to take. `afresh`: where the system has refused
  // what it was told before.
  int (*first_high)(bool afresh) = nullptr;
  // It has one, or has closed it.
  void (*own)(int descriptor, bool owned) = nullptr;
  // `act(what)` while no fork is under way: a descriptor that is made or closed in it, and told of by
  // `own`, is known in the child, or is not there. No signal is handled meanwhile.
  void (*undivided)(void (*act)(void* what), void* what) = nullptr;
  // The connection is set up, and may go directly. `drain(what)` is called, while no other call of the
  // program's goes on, to take what it has written into the pair; null where it is relayed after all.
  // False: it is to be relayed, or has gone. `shown`: a duplicate of its number, which somebody waits
  // for, or -1; the engine's.
  bool (*go_direct)(uint64_t id, bool (*drain)(void* what), void* what, int& shown) = nullptr;
  // The program's end is to show a reset.
  void (*reset)(uint64_t id) = nullptr;
  // The connection goes over this TCP socket now.
  void (*reconnected)(uint64_t id, int descriptor) = nullptr;
  void (*due)(uint64_t what) = nullptr;
  void (*log)(int level, const char* text) = nullptr;
};

// kEngineEntry of the engine: false where the versions differ.
using EngineEntry = bool (*)(const HostCalls& host, EngineCalls& engine);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_INTERFACE_H_
