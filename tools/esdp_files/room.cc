#include "tools/esdp_files/room.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

namespace esdp_files {
namespace {

// Beside what the file has already, anywhere.
bool Fits(int fd, uint64_t length) {
  struct stat file {};
  struct statvfs system {};
  if (fstat(fd, &file) != 0 || fstatvfs(fd, &system) != 0) return true;
  if (system.f_frsize == 0 || system.f_blocks == 0) return true;  // it has no limit of its own
  const uint64_t own = static_cast<uint64_t>(file.st_blocks) * 512;
  return length <= own || (length - own) / system.f_frsize <= system.f_bfree;
}

}  // namespace

int ReserveRoom(int fd, uint64_t offset, uint64_t length) {
  if (length == 0) return 0;
  if (!Fits(fd, length)) return ENOSPC;
  const auto begin = static_cast<off_t>(offset);
  if (fallocate(fd, FALLOC_FL_KEEP_SIZE, begin, static_cast<off_t>(length)) == 0) return 0;
  const int error = errno;
  if (error != ENOSPC && error != EDQUOT && error != EFBIG) return 0;
  struct stat file {};
  // Gives back what it took.
  if (fstat(fd, &file) == 0 && ftruncate(fd, file.st_size) != 0) return error;
  return error;
}

}  // namespace esdp_files
