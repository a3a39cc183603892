#include "impl/sdp/flow/receive_window.h"

#include <algorithm>

namespace esdp::sdp {

void ReceiveWindow::EndTurn(uint64_t window_bytes, Time now) {
  LeaveTurn();
  const Duration turn = now - turn_began_;
  // A sender that rests says nothing about the path, and small payload needs no larger window.
  if (turn > kLongestTurn || 2 * turn_bytes_ < window_bytes) return;
  shortest_ = std::min(shortest_, turn);
  if (rest_ > 0) {
    --rest_;
    return;
  }
  if (never_short_ || shortest_ < kShortestTurn || 2 * turn > 3 * shortest_) return;
  if (buffers_ == most_ || asked_ != 0) return;
  wanted_ = static_cast<uint16_t>(std::min<uint32_t>(most_, 2u * buffers_));
}

bool ReceiveWindow::Ask(uint64_t room) {
  const uint16_t wanted = wanted_;
  wanted_ = 0;
  if (wanted <= buffers_) {  // it shrinks
    asked_ = wanted;
  } else {
    asked_ = static_cast<uint16_t>(std::min<uint64_t>(wanted, room));
    if (asked_ <= buffers_) asked_ = 0;
  }
  return asked_ != 0;
}

void ReceiveWindow::OnAnswered(bool done) {
  if (done) {
    buffers_ = asked_;
    if (!grown()) ForgetThePath();
  } else {
    rest_ = kTurnsAfterRefusal;
  }
  asked_ = 0;
}

void ReceiveWindow::AddTo(Digest& digest) const {
  digest.Add(buffers_)
      .Add(wanted_)
      .Add(asked_)
      .Add(rest_)
      .Add(in_turn_)
      .Add(never_short_)
      .Add(announced_by_)
      .Add(turn_end_);
  digest.Add(turn_bytes_).Add(static_cast<uint64_t>(turn_began_.time_since_epoch().count()));
  digest.Add(static_cast<uint64_t>(shortest_.count()));
}

}  // namespace esdp::sdp
