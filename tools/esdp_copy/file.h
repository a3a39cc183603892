#ifndef ESDP_TOOLS_ESDP_COPY_FILE_H_
#define ESDP_TOOLS_ESDP_COPY_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace esdp_copy {

// An open file. Every error is a status that names the file.
class File {
 public:
  static absl::StatusOr<File> OpenToRead(const std::string& path);
  // Made when it is not there; never through a symbolic link.
  static absl::StatusOr<File> OpenToWrite(const std::string& path);
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  int descriptor() const { return fd_; }
  absl::StatusOr<uint64_t> Size() const;
  // Fills all of it; a file that ends before is an error.
  absl::Status Read(uint64_t offset, std::byte* bytes, size_t length) const;
  // Takes disk space for what is still to come, where the file system can; its size stays.
  absl::Status Reserve(uint64_t offset, uint64_t length) const;
  absl::Status Truncate(uint64_t length) const;
  absl::Status Sync() const;
  // The status of an errno; 0: the file ends too early.
  absl::Status Failed(int reason, const char* what) const;

 private:
  File(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_;
};

// Whether a failed write may go well when somebody has made room.
bool WantsRoom(const absl::Status& status);

}  // namespace esdp_copy

#endif  // ESDP_TOOLS_ESDP_COPY_FILE_H_
