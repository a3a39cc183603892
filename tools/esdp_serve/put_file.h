#ifndef ESDP_TOOLS_ESDP_SERVE_PUT_FILE_H_
#define ESDP_TOOLS_ESDP_SERVE_PUT_FILE_H_

#include <esdp_files.pb.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tools/esdp_files/chunk_sums.h"
#include "tools/esdp_files/chunks.h"
#include "tools/esdp_files/descriptor.h"
#include "tools/esdp_files/root.h"

namespace esdp_serve {

// A PutFile is a file on its way in: until all of it is there it has a name of its own, beside the
// one that it is to have.
//
//   Owns:     the open file, locked, and its folder.
//   Threads:  one at a time.
//   Blocks:   as the file system does.
//   Units:    bytes.
//   Errors:   as Root's; AlreadyExists; ResourceExhausted where there is no room; Unavailable where
//             another client is at the same file.
class PutFile {
 public:
  static absl::StatusOr<PutFile> Open(const esdp_files::wire::Put& put,
                                      const esdp_files::Root& root);

  int fd() const { return file_.get(); }
  // What is wanted, and its first byte.
  const esdp_files::Chunks& chunks() const { return chunks_; }
  uint64_t offset() const { return chunks_.done() ? size_ : chunks_.Peek().offset; }
  uint64_t size() const { return size_; }
  // The next chunk is in the file: a later Put goes on behind it. DataLoss where it is not the one
  // that was summed; nothing is kept then.
  absl::Status Settle(const esdp_files::FileExtent& chunk, std::optional<uint32_t> crc);
  // All of it is there: gives it its name. The page cache forgets it where told to, and the medium has it.
  absl::Status Finish(bool drop_behind);
  // Nothing of it is to be gone on behind.
  void RemovePart() const;

 private:
  absl::Status OpenPart();
  absl::Status FindRest(bool resume);
  absl::Status Reserve() const;
  void RemoveSums() const;
  absl::Status Rename() const;

  esdp_files::Descriptor folder_;
  esdp_files::Descriptor file_;
  std::string last_;
  std::string part_;
  std::optional<esdp_files::ChunkSums> sums_;  // of more than one chunk
  uint64_t next_sum_ = 0;
  uint64_t size_ = 0;
  esdp_files::Chunks chunks_;
  bool is_sparse_ = false;
  bool replace_ = false;
  bool sync_ = true;
};

// Makes a folder; one that is there is good.
absl::Status MakeFolder(const esdp_files::wire::MakeFolder& wanted, const esdp_files::Root& root);

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_PUT_FILE_H_
