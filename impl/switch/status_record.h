#ifndef ESDP_IMPL_SWITCH_STATUS_RECORD_H_
#define ESDP_IMPL_SWITCH_STATUS_RECORD_H_

#include <array>
#include <cstdint>

#include "impl/switch/engine_interface.h"

// What a process shows of its connections: records of a fixed size in a memory file of its own, that
// is found among its descriptors by its name. It has no name in any folder, and goes with the
// process.

namespace esdp::switching {

inline constexpr char kStatusName[] = "esdp-switch-status";
inline constexpr uint32_t kStatusMagic = 0x45535731;  // "ESW1"
inline constexpr uint32_t kStatusRecords = 1024;

enum class Shown : uint8_t {
  kNothing,
  kPlain,
  kSettingUp,
  kSdp,
  kRelayedTcp,
  kEnded,
  kSdpLocal,  // moved to shared memory
  kSdpVerbs   // moved to a device
};

struct StatusHeader {
  uint32_t magic = kStatusMagic;
  uint32_t records = kStatusRecords;
  uint64_t made = 0;                        // records, ever
  uint64_t sdp_sent = 0, sdp_received = 0;  // bytes by SDP, of all connections
  uint64_t tcp_sent = 0, tcp_received = 0;  // bytes relayed over TCP
  std::array<uint64_t, 2> reserved{};
};
static_assert(sizeof(StatusHeader) == 64);

struct StatusRecord {
  uint32_t generation = 0;  // odd while it is written
  int32_t number = -1;
  Shown shown = Shown::kNothing;
  Role role = Role::kServer;
  Verdict verdict = Verdict::kTcp;
  Reason reason = Reason::kNone;
  uint16_t local_port = 0, peer_port = 0;
  std::array<uint8_t, 16> local{}, peer{};
  uint64_t sdp_sent = 0, sdp_received = 0;
  uint64_t tcp_sent = 0, tcp_received = 0;
  std::array<uint64_t, 2> reserved{};
};
static_assert(sizeof(StatusRecord) == 96);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_STATUS_RECORD_H_
