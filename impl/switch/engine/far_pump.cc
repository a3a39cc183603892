#include "impl/switch/engine/far_pump.h"

#include <utility>

namespace esdp::switching {

FarPump::FarPump(std::unique_ptr<FarEnd> far, const ProgramEnd& program, size_t buffer_bytes)
    : far_(std::move(far)), program_(program) {
  out_.bytes.resize(buffer_bytes);
  in_.bytes.resize(buffer_bytes);
}

void FarPump::Move() {
  while (!in_failed_ && !reset_by_program_ && (MoveOut() || MoveIn())) continue;
}

// Each: whether something has moved.
bool FarPump::MoveOut() {
  bool moved = false;
  if (out_failed_) return false;
  if (out_.begin == out_.end && !out_.last) {
    const auto result = program_.Read(out_.bytes.data(), out_.bytes.size(), out_.end, out_.urgent);
    out_.begin = 0;
    moved = result == ProgramEnd::Result::kMoved;
    reset_by_program_ = reset_by_program_ || result == ProgramEnd::Result::kReset;
    out_.last = result == ProgramEnd::Result::kEnded;
  }
  if (out_.begin < out_.end) {
    size_t done = 0;
    const auto result =
        far_->Write(out_.bytes.data() + out_.begin, out_.end - out_.begin, done, out_.urgent);
    out_failed_ = result == FarEnd::Result::kReset;
    if (done == 0) return moved;
    out_.begin += done;
    sent_ += done;
    moved = true;
  }
  if (out_.last && out_.begin == out_.end && !out_.ended) {
    far_->EndOfOutput();
    out_.ended = moved = true;
  }
  return moved;
}

bool FarPump::MoveIn() {
  bool moved = false;
  if (holds_input_) return false;
  if (in_.begin == in_.end && !in_.last) {
    const auto result = far_->Read(in_.bytes.data(), in_.bytes.size(), in_.end, in_.urgent);
    in_failed_ = result == FarEnd::Result::kReset;
    in_.begin = 0;
    received_ += in_.end;
    in_.last = result == FarEnd::Result::kEnded;
    moved = in_.end > 0;
  }
  if (in_.begin < in_.end) {
    size_t done = 0;
    const auto result =
        program_.Write(in_.bytes.data() + in_.begin, in_.end - in_.begin, done, in_.urgent);
    if (result == ProgramEnd::Result::kEnded) {
      reset_by_program_ = program_.IsClosed();
      done = in_.end - in_.begin;
    }
    in_.begin += done;
    moved = moved || done > 0;
  }
  if (in_.last && in_.begin == in_.end && !in_.ended) {
    program_.EndOfInput();
    in_.ended = moved = true;
  }
  return moved;
}

}  // namespace esdp::switching
