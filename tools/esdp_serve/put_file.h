#ifndef ESDP_TOOLS_ESDP_SERVE_PUT_FILE_H_
#define ESDP_TOOLS_ESDP_SERVE_PUT_FILE_H_

#include <esdp_files.pb.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
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
  uint64_t offset() const { return offset_; }  // the first byte that is wanted
  uint64_t size() const { return size_; }
  // OK where the chunk that was written is the one that was summed. Else nothing is kept.
  absl::Status Verify(const esdp_files::FileExtent& chunk, uint32_t crc) const;
  // All of it is there: gives it its name.
  absl::Status Finish();

 private:
  absl::Status OpenPart(bool resume);
  absl::Status Reserve() const;
  absl::Status Rename() const;

  esdp_files::Descriptor folder_;
  esdp_files::Descriptor file_;
  std::string last_;
  std::string part_;
  uint64_t size_ = 0;
  uint64_t offset_ = 0;
  bool replace_ = false;
  bool sync_ = true;
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_PUT_FILE_H_
