#ifndef ESDP_TOOLS_ESDP_GET_PART_FILE_H_
#define ESDP_TOOLS_ESDP_GET_PART_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tools/esdp_files/chunk_sums.h"
#include "tools/esdp_files/descriptor.h"

namespace esdp_get {

// A PartFile is a file that has not come whole: it lies beside the place it is to have, under a name
// that goes by its etag and size, so that only the same file goes on where it was left.
//
//   Owns:     the open file. What is not finished stays, for Continue.
//   Threads:  one.
//   Blocks:   as the file system does.
//   Units:    bytes.
//   Errors:   name the file.
class PartFile {
 public:
  // Anew. Never through a link. `sums`: another file beside it tells which chunks are whole.
  static absl::StatusOr<PartFile> Create(const std::string& target, uint64_t etag, uint64_t size,
                                         bool sums = false);
  // What an earlier run has left, if it has. offset() is how far that is without a hole, in whole chunks;
  // with `sums`, as far as each chunk still is as it was summed.
  static absl::StatusOr<PartFile> Continue(const std::string& target, uint64_t etag, uint64_t size,
                                           bool sums = false);

  int fd() const { return file_.get(); }
  uint64_t offset() const { return offset_; }
  // Takes the room for what is to come, where the file system can.
  absl::Status Reserve(uint64_t length);
  // The next chunk is in the file, and has this CRC32C.
  absl::Status Settle(const esdp_files::FileExtent& chunk, uint32_t crc);
  // Its size: all of it is there.
  absl::Status Extend();
  // All of it is there: gives it its size, its time and its name. Where it cannot be synced nothing
  // of it stays.
  absl::Status Finish(int64_t mtime_ns, bool sync);
  void Remove();

 private:
  PartFile(std::string target, uint64_t etag, uint64_t size);
  absl::Status Open(int flags);
  absl::Status OpenSums(bool resume);
  std::string SumsPath() const;
  absl::Status Failed(const char* what) const;

  std::string target_;
  std::string path_;
  uint64_t size_;
  uint64_t offset_ = 0;
  esdp_files::Descriptor file_;
  std::optional<esdp_files::ChunkSums> sums_;
  uint64_t next_sum_ = 0;
};

}  // namespace esdp_get

#endif  // ESDP_TOOLS_ESDP_GET_PART_FILE_H_
