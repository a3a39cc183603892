#ifndef ESDP_TOOLS_ESDP_FILES_ROOT_H_
#define ESDP_TOOLS_ESDP_FILES_ROOT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/esdp_files/descriptor.h"

namespace esdp_files {

struct RootOptions {
  bool follow_links = true;      // those that stay below the root
  bool one_file_system = false;  // what is mounted below is not there
  bool walk_by_parts = false;    // as where the kernel has no openat2: no link is followed
};

// A Root opens what lies below one folder, by names that a peer has said, and nothing else.
//
//   Owns:     a descriptor of the folder.
//   Threads:  any.
//   Blocks:   as the file system does.
//   Units:    -
//   Errors:   NotFound, PermissionDenied (also a name that leads out of the root), InvalidArgument
//             (a name that is none, no regular file, no folder), Unavailable (too many open files,
//             or somebody renames folders all the time).
class Root {
 public:
  static absl::StatusOr<Root> Open(const std::string& path, const RootOptions& options = {});

  // A regular file, for reading. Nothing else is opened: what has effects when it is, as a device,
  // is only looked at.
  absl::StatusOr<Descriptor> OpenFile(std::string_view name) const;
  absl::StatusOr<Descriptor> OpenFolder(std::string_view name) const;
  absl::StatusOr<struct stat> Stat(std::string_view name) const;

 private:
  Root(Descriptor folder, const RootOptions& options);
  absl::StatusOr<Descriptor> OpenBelow(std::string_view name, uint64_t flags) const;
  int OpenAtOnce(const std::string& name, uint64_t flags) const;
  int OpenByParts(const std::string& name, uint64_t flags) const;

  Descriptor folder_;
  RootOptions options_;
  dev_t device_ = 0;
};

// What errno says, as Root tells it.
absl::Status FileStatus(int error);

}  // namespace esdp_files

#endif  // ESDP_TOOLS_ESDP_FILES_ROOT_H_
