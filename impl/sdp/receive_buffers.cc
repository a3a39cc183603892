#include "impl/sdp/receive_buffers.h"

namespace esdp::sdp {

void ReceiveBuffers::PostAgainShrunk(ReceiveBuffer buffer, bool may_post, uint32_t bytes,
                                     Credits& credits, Actions& actions) {
  KeepOrRetire(buffer, actions);
  if (may_post) PostFree(bytes, credits, actions);
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

void ReceiveBuffers::AddTo(Digest& digest) const {
  window_.AddTo(digest);
  digest.Add(surplus_).Add(spare_.size()).Add(waiting_);
  for (const ReceiveBuffer buffer : spare_) digest.Add(static_cast<uint16_t>(buffer));
}

}  // namespace esdp::sdp
