#include "impl/sdp/flow/receive_buffers.h"

#include <variant>

namespace esdp::sdp {

void ReceiveBuffers::PostAgainShrunk(ReceiveBuffer buffer, bool may_post, Credits& credits,
                                     Actions& actions) {
  KeepOrRetire(buffer, actions);
  if (may_post) PostFree(credits, actions);
}

void ReceiveBuffers::KeepOrRetire(ReceiveBuffer buffer, Actions& actions) {
  if (static_cast<uint32_t>(buffer) < count()) {
    spare_.PushBack(buffer);
    return;
  }
  --surplus_;
  actions.emplace_back(RetireReceive{buffer});
}

void ReceiveBuffers::OnWindowAnswered(bool done, Actions& actions) {
  const uint32_t before = count();
  window_.OnAnswered(done);
  for (uint32_t i = before; i < count(); ++i) {
    spare_.PushBack(ReceiveBuffer{static_cast<uint16_t>(i)});
  }
  if (count() >= before) return;
  waiting_ = 0;
  surplus_ = static_cast<uint16_t>(before - count());
  for (size_t left = spare_.size(); left > 0; --left) KeepOrRetire(spare_.TakeFront(), actions);
}

void ReceiveBuffers::NoteAnnouncement(const Actions& actions, Time now) {
  for (size_t i = 0; i < actions.size() && window_.awaits_announcement(); ++i) {
    const auto* send = std::get_if<Send>(&actions[i]);
    if (send == nullptr) continue;
    const wire::BaseHeader& header = send->message.base;
    if (header.buffers + waiting_ != window_.buffers()) continue;
    window_.OnAnnounced(header.sequence, header.acknowledged + header.buffers, now);
  }
}

bool ReceiveBuffers::EndsTurn(const MessageArrived& arrived, Time now) {
  const wire::BaseHeader& header = arrived.message.base;
  const uint32_t each = bytes() - uint32_t{wire::kBaseHeaderBytes};
  const uint64_t all = uint64_t{window_.buffers()} * each;
  if (std::holds_alternative<wire::Data>(arrived.message.body)) {
    window_.OnPayload(header.sequence, arrived.payload_length, all, now);
  } else {
    window_.OnAdvert(header.sequence, header.acknowledged, each, all, now);
  }
  return window_.due();
}

void ReceiveBuffers::AskForWindow(Actions& actions) {
  if (resize_.pending() || surplus_ > 0 || !window_.Ask(window_bytes_ / bytes())) return;
  actions.emplace_back(PrepareReceives{bytes(), window_.asked()});
}

const char* ReceiveBuffers::OnChRcvBuf(const wire::ChRcvBuf& request, Actions& actions) {
  switch (resize_.OnChRcvBuf(request.desired_size)) {
    case ResizeAnswer::Next::kViolation:
      return "ChRcvBuf: one is unacknowledged";
    case ResizeAnswer::Next::kAnswer:
      break;
    case ResizeAnswer::Next::kPrepare:
      actions.emplace_back(PrepareReceives{resize_.wanted(), window_.buffers()});
      break;
  }
  return nullptr;
}

void ReceiveBuffers::OnPrepared(bool done, bool may_post, Time now, Credits& credits,
                                Actions& actions) {
  if (resize_.preparing()) return resize_.OnPrepared(done, credits.posted());
  if (window_.asked() == 0) return;
  OnWindowAnswered(done, actions);
  if (may_post) PostFree(credits, actions);
  last_seen_ = credits.last_received();
  const Time look = window_.grown() ? AddSaturating(now, kWindowIdle) : kTimeInfinite;
  ArmTimer(Timer::kWindow, look, window_armed_, actions);
}

void ReceiveBuffers::OnWindowTimer(bool idle, Time now, const Credits& credits, Actions& actions) {
  ArmTimer(Timer::kWindow, AddSaturating(now, kWindowIdle), window_armed_, actions);
  const bool none_arrived = last_seen_ == credits.last_received();
  last_seen_ = credits.last_received();
  if (idle && none_arrived) window_.Shrink();
}

void ReceiveBuffers::AddTo(Digest& digest) const {
  window_.AddTo(digest);
  digest.Add(surplus_).Add(spare_.size()).Add(waiting_).Add(last_seen_);
  for (const ReceiveBuffer buffer : spare_) digest.Add(static_cast<uint16_t>(buffer));
  resize_.AddTo(digest);
}

}  // namespace esdp::sdp
