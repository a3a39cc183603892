#ifndef ESDP_IMPL_SDP_LIFECYCLE_MACHINES_H_
#define ESDP_IMPL_SDP_LIFECYCLE_MACHINES_H_

#include <array>
#include <cstdint>
#include <optional>

#include "impl/base/moves.h"
#include "impl/sdp/wire/messages.h"

// The tables of legal moves as types: an enumeration, names, Next() and the whole listing. The
// phase of a connection, and the data delivery modes of each of its halves.

namespace esdp::sdp {

enum class Phase : uint8_t {
#define ESDP_PHASE(name) k##name,
#include "impl/sdp/lifecycle/phases.def"
};

enum class PhaseCue : uint8_t {
#define ESDP_PHASE_CUE(name) k##name,
#include "impl/sdp/lifecycle/phases.def"
};

inline constexpr std::array kPhaseNames = {
#define ESDP_PHASE(name) #name,
#include "impl/sdp/lifecycle/phases.def"
};
inline constexpr std::array kPhaseCueNames = {
#define ESDP_PHASE_CUE(name) #name,
#include "impl/sdp/lifecycle/phases.def"
};
inline constexpr size_t kPhaseCount = kPhaseNames.size();
inline constexpr size_t kPhaseCueCount = kPhaseCueNames.size();

constexpr const char* ToString(Phase phase) { return kPhaseNames[static_cast<size_t>(phase)]; }
constexpr const char* ToString(PhaseCue cue) { return kPhaseCueNames[static_cast<size_t>(cue)]; }

using PhaseMove = LegalMove<Phase, PhaseCue>;

inline constexpr std::array kPhaseMoves = {
#define ESDP_PHASE_MOVE(from, cue, to) PhaseMove{Phase::k##from, PhaseCue::k##cue, Phase::k##to},
#include "impl/sdp/lifecycle/phases.def"
};

// Where `cue` leads; nothing if it is not legal in `from`.
constexpr std::optional<Phase> Next(Phase from, PhaseCue cue) {
  return NextIn(kPhaseMoves, from, cue);
}

// The queue pair carries messages both ways.
constexpr bool IsOpen(Phase phase) {
  return phase >= Phase::kEstablished && phase <= Phase::kSuspending;
}

// The root cause is known and the queue pair is ending, or no byte moves any more.
constexpr bool IsOver(Phase phase) { return phase == Phase::kAborting || phase == Phase::kClosed; }

// The connection is there, whether or not it has a queue pair at the moment.
constexpr bool IsAlive(Phase phase) {
  return phase >= Phase::kEstablished && phase <= Phase::kResuming;
}

static_assert(Next(Phase::kFinWait1, PhaseCue::kDisConnArrived) == Phase::kTimeWait);
static_assert(!Next(Phase::kCloseWait, PhaseCue::kDisConnArrived).has_value());  // [R17.8] once

// --- the data delivery mode of a half-connection [5] ---

using wire::Mode;

enum class Role : uint8_t { kSource, kSink };  // in one half-connection
enum class AdvertAllowance : uint8_t { kNone, kOne, kMany };

inline constexpr std::array kModeNames = {
#define ESDP_MODE(name, master) #name,
#include "impl/sdp/lifecycle/modes.def"
};
inline constexpr std::array kModeMasters = {
#define ESDP_MODE(name, master) Role::k##master,
#include "impl/sdp/lifecycle/modes.def"
};
inline constexpr size_t kModeCount = kModeNames.size();

constexpr const char* ToString(Mode mode) { return kModeNames[static_cast<size_t>(mode)]; }
// Who may order a change of this mode.
constexpr Role MasterOf(Mode mode) { return kModeMasters[static_cast<size_t>(mode)]; }

struct ModeMove {
  Mode from;
  Mode to;
  Role master;
};

inline constexpr std::array kModeMoves = {
#define ESDP_MODE_MOVE(from, to, master) ModeMove{Mode::k##from, Mode::k##to, Role::k##master},
#include "impl/sdp/lifecycle/modes.def"
};

// Whether the peer that plays `role` in the half may order this change.
constexpr bool MayChange(Mode from, Mode to, Role role) {
  for (const ModeMove& move : kModeMoves) {
    if (move.from == from && move.to == to) return move.master == role;
  }
  return false;
}

// What one end may do.
struct ModePermits {
  Mode send, receive;
  bool read, write;
  AdvertAllowance source_adverts, sink_adverts;
  AdvertAllowance source_adverts_accepted, sink_adverts_accepted;
};

inline constexpr std::array kModePermits = {
#define ESDP_MODE_PERMITS(send, receive, read, write, sources, sinks, sources_taken, sinks_taken) \
  ModePermits{Mode::k##send,                                                                      \
              Mode::k##receive,                                                                   \
              read,                                                                               \
              write,                                                                              \
              AdvertAllowance::k##sources,                                                        \
              AdvertAllowance::k##sinks,                                                          \
              AdvertAllowance::k##sources_taken,                                                  \
              AdvertAllowance::k##sinks_taken},
#include "impl/sdp/lifecycle/modes.def"
};

constexpr const ModePermits& Permits(Mode send, Mode receive) {
  return kModePermits[kModeCount * static_cast<size_t>(send) + static_cast<size_t>(receive)];
}

static_assert(Permits(Mode::kPipelined, Mode::kCombined).send == Mode::kPipelined &&
              Permits(Mode::kPipelined, Mode::kCombined).receive == Mode::kCombined);
static_assert(!MayChange(Mode::kBuffered, Mode::kPipelined, Role::kSource));

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_LIFECYCLE_MACHINES_H_
