#ifndef ESDP_IMPL_PROVIDER_SESSION_VISIBILITY_H_
#define ESDP_IMPL_PROVIDER_SESSION_VISIBILITY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/base/moves.h"

// visibility.def as types: an enumeration, names, Next() and the whole listing.

namespace esdp::provider {

enum class Visibility : uint8_t {
#define ESDP_VISIBILITY(name) k##name,
#include "impl/provider/session/visibility.def"
};

enum class VisibilityCue : uint8_t {
#define ESDP_VISIBILITY_CUE(name) k##name,
#include "impl/provider/session/visibility.def"
};

inline constexpr std::array kVisibilityNames = {
#define ESDP_VISIBILITY(name) #name,
#include "impl/provider/session/visibility.def"
};
inline constexpr std::array kVisibilityCueNames = {
#define ESDP_VISIBILITY_CUE(name) #name,
#include "impl/provider/session/visibility.def"
};

using VisibilityMove = LegalMove<Visibility, VisibilityCue>;

inline constexpr std::array kVisibilityMoves = {
#define ESDP_VISIBILITY_MOVE(from, cue, to) \
  VisibilityMove{Visibility::k##from, VisibilityCue::k##cue, Visibility::k##to},
#include "impl/provider/session/visibility.def"
};

// Where `cue` leads; nothing if it is not legal in `from`.
constexpr std::optional<Visibility> Next(Visibility from, VisibilityCue cue) {
  return NextIn(kVisibilityMoves, from, cue);
}

// An illegal move is reported, and the state stays.
inline bool Move(Visibility& visibility, VisibilityCue cue) {
  return MoveIn(kVisibilityMoves, visibility, cue);
}

// No input reaches its core any more.
constexpr bool HasEnded(Visibility visibility) { return visibility >= Visibility::kClosed; }
// The front end has heard of it, and is to hear of its end.
constexpr bool IsKnown(Visibility visibility) {
  return visibility == Visibility::kAnnounced || visibility == Visibility::kClosed;
}

static_assert(Next(Visibility::kAnnounced, VisibilityCue::kEnded) == Visibility::kClosed);
static_assert(!Next(Visibility::kOrphaned, VisibilityCue::kAnnounced).has_value());

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SESSION_VISIBILITY_H_
