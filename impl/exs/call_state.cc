#include "impl/exs/call_state.h"

namespace esdp::exs {

std::shared_ptr<SendBuffer> CallState::buffer(const std::weak_ptr<ExsSocket>& socket) {
  const std::lock_guard lock(mutex_);
  if (buffer_ == nullptr) buffer_ = std::make_shared<SendBuffer>(socket);
  return buffer_;
}

bool CallState::has_room() const {
  const std::lock_guard lock(mutex_);
  return buffer_ == nullptr || buffer_->has_room();
}

size_t CallState::unsent() const {
  const std::lock_guard lock(mutex_);
  return buffer_ == nullptr ? 0 : buffer_->unsent();
}

void CallState::Leave() {
  std::shared_ptr<SendBuffer> buffer;
  {
    const std::lock_guard lock(mutex_);
    buffer = buffer_;
  }
  if (buffer != nullptr) buffer->Leave();
}

}  // namespace esdp::exs
