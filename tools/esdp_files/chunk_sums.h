#ifndef ESDP_TOOLS_ESDP_FILES_CHUNK_SUMS_H_
#define ESDP_TOOLS_ESDP_FILES_CHUNK_SUMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/esdp_files/chunks.h"
#include "tools/esdp_files/descriptor.h"

namespace esdp_files {

// A ChunkSums remembers which chunks of a file on its way in are whole, in a file beside it: the length
// of the file itself does not tell, as what was written to it last need not be what is there after a
// crash.
//
//   Owns:     the open file.
//   Threads:  one at a time.
//   Blocks:   as the file system does.
//   Units:    chunks, in the order in which they come.
//   Errors:   as Root's.
class ChunkSums {
 public:
  // One that is there is gone on with. Never through a link.
  static absl::StatusOr<ChunkSums> Open(int folder, const std::string& name);

  struct Entry {
    FileExtent chunk;
    std::optional<uint32_t> crc;  // CRC32C, where the client has said one
  };
  // All before the first that is not whole.
  std::vector<Entry> Load() const;
  // Forgets all from there on.
  absl::Status Cut(uint64_t count) const;
  absl::Status Set(uint64_t number, const Entry& entry) const;

  // Whether the file has the chunk, and it is as it was summed: what a machine that went down has left may
  // be anything.
  static absl::StatusOr<bool> IsThere(int fd, const Entry& entry);

 private:
  Descriptor file_;
};

}  // namespace esdp_files

#endif  // ESDP_TOOLS_ESDP_FILES_CHUNK_SUMS_H_
