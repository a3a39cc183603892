#ifndef ESDP_IMPL_SWITCH_RULES_RULE_H_
#define ESDP_IMPL_SWITCH_RULES_RULE_H_

#include <array>
#include <cstddef>
#include <cstdint>

// What a line of a rule file says, as values. Needs libc alone: the library that is preloaded has
// nothing else.

namespace esdp::switching {

enum class Role : uint8_t { kServer, kClient };

// kBoth: SDP where the peer is known to have it. kTry: SDP, and TCP where that is not answered.
enum class Verdict : uint8_t { kTcp, kSdp, kBoth, kTry };

enum class Mode : uint8_t { kRelay, kDirect };

// kAuto: what goes directly leaves TCP, once it has carried some bytes, where something better leads
// to the peer.
enum class SwitchFabric : uint8_t { kAuto, kQpip };

// An address of the internet with its port; IPv4 as IPv6 has it (::ffff:a.b.c.d).
struct Endpoint {
  std::array<uint8_t, 16> address{};
  uint16_t port = 0;
};

// The addresses whose first `bits` bits are those of `address`.
struct Network {
  std::array<uint8_t, 16> address{};
  uint8_t bits = 0;

  bool Contains(const std::array<uint8_t, 16>& other) const;
};

struct RuleOptions {
  static constexpr uint64_t kNever = UINT64_MAX;
  static constexpr uint32_t kMaxMilliseconds = 600'000;
  static constexpr uint64_t kMinBuffer = 4096, kMaxBuffer = 1u << 26;

  Mode mode = Mode::kRelay;
  SwitchFabric fabric = SwitchFabric::kAuto;  // of a server
  uint32_t wait_ms = 2;                       // of a server that speaks first, for a first byte
  uint32_t answer_ms = 3000;                  // of a client, for the answer of SDP
  uint64_t zcopy_bytes = 0;                   // from that size on zero-copy; 0: as the mode has it
  uint64_t buffer_bytes = 64 * 1024;
};

// How long a server of kSdp, which has nobody else to speak to, waits for a request.
inline constexpr uint32_t kRequestWithinMs = 3000;

struct Rule {
  Verdict verdict = Verdict::kTcp;
  Role role = Role::kServer;
  bool of_environment = false;  // not of the file
  uint32_t line = 0;            // of where it stands, from 1
  Network network;              // of the listener's own address, or of the one to connect to
  uint16_t first_port = 0, last_port = UINT16_MAX;
  RuleOptions options;

  bool Matches(Role asked, const Endpoint& where) const;
  bool MatchesAll() const;
};

// Where messages go to, and from which level on: 9 errors, 7 connections, 4 and 3 matches, 1 all.
struct LogTarget {
  enum class Kind : uint8_t { kNone, kStderr, kSyslog, kFile };
  static constexpr size_t kMaxPath = 256;

  Kind kind = Kind::kNone;
  uint8_t level = 9;
  std::array<char, kMaxPath> path{};
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_RULES_RULE_H_
