#include "tools/esdp_files/read_whole.h"

#include <unistd.h>

#include <cerrno>

namespace esdp_files {

int ReadWhole(int fd, uint64_t offset, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : kEndsBefore;
    offset += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return 0;
}

}  // namespace esdp_files
