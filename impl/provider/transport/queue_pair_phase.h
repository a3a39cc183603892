#ifndef ESDP_IMPL_PROVIDER_TRANSPORT_QUEUE_PAIR_PHASE_H_
#define ESDP_IMPL_PROVIDER_TRANSPORT_QUEUE_PAIR_PHASE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/base/moves.h"

// queue_pair_phases.def as types: an enumeration, names, Next() and the whole listing.

namespace esdp::provider {

enum class QueuePairPhase : uint8_t {
#define ESDP_QUEUE_PAIR_PHASE(name) k##name,
#include "impl/provider/transport/queue_pair_phases.def"
};

enum class QueuePairCue : uint8_t {
#define ESDP_QUEUE_PAIR_CUE(name) k##name,
#include "impl/provider/transport/queue_pair_phases.def"
};

inline constexpr std::array kQueuePairPhaseNames = {
#define ESDP_QUEUE_PAIR_PHASE(name) #name,
#include "impl/provider/transport/queue_pair_phases.def"
};
inline constexpr std::array kQueuePairCueNames = {
#define ESDP_QUEUE_PAIR_CUE(name) #name,
#include "impl/provider/transport/queue_pair_phases.def"
};

using QueuePairMove = LegalMove<QueuePairPhase, QueuePairCue>;

inline constexpr std::array kQueuePairMoves = {
#define ESDP_QUEUE_PAIR_MOVE(from, cue, to) \
  QueuePairMove{QueuePairPhase::k##from, QueuePairCue::k##cue, QueuePairPhase::k##to},
#include "impl/provider/transport/queue_pair_phases.def"
};

// Where `cue` leads; nothing if it is not legal in `from`.
constexpr std::optional<QueuePairPhase> Next(QueuePairPhase from, QueuePairCue cue) {
  return NextIn(kQueuePairMoves, from, cue);
}

// An illegal move is reported, and the phase stays.
inline bool Move(QueuePairPhase& phase, QueuePairCue cue) {
  return MoveIn(kQueuePairMoves, phase, cue);
}

// It has never been ready.
constexpr bool IsSettingUp(QueuePairPhase phase) { return phase < QueuePairPhase::kReady; }
// Work may be posted, and what comes back counts.
constexpr bool TakesWork(QueuePairPhase phase) { return phase < QueuePairPhase::kLost; }

static_assert(Next(QueuePairPhase::kReady, QueuePairCue::kEndAsked) == QueuePairPhase::kEnding);
static_assert(!Next(QueuePairPhase::kReady, QueuePairCue::kReplaced).has_value());

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_TRANSPORT_QUEUE_PAIR_PHASE_H_
