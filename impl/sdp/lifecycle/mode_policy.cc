#include "impl/sdp/lifecycle/mode_policy.h"

namespace esdp::sdp {

void ModePolicy::Want(ModeWish send, ModeWish receive) {
  send_ = send;
  receive_ = receive;
  raised_ = false;
  hints_from_ = receive == ModeWish::kPipelined ? 0 : receive == ModeWish::kAutomatic ? 2 : kNever;
}

void ModePolicy::OnHint() {
  hinted_ = true;
  refusals_ = 0;
}

void ModePolicy::OnRaised() {
  raised_ = true;
  OnHint();
}

void ModePolicy::OnRefused() {
  hinted_ = false;
  if (refusals_ < kRefusalsToBuffered) ++refusals_;
}

void ModePolicy::OnRead() { refusals_ = 0; }

ModeWish ModePolicy::Target(Mode now, uint32_t large_sends) const {
  // Two ends that want different things would change the mode for ever.
  if (send_ == ModeWish::kBuffered && raised_) return ModeWish::kCombined;
  if (send_ != ModeWish::kAutomatic) return send_;
  if (now == Mode::kPipelined) {
    return refusals_ >= kRefusalsToCombined ? ModeWish::kCombined : ModeWish::kPipelined;
  }
  if (refusals_ >= kRefusalsToBuffered) return ModeWish::kBuffered;
  const bool asked = large_sends >= 2 || hinted_;
  return asked && refusals_ == 0 ? ModeWish::kPipelined : ModeWish::kCombined;
}

std::optional<Mode> ModePolicy::NextSend(Mode now, uint32_t large_sends) const {
  const ModeWish target = Target(now, large_sends);
  if (now == Mode::kPipelined && target != ModeWish::kPipelined) return Mode::kCombined;
  if (now != Mode::kCombined) return std::nullopt;  // Buffered: the sink is the master
  if (target == ModeWish::kPipelined) return Mode::kPipelined;
  if (target == ModeWish::kBuffered) return Mode::kBuffered;
  return std::nullopt;
}

std::optional<Mode> ModePolicy::NextReceive(Mode now, uint32_t large_receives) const {
  if (now != Mode::kBuffered || receive_ == ModeWish::kBuffered) return std::nullopt;
  if (receive_ == ModeWish::kAutomatic && large_receives == 0) return std::nullopt;
  return Mode::kCombined;
}

// [R5.24]
void ModePolicy::AddTo(Digest& digest) const {
  digest.Add(static_cast<uint8_t>(send_)).Add(static_cast<uint8_t>(receive_));
  digest.Add(refusals_).Add(hinted_).Add(raised_);
}

}  // namespace esdp::sdp
