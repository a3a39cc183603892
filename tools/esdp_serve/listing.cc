#include "tools/esdp_serve/listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include "tools/esdp_files/names.h"

namespace esdp_serve {

namespace wire = esdp_files::wire;

namespace {

wire::Kind KindOf(mode_t mode) {
  if (S_ISREG(mode)) return wire::FILE;
  if (S_ISDIR(mode)) return wire::FOLDER;
  return S_ISLNK(mode) ? wire::LINK : wire::OTHER;
}

bool IsListed(std::string_view name) {
  return name != "." && name != ".." && !esdp_files::IsPartName(name);
}

// How long it is; 0 for what has gone meanwhile.
size_t AddEntry(int folder, const char* name, wire::Answer& answer) {
  struct stat about {};
  if (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  wire::Entry* const entry = answer.add_entries();
  entry->set_name(name);
  entry->set_kind(KindOf(about.st_mode));
  entry->set_size(static_cast<uint64_t>(about.st_size));
  entry->set_mtime_ns(esdp_files::ModifiedNs(about));
  constexpr size_t kAround = 4;  // what it is, and how long
  return entry->ByteSizeLong() + kAround;
}

}  // namespace

absl::Status ListPage(const wire::List& list, const esdp_files::Root& root, wire::Answer& answer) {
  auto folder = root.OpenFolder(list.name());
  if (!folder.ok()) return folder.status();
  const std::unique_ptr<DIR, int (*)(DIR*)> reader(fdopendir(folder->get()), closedir);
  if (reader == nullptr) return esdp_files::FileStatus(errno);
  folder->Release();
  if (list.cursor() != 0) seekdir(reader.get(), static_cast<int64_t>(list.cursor()));
  constexpr size_t kEntryBytesMax = 300;  // the longest name, and numbers
  size_t bytes = 0;
  while (true) {
    errno = 0;
    const dirent* const one = readdir(reader.get());
    if (one == nullptr) {
      answer.set_cursor(0);
      return errno == 0 ? absl::OkStatus() : esdp_files::FileStatus(errno);
    }
    const int64_t next = one->d_off;
    if (IsListed(one->d_name)) bytes += AddEntry(dirfd(reader.get()), one->d_name, answer);
    if (answer.entries_size() < kPageEntries && bytes + kEntryBytesMax < kPageBytes) continue;
    answer.set_cursor(static_cast<uint64_t>(next));
    return absl::OkStatus();
  }
}

}  // namespace esdp_serve
