#include "impl/files/file_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <span>

namespace esdp::files {
namespace {

template <typename Call>
int64_t Restarted(Call call) {
  for (;;) {
    const auto answer = call();
    if (answer >= 0) return answer;
    if (errno != EINTR) return -errno;
  }
}

// Of what cannot fit nothing is taken, not even for a moment: a file system may give out all that it
// has before it says no. What the file has already, anywhere, is not taken again.
bool HasRoom(int descriptor, uint64_t length) {
  struct stat file {};
  struct statvfs system {};
  if (fstat(descriptor, &file) != 0 || fstatvfs(descriptor, &system) != 0) return true;
  if (system.f_frsize == 0 || system.f_blocks == 0) return true;  // it has no limit of its own
  const uint64_t own = static_cast<uint64_t>(file.st_blocks) * 512;
  return length <= own || (length - own) / system.f_frsize <= system.f_bfree;
}

// Another description of the same file, which has flags, hints and a read-ahead of its own.
int Reopen(int descriptor, int flags) {
  std::array<char, 32> path{};
  snprintf(path.data(), path.size(), "/proc/self/fd/%d", descriptor);
  return static_cast<int>(
      Restarted([&] { return open(path.data(), O_RDONLY | O_CLOEXEC | flags); }));
}

class SystemCalls final : public FileCalls {
 public:
  int Describe(int descriptor, FileDetails& details) override {
    struct stat status {};
    if (fstat(descriptor, &status) != 0) return errno;
    const int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0) return errno;
    details.regular = S_ISREG(status.st_mode);
    const int mode = flags & O_ACCMODE;
    // O_DIRECT takes whole units of the medium only.
    const bool moves_bytes = (flags & (O_PATH | O_DIRECT)) == 0;
    details.readable = moves_bytes && mode != O_WRONLY;
    // O_APPEND would put everything at the end of the file, whatever the offset.
    details.writable = moves_bytes && mode != O_RDONLY && (flags & O_APPEND) == 0;
    return 0;
  }

  int64_t Read(int descriptor, std::span<std::byte> to, uint64_t offset) override {
    return Restarted(
        [&] { return pread(descriptor, to.data(), to.size(), static_cast<off_t>(offset)); });
  }

  int64_t ReadCached(int descriptor, std::span<std::byte> to, uint64_t offset) override {
    const iovec one{to.data(), to.size()};
    const int64_t answer = Restarted(
        [&] { return preadv2(descriptor, &one, 1, static_cast<off_t>(offset), RWF_NOWAIT); });
    if (answer > 0 || answer == -EOPNOTSUPP) return answer;
    // Sandboxes have other words for it.
    if (answer == -ENOSYS || answer == -EPERM) return -EOPNOTSUPP;
    // 0 before the end of the file has been a fault of some kernels: who reads with a wait knows.
    return -EAGAIN;
  }

  int64_t Write(int descriptor, std::span<const std::byte> from, uint64_t offset) override {
    return Restarted(
        [&] { return pwrite(descriptor, from.data(), from.size(), static_cast<off_t>(offset)); });
  }

  int Sync(int descriptor) override {
    return static_cast<int>(-Restarted([&] { return fdatasync(descriptor); }));
  }

  void StartSync(int descriptor, uint64_t offset, uint64_t length) override {
    (void)sync_file_range(descriptor, static_cast<off_t>(offset), static_cast<off_t>(length),
                          SYNC_FILE_RANGE_WRITE);
  }

  // Not posix_fallocate, which writes where the file system cannot.
  int Reserve(int descriptor, uint64_t offset, uint64_t length) override {
    const auto begin = static_cast<off_t>(offset);
    const auto bytes = static_cast<off_t>(length);
    if (!HasRoom(descriptor, length)) return ENOSPC;
    const int64_t answer =
        Restarted([&] { return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, begin, bytes); });
    const bool refused = answer == -ENOSPC || answer == -EDQUOT || answer == -EFBIG;
    return refused ? static_cast<int>(-answer) : 0;
  }

  int MakeHole(int descriptor, uint64_t offset, uint64_t length) override {
    const auto begin = static_cast<off_t>(offset);
    const auto bytes = static_cast<off_t>(length);
    const auto punch = [&] {
      return fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, bytes);
    };
    if (const int64_t punched = Restarted(punch); punched != 0) return static_cast<int>(-punched);
    struct stat status {};
    if (fstat(descriptor, &status) != 0) return errno;
    if (status.st_size >= begin + bytes) return 0;
    // A last byte makes the file longer, and is a hole a moment later: ftruncate would cut off what
    // others have written behind it meanwhile.
    const std::byte zero{0};
    const int64_t written = Write(descriptor, {&zero, 1}, offset + length - 1);
    return static_cast<int>(-(written < 0 ? written : Restarted(punch)));
  }

  int Duplicate(int descriptor) override {
    return static_cast<int>(Restarted([&] { return fcntl(descriptor, F_DUPFD_CLOEXEC, 0); }));
  }

  int OpenDirect(int descriptor) override { return Reopen(descriptor, O_DIRECT); }

  int OpenSequential(int descriptor) override {
    const int reopened = Reopen(descriptor, 0);
    if (reopened >= 0) (void)posix_fadvise(reopened, 0, 0, POSIX_FADV_SEQUENTIAL);
    return reopened;
  }

  void DropCached(int descriptor, uint64_t offset, uint64_t length) override {
    (void)posix_fadvise(descriptor, static_cast<off_t>(offset), static_cast<off_t>(length),
                        POSIX_FADV_DONTNEED);
  }

  void Close(int descriptor) override { (void)close(descriptor); }
};

// Never destroyed, and there before anybody asks: a child of fork waits for no thread that makes it.
union Room {
  constexpr Room() : calls() {}
  ~Room() {}
  SystemCalls calls;
};
constinit Room room;

}  // namespace

FileCalls& FileCalls::System() { return room.calls; }

}  // namespace esdp::files
