#include <fcntl.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "impl/exs/convert.h"
#include "impl/exs/entry.h"
#include "impl/exs/file_send.h"
#include "impl/exs/poll_set.h"

// exs_sendfile and exs_poll.

namespace esdp::exs {
namespace {

constexpr uint64_t kPartsMax = 1024;
constexpr int kFdsMax = 65536;

// Closes what it has unless a FileSend takes it.
class Parts {
 public:
  Parts() = default;
  ~Parts() {
    for (const FilePart& part : parts_) {
      if (part.fd >= 0) close(part.fd);
    }
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  int Add(Library& library, const exsx_xferpart_t& part) {
    if (part.exsx_xfp_kind == EXS_FDVEC) return AddFile(part.exsx_xfp.exsx_xfp_fdv);
    if (part.exsx_xfp_kind == EXS_IOVEC) return AddMemory(library, part.exsx_xfp.exsx_xfp_iov);
    return EINVAL;
  }
  std::vector<FilePart> Take() { return std::exchange(parts_, {}); }

 private:
  int AddFile(const exs_fdvec_t& file) {
    if (file.exs_fdv_offset > INT64_MAX || file.exs_fdv_len > INT64_MAX - file.exs_fdv_offset) {
      return EINVAL;
    }
    const int mode = fcntl(file.exs_fdv_fd, F_GETFL);
    if (mode < 0 || (mode & O_ACCMODE) == O_WRONLY) return EBADF;
    if (lseek(file.exs_fdv_fd, 0, SEEK_CUR) < 0) return ESPIPE;
    const int fd = fcntl(file.exs_fdv_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return errno;
    FilePart& part = parts_.emplace_back();
    part.fd = fd;
    part.offset = file.exs_fdv_offset;
    part.length = file.exs_fdv_len;
    return 0;
  }

  int AddMemory(Library& library, const exs_iovec_t& memory) {
    FilePart part;
    part.length = memory.exs_iov_len;
    if (part.length > 0 && memory.exs_iov_base == nullptr) return EFAULT;
    if (memory.exs_iov_mhandle != EXS_MHANDLE_UNREGISTERED) {
      const int error = library.memory().Find(memory.exs_iov_mhandle, memory.exs_iov_base,
                                              memory.exs_iov_len, &part.region, &part.slice);
      if (error != 0) return error;
    } else if (part.length > 0) {
      absl::StatusOr<Region> once = library.context().RegisterReadOnly(
          absl::MakeConstSpan(static_cast<const std::byte*>(memory.exs_iov_base), part.length));
      if (!once.ok()) return ErrnoOf(once.status());
      part.region = *std::move(once);
      part.slice = part.region.slice();
    }
    parts_.push_back(std::move(part));
    return 0;
  }

  std::vector<FilePart> parts_;
};

int SendFile(Library& library, ExsSocket& socket, Queue& queue, Operation& filled,
             exs_xferfile_t* file, int flags) {
  if (file == nullptr || (file->exs_xf_parts == nullptr && file->exs_xf_count > 0)) return EFAULT;
  if (flags != 0 || file->exs_xf_count == 0 || file->exs_xf_count > kPartsMax) return EINVAL;
  if (const int error = library.helper().Start(); error != 0) return error;
  filled.file = file;
  Parts parts;
  for (uint64_t i = 0; i < file->exs_xf_count; ++i) {
    if (const int error = parts.Add(library, file->exs_xf_parts[i]); error != 0) return error;
  }
  return socket.PostFile(queue, filled, parts.Take());
}

Answer Poll(Library& library, exs_pollfd_t* fds, int count, int flags, exs_qhandle_t queue,
            exs_ahandle_t handle) {
  std::shared_ptr<Queue> found;
  if (const int error = library.numbers().Find(queue, &found); error != 0) return Failed(error);
  if (flags != 0 || count < 1 || count > kFdsMax) return Failed(EINVAL);
  if (fds == nullptr) return Failed(EFAULT);
  if (!found->Reserve(1)) return Failed(EAGAIN);
  Operation operation;
  operation.type = EXS_EVT_POLL;
  operation.handle = handle;
  int error = ENOBUFS;
  try {
    error = PollSet::Make(library, found, operation, fds, count);
  } catch (const std::bad_alloc&) {
    error = ENOBUFS;
  }
  if (error != 0) found->Release(1);
  return Failed(error);
}

}  // namespace
}  // namespace esdp::exs

extern "C" {

int exs_sendfile(int fd, exs_xferfile_t* file, int flags, exs_qhandle_t queue,
                 exs_ahandle_t handle) {
  return esdp::exs::EnterPost({fd, queue, EXS_EVT_SENDFILE, handle}, 1,
                              [&](auto& library, auto& socket, auto& found, auto& filled) {
                                return esdp::exs::SendFile(library, socket, found, filled, file,
                                                           flags);
                              });
}

int exs_poll(exs_pollfd_t* fds, int count, int flags, exs_qhandle_t queue, exs_ahandle_t handle) {
  return esdp::exs::Enter(
      [&](auto& library) { return esdp::exs::Poll(library, fds, count, flags, queue, handle); });
}

}  // extern "C"
