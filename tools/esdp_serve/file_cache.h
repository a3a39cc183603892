#ifndef ESDP_TOOLS_ESDP_SERVE_FILE_CACHE_H_
#define ESDP_TOOLS_ESDP_SERVE_FILE_CACHE_H_

#include <sys/stat.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/time/time.h"
#include "tools/esdp_files/descriptor.h"

namespace esdp_serve {

// A FileCache keeps small files open that were asked for a moment ago, so that the next one who asks need
// not wait for a worker. A name is looked up anew after kFresh: who renames a folder, or has a link
// lead elsewhere, is heard of by then. What happens to the file itself, its etag tells at once.
//
//   Owns:     the open files.
//   Threads:  the server's.
//   Blocks:   never.
//   Units:    -
//   Errors:   -
class FileCache {
 public:
  static constexpr absl::Duration kFresh = absl::Seconds(1);

  struct File {
    esdp_files::Descriptor file;
    struct stat about {};  // when it was opened
    absl::Time opened;
  };

  explicit FileCache(size_t most) : most_(most) {}

  // The file that this name was found to be not longer than kFresh ago, or nothing; until the next call.
  const File* Find(std::string_view name, absl::Time now);
  void Add(const std::string& name, esdp_files::Descriptor file, const struct stat& about,
           absl::Time now);
  void Remove(std::string_view name);
  // All names may be others now.
  void Clear() { files_.clear(); }
  // Closes what is older than kFresh.
  void DropOld(absl::Time now);
  size_t size() const { return files_.size(); }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  size_t most_;
  std::unordered_map<std::string, File, Hash, std::equal_to<>> files_;
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_FILE_CACHE_H_
