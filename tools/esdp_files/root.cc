#include "tools/esdp_files/root.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "tools/esdp_files/names.h"

namespace esdp_files {
namespace {

// With O_PATH openat2 takes no flag that means nothing then.
constexpr uint64_t Always(uint64_t flags) {
  return O_CLOEXEC | ((flags & O_PATH) != 0 ? 0 : O_NOCTTY);
}

constexpr int kTries = 4;  // where somebody renames what is being walked through

}  // namespace

uint64_t EtagOf(const struct stat& about) {
  const uint64_t facts[] = {
      about.st_dev,
      about.st_ino,
      static_cast<uint64_t>(about.st_size),
      static_cast<uint64_t>(about.st_mtim.tv_sec),
      static_cast<uint64_t>(about.st_mtim.tv_nsec),
      static_cast<uint64_t>(about.st_ctim.tv_sec),
      static_cast<uint64_t>(about.st_ctim.tv_nsec),
  };
  uint64_t hash = 0;
  for (const uint64_t fact : facts) {
    // The finaliser of SplitMix64.
    hash += fact + 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    hash ^= hash >> 31;
  }
  return hash == 0 ? 1 : hash;
}

absl::Status FileStatus(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError("no such file");
    case EXDEV:
    case ELOOP:
      return absl::PermissionDeniedError("the name leads out of what is served");
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError("the server may not");
    case ENAMETOOLONG:
    case EINVAL:
      return absl::InvalidArgumentError("that is no name of a file");
    case EISDIR:
      return absl::InvalidArgumentError("a folder");
    case ENXIO:
    case ENODEV:
      return absl::InvalidArgumentError("no regular file");
    case EEXIST:
      return absl::AlreadyExistsError("a file of that name is there");
    case EROFS:
      return absl::PermissionDeniedError("the file system is read-only");
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError("no room for it");
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::UnavailableError("the server has too much to do");
    default:
      return absl::DataLossError(std::string("the medium failed: ") + std::strerror(error));
  }
}

Root::Root(Descriptor folder, const RootOptions& options)
    : folder_(std::move(folder)), options_(options) {}

absl::StatusOr<Root> Root::Open(const std::string& path, const RootOptions& options) {
  Descriptor folder(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return absl::ErrnoToStatus(errno, path);
  Root root(std::move(folder), options);
  struct stat about {};
  if (fstat(root.folder_.get(), &about) != 0) return absl::ErrnoToStatus(errno, path);
  root.device_ = about.st_dev;
  // A kernel or a sandbox that has no openat2 answers so whatever is asked.
  const Descriptor probe(root.OpenAtOnce(".", O_PATH | O_DIRECTORY));
  if (!probe.valid() && (errno == ENOSYS || errno == EPERM)) root.options_.walk_by_parts = true;
  return root;
}

int Root::OpenAtOnce(const std::string& name, uint64_t flags) const {
  struct open_how how {};
  how.flags = flags | Always(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  if (!options_.follow_links) how.resolve |= RESOLVE_NO_SYMLINKS;
  if (options_.one_file_system) how.resolve |= RESOLVE_NO_XDEV;
  int fd = -1;
  for (int i = 0; i < kTries; ++i) {
    fd = static_cast<int>(syscall(SYS_openat2, folder_.get(), name.c_str(), &how, sizeof how));
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) break;
  }
  return fd;
}

int Root::OpenByParts(const std::string& name, uint64_t flags) const {
  Descriptor at(openat(folder_.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string_view rest = name;
  while (at.valid()) {
    const size_t slash = rest.find('/');
    const std::string part(rest.substr(0, slash));
    const bool last = slash == std::string_view::npos;
    const uint64_t how = last ? flags : uint64_t{O_PATH | O_DIRECTORY};
    if (!part.empty() || last) {
      at = Descriptor(openat(at.get(), part.empty() ? "." : part.c_str(),
                             static_cast<int>(how | O_NOFOLLOW | Always(how))));
      struct stat about {};
      if (at.valid() && fstat(at.get(), &about) != 0) return -1;
      if (at.valid() &&
          (S_ISLNK(about.st_mode) || (options_.one_file_system && about.st_dev != device_))) {
        errno = EXDEV;  // O_PATH opens a link itself
        return -1;
      }
    }
    if (last) break;
    rest.remove_prefix(slash + 1);
  }
  return at.Release();
}

absl::StatusOr<Descriptor> Root::OpenBelow(std::string_view name, uint64_t flags) const {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  const std::string path = name.empty() ? "." : std::string(name);
  Descriptor file(options_.walk_by_parts ? OpenByParts(path, flags) : OpenAtOnce(path, flags));
  if (!file.valid()) return FileStatus(errno);
  return file;
}

absl::StatusOr<struct stat> Root::Stat(std::string_view name) const {
  const auto found = OpenBelow(name, O_PATH);
  if (!found.ok()) return found.status();
  struct stat about {};
  if (fstat(found->get(), &about) != 0) return FileStatus(errno);
  return about;
}

absl::StatusOr<Descriptor> Root::OpenFile(std::string_view name) const {
  const auto about = Stat(name);
  if (!about.ok()) return about.status();
  if (!S_ISREG(about->st_mode)) return absl::InvalidArgumentError("no regular file");
  auto file = OpenBelow(name, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return file.status();
  struct stat again {};
  if (fstat(file->get(), &again) != 0) return FileStatus(errno);
  // Another one has come to that name in between.
  if (!S_ISREG(again.st_mode)) return absl::InvalidArgumentError("no regular file");
  return file;
}

absl::StatusOr<Descriptor> Root::OpenFolder(std::string_view name) const {
  auto folder = OpenBelow(name, O_RDONLY | O_DIRECTORY);
  if (absl::IsNotFound(folder.status()) && Stat(name).ok()) {
    return absl::InvalidArgumentError("no folder");
  }
  return folder;
}

}  // namespace esdp_files
