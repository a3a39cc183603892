#include <algorithm>

#include "impl/sdp/common/limits.h"
#include "impl/sdp/connection.h"

// Receive buffers of another size: requests, answers, and the memory for them [11]. And of another
// number, which nobody is asked for: each message tells how many there are.

namespace esdp::sdp {

void Connection::OnChRcvBuf(const wire::ChRcvBuf& request, Actions& actions) {
  if (resize_out_.outstanding()) {
    if (!config_.connecting) return;  // [R11.8] both at once: the accepting side disregards
    resize_out_.OnDisregarded();
    ApplySize();
  }
  switch (resize_in_.OnChRcvBuf(request.desired_size)) {
    case ResizeAnswer::Next::kViolation:
      return Fail(Outcome::kPeerProtocol, "ChRcvBuf: one is unacknowledged", actions);
    case ResizeAnswer::Next::kAnswer:
      return;
    case ResizeAnswer::Next::kPrepare:
      actions.emplace_back(PrepareReceives{resize_in_.wanted(), buffers_.window().buffers()});
      return;
  }
}

void Connection::OnChRcvBufAck(const wire::ChRcvBufAck& answer, const wire::BaseHeader& header,
                               Actions& actions) {
  if (const char* violation = resize_out_.OnAck(answer.actual_size, header)) {
    return Fail(Outcome::kPeerProtocol, violation, actions);
  }
  ApplySize();
}

void Connection::On(const ReceivesPrepared& prepared, Actions& actions) {
  if (resize_in_.preparing()) return resize_in_.OnPrepared(prepared.done, credits_.posted());
  if (buffers_.window().asked() == 0) return;
  buffers_.OnWindowAnswered(prepared.done, actions);
  if (MayPostReceives()) buffers_.PostFree(resize_in_.size(), credits_, actions);
  window_seen_ = credits_.last_received();
  const bool grown = buffers_.window().grown();
  Arm(Timer::kWindow, grown ? AddSaturating(now_, kWindowIdle) : kTimeInfinite, window_armed_,
      actions);
}

void Connection::ApplySize() {
  // [R6.1, R11.10]
  const uint32_t payload = resize_out_.size() - uint32_t{wire::kBaseHeaderBytes};
  send_.SetPayloadMax(std::min(payload, kDataBytesMax));
}

// A message of the size that the answer allows has to fit into each SinkAvail that it may meet: our
// answer waits for those that are too small, and we do not use the peer's while we see any of its.
void Connection::SendResize(Actions& actions) {
  if (resize_in_.due() && sink_.Fit(resize_in_.size()) && MaySendControl()) {
    counters_.receive_resizes += resize_in_.size() != resize_in_.told() ? 1u : 0u;
    Stamp(NewSend(resize_in_.Take(), actions), SendKind::kControl, false);
  }
  if (writer_.live() == 0 && resize_out_.Rises(credits_.last_sent())) {
    ++counters_.peer_resizes;
    ApplySize();
  }
  if (resize_in_.pending() || teardown_.shut() || !MaySendControl()) return;
  if (!resize_out_.Due()) return;
  if (resize_out_.lowers() && send_.holds_copies()) return;  // filled for the size there was
  Stamp(NewSend(resize_out_.Take(credits_.last_sent() + 1), actions), SendKind::kControl, false);
  ApplySize();
}

// --- the window ---

// Not while buffers of another size are being exchanged for these, nor while a shrunk window's
// surplus is still out; and one answer at a time.
void Connection::ChangeWindow(Actions& actions) {
  if (resize_in_.pending() || buffers_.has_surplus() || Freezes()) return;
  if (source_.offering() || sink_.offering()) return;
  const uint64_t room = config_.receive_window_bytes / resize_in_.size();
  if (!buffers_.window().Ask(room)) return;
  actions.emplace_back(PrepareReceives{resize_in_.size(), buffers_.window().asked()});
}

// Unread bytes are in buffers that a smaller window may not have.
void Connection::OnWindowTimer(Actions& actions) {
  Arm(Timer::kWindow, AddSaturating(now_, kWindowIdle), window_armed_, actions);
  const uint32_t last = credits_.last_received();
  const bool idle = window_seen_ == last && receive_.buffers_held() == 0 && !reader_.active();
  window_seen_ = last;
  if (idle && IsOpen(phase_)) buffers_.window().Shrink();
}

}  // namespace esdp::sdp
