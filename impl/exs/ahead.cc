#include "impl/exs/ahead.h"

#include <algorithm>

namespace esdp::exs {

absl::Span<std::byte> Ahead::Room() {
  memory_.resize(kBytes);
  std::copy_n(memory_.begin() + static_cast<std::ptrdiff_t>(begin_), size(), memory_.begin());
  begin_ = 0;
  return absl::MakeSpan(memory_).subspan(size());
}

void Ahead::Add(size_t bytes, bool urgent) {
  urgent_ = urgent;
  size_.store(size() + bytes, std::memory_order_release);
}

size_t Ahead::Copy(absl::Span<std::byte> to, size_t offset) const {
  const size_t length = std::min(to.size(), size() - offset);
  if (length > 0) std::copy_n(memory_.data() + begin_ + offset, length, to.data());
  return length;
}

void Ahead::Drop(size_t bytes) {
  begin_ += bytes;
  size_.store(size() - bytes, std::memory_order_release);
  if (size() == 0) urgent_ = false;
}

}  // namespace esdp::exs
