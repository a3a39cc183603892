#ifndef ESDP_IMPL_SDP_MACHINES_H_
#define ESDP_IMPL_SDP_MACHINES_H_

#include <array>
#include <cstdint>
#include <optional>

// The tables of legal moves as types: an enumeration, names, Next() and the whole listing. One
// table so far, the phase of a connection; the data delivery modes of each half get theirs beside
// it.

namespace esdp::sdp {

enum class Phase : uint8_t {
#define ESDP_PHASE(name) k##name,
#include "impl/sdp/phases.def"
};

enum class PhaseCue : uint8_t {
#define ESDP_PHASE_CUE(name) k##name,
#include "impl/sdp/phases.def"
};

inline constexpr std::array kPhaseNames = {
#define ESDP_PHASE(name) #name,
#include "impl/sdp/phases.def"
};
inline constexpr std::array kPhaseCueNames = {
#define ESDP_PHASE_CUE(name) #name,
#include "impl/sdp/phases.def"
};
inline constexpr size_t kPhaseCount = kPhaseNames.size();
inline constexpr size_t kPhaseCueCount = kPhaseCueNames.size();

constexpr const char* ToString(Phase phase) { return kPhaseNames[static_cast<size_t>(phase)]; }
constexpr const char* ToString(PhaseCue cue) { return kPhaseCueNames[static_cast<size_t>(cue)]; }

struct PhaseMove {
  Phase from;
  PhaseCue cue;
  Phase to;
};

inline constexpr std::array kPhaseMoves = {
#define ESDP_PHASE_MOVE(from, cue, to) PhaseMove{Phase::k##from, PhaseCue::k##cue, Phase::k##to},
#include "impl/sdp/phases.def"
};

// Where `cue` leads; nothing if it is not legal in `from`.
constexpr std::optional<Phase> Next(Phase from, PhaseCue cue) {
  for (const PhaseMove& move : kPhaseMoves) {
    if (move.from == from && move.cue == cue) return move.to;
  }
  return std::nullopt;
}

// The queue pair carries messages both ways.
constexpr bool IsOpen(Phase phase) {
  return phase >= Phase::kEstablished && phase <= Phase::kLastAck;
}

static_assert(Next(Phase::kFinWait1, PhaseCue::kDisConnArrived) == Phase::kTimeWait);
static_assert(!Next(Phase::kCloseWait, PhaseCue::kDisConnArrived).has_value());  // [17] once

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_MACHINES_H_
