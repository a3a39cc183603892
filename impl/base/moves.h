#ifndef ESDP_IMPL_BASE_MOVES_H_
#define ESDP_IMPL_BASE_MOVES_H_

#include <array>
#include <cstddef>
#include <optional>

#include "impl/base/check.h"

// State machines as tables: what is not a row is illegal.

namespace esdp {

template <typename State, typename Cue>
struct LegalMove {
  State from;
  Cue cue;
  State to;
};

// Where `cue` leads; nothing if it is not legal in `from`.
template <typename State, typename Cue, size_t kMoves>
constexpr std::optional<State> NextIn(const std::array<LegalMove<State, Cue>, kMoves>& moves,
                                      State from, Cue cue) {
  for (const LegalMove<State, Cue>& move : moves) {
    if (move.from == from && move.cue == cue) return move.to;
  }
  return std::nullopt;
}

// An illegal move is reported, and the state stays.
template <typename State, typename Cue, size_t kMoves>
bool MoveIn(const std::array<LegalMove<State, Cue>, kMoves>& moves, State& state, Cue cue) {
  const std::optional<State> next = NextIn(moves, state, cue);
  if (!ESDP_CHECK(next.has_value())) return false;
  state = *next;
  return true;
}

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_MOVES_H_
