#include "tools/esdp_serve/whole_digest.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <vector>

namespace esdp_serve {

namespace wire = esdp_files::wire;

void WholeDigest::AddNext() {
  constexpr uint64_t kPart = uint64_t{8} << 20;
  constexpr size_t kPiece = size_t{256} << 10;  // it is in the processor's cache when it is summed
  std::vector<std::byte> piece(kPiece);
  const auto size = static_cast<uint64_t>(opened_->about.st_size);
  const uint64_t end = std::min(size, offset_ + kPart);
  while (offset_ < end) {
    if (cancelled_) return End(wire::CANCELLED);
    const ssize_t count =
        pread(opened_->file.get(), piece.data(), std::min<uint64_t>(kPiece, end - offset_),
              static_cast<off_t>(offset_));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return End(wire::FAILED);
    digest_.Add(piece.data(), static_cast<size_t>(count));
    offset_ += static_cast<uint64_t>(count);
  }
  if (offset_ == size) End(CheckUnchanged(*opened_));
}

void WholeDigest::End(wire::Status status) {
  status_ = status;
  sum_ = digest_.Finish();
  done_ = true;
}

}  // namespace esdp_serve
