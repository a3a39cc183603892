#include "tools/esdp_files/file_digest.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace esdp_files {

FileDigest::~FileDigest() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FileDigest::Allow(uint64_t end) {
  {
    const std::lock_guard lock(mutex_);
    allowed_ = std::max(allowed_, end);
  }
  changed_.notify_all();
}

uint64_t FileDigest::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

absl::StatusOr<bool> FileDigest::WaitFor(uint64_t end, absl::Duration patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoMilliseconds(patience),
                    [&] { return done_ >= end || !status_.ok(); });
  if (!status_.ok()) return status_;
  return done_ >= end;
}

void FileDigest::Run() {
  std::vector<std::byte> piece(size_t{1} << 20);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || done_ < allowed_; });
    if (ending_) return;
    const uint64_t offset = done_;
    const size_t length = std::min<uint64_t>(allowed_ - offset, piece.size());
    lock.unlock();
    absl::Status read = read_(offset, piece.data(), length);
    if (read.ok()) digest_.Add(piece.data(), length);
    lock.lock();
    status_ = std::move(read);
    if (status_.ok()) done_ += length;
    changed_.notify_all();
    if (!status_.ok()) return;
  }
}

}  // namespace esdp_files
