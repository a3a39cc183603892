#ifndef ESDP_TOOLS_ESDP_PERF_MAPPED_FILE_H_
#define ESDP_TOOLS_ESDP_PERF_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace esdp_perf {

// A file in memory: registered like any other memory, its bytes are sent from the page cache and
// received into it.
//
//   Owns:    the mapping. Not the file, which stays when this goes.
//   Errors:  NotFound, PermissionDenied and the like, with the path and the system's words.
class MappedFile {
 public:
  // For reading; a file of length 0 is InvalidArgument, since there would be nothing to register.
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  // For writing, with every page there before it returns; what the file held before is lost.
  static absl::StatusOr<MappedFile> Create(const std::string& path, uint64_t length);

  MappedFile(MappedFile&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = {}; }
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::span<std::byte> bytes() const { return bytes_; }
  // In hexadecimal.
  std::string Sha256() const;

 private:
  explicit MappedFile(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes_;
};

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_MAPPED_FILE_H_
