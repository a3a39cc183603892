#include "impl/sdp/lifecycle/mode.h"

namespace esdp::sdp {

// [R5.2, R5.4, R5.21]
std::optional<wire::ModeChange> Modes::ChangeOfSend(Mode to) const {
  if (frozen() || !MayChange(send_, to, Role::kSource)) return std::nullopt;
  return wire::ModeChange{/*changes_send_half=*/false, to};
}

std::optional<wire::ModeChange> Modes::ChangeOfReceive(Mode to) const {
  if (frozen() || !MayChange(receive_, to, Role::kSink)) return std::nullopt;
  return wire::ModeChange{/*changes_send_half=*/true, to};
}

void Modes::OnPosted(const wire::ModeChange& change, uint32_t sequence) {
  // [R5.6] At once. The message names the half as its receiver sees it.
  if (!change.changes_send_half && send_ == Mode::kPipelined) frozen_until_ = sequence;
  (change.changes_send_half ? receive_ : send_) = change.mode;
}

Modes::Change Modes::OnModeChange(const wire::ModeChange& change) {
  Mode& mode = change.changes_send_half ? send_ : receive_;
  if (change.mode == mode) return Change::kNone;  // [R5.4]
  const Role peer = change.changes_send_half ? Role::kSink : Role::kSource;
  if (!MayChange(mode, change.mode, peer)) return Change::kIllegal;  // [R5.3, R5.5]
  const bool raised = change.mode > mode;
  mode = change.mode;  // [R5.6]
  if (change.changes_send_half) return Change::kSendRaised;
  return raised ? Change::kReceiveRaised : Change::kReceiveLowered;
}

void Modes::AddTo(Digest& digest) const {
  digest.Add(static_cast<uint8_t>(send_)).Add(static_cast<uint8_t>(receive_));
  digest.Add(frozen_until_ ? uint64_t{1} << 32 | *frozen_until_ : 0);
}

}  // namespace esdp::sdp
