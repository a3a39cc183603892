#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "impl/exs/convert.h"
#include "impl/exs/entry.h"
#include "impl/exs/memory_part.h"
#include "impl/exs/poll_set.h"

// exs_sendfile and exs_poll.

namespace esdp::exs {
namespace {

constexpr uint64_t kPartsMax = 1024;
constexpr int kFdsMax = 65536;

int MakeFilePart(const exs_fdvec_t& file, Part* part) {
  if (file.exs_fdv_offset > INT64_MAX || file.exs_fdv_len > INT64_MAX - file.exs_fdv_offset) {
    return EINVAL;
  }
  const int mode = fcntl(file.exs_fdv_fd, F_GETFL);
  if (mode < 0 || (mode & O_ACCMODE) == O_WRONLY) return EBADF;
  struct stat details;
  if (lseek(file.exs_fdv_fd, 0, SEEK_CUR) < 0 || fstat(file.exs_fdv_fd, &details) != 0) {
    return ESPIPE;
  }
  part->file = OwnedFd(fcntl(file.exs_fdv_fd, F_DUPFD_CLOEXEC, 0));
  if (!part->file.valid()) return errno;
  part->is_regular = S_ISREG(details.st_mode);
  part->offset = file.exs_fdv_offset;
  part->length = file.exs_fdv_len;
  return 0;
}

int MakePart(Library& library, const exsx_xferpart_t& given, Part* part) {
  if (given.exsx_xfp_kind == EXS_FDVEC) return MakeFilePart(given.exsx_xfp.exsx_xfp_fdv, part);
  if (given.exsx_xfp_kind != EXS_IOVEC) return EINVAL;
  return MakeMemoryPart(library, given.exsx_xfp.exsx_xfp_iov, part);
}

// `post(transfer)` does it.
template <typename Post>
int SendFile(Library& library, Operation& filled, exs_xferfile_t* file, int flags,
             const Post& post) {
  if (file == nullptr || (file->exs_xf_parts == nullptr && file->exs_xf_count > 0)) return EFAULT;
  if (flags != 0 || file->exs_xf_count == 0 || file->exs_xf_count > kPartsMax) return EINVAL;
  filled.file = file;
  Transfer transfer;
  for (uint64_t i = 0; i < file->exs_xf_count; ++i) {
    Part& part = transfer.parts.emplace_back();
    if (const int error = MakePart(library, file->exs_xf_parts[i], &part); error != 0) return error;
  }
  return post(std::move(transfer));
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
  using esdp::exs::Transfer;
  return esdp::exs::EnterPost(
      {fd, queue, EXS_EVT_SENDFILE, handle}, 1,
      [&](auto& library, auto& socket, auto& found, auto& filled) {
        return esdp::exs::SendFile(library, filled, file, flags, [&](Transfer transfer) {
          return socket.PostTransfer(found, filled, std::move(transfer));
        });
      },
      [&](auto& library, auto& stream, auto& found, auto& filled) {
        return esdp::exs::SendFile(library, filled, file, flags, [&](Transfer transfer) {
          return stream.Post(found.shared_from_this(), filled, std::move(transfer));
        });
      });
}

int exs_poll(exs_pollfd_t* fds, int count, int flags, exs_qhandle_t queue, exs_ahandle_t handle) {
  return esdp::exs::Enter(
      [&](auto& library) { return esdp::exs::Poll(library, fds, count, flags, queue, handle); });
}

}  // extern "C"
