#ifndef ESDP_TOOLS_ESDP_GET_UPLOAD_H_
#define ESDP_TOOLS_ESDP_GET_UPLOAD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "tools/esdp_files/chunks.h"
#include "tools/esdp_get/connection.h"

namespace esdp_get {

struct UploadOptions {
  bool resume = false;
  bool crc = false;
  bool replace = false;
  bool sync_on_the_way = false;
};

// An Uploader brings files to a server, one after the other.
//
//   Owns:     registered memory for tails, and for chunks that are summed.
//   Threads:  one.
//   Blocks:   as the connection and the file system do.
//   Units:    bytes.
//   Errors:   whole() tells whether the connection can bring another one.
class Uploader {
 public:
  // Of `total` bytes so many are there.
  using Progress = std::function<void(const std::string& name, uint64_t done, uint64_t total)>;

  Uploader(Connection& connection, const UploadOptions& options, Progress progress)
      : connection_(connection), options_(options), progress_(std::move(progress)) {}

  absl::Status Bring(const std::string& path, const std::string& name);
  bool whole() const { return whole_; }

 private:
  static constexpr size_t kAhead = 4;
  static constexpr uint64_t kRoom = esdp_files::kChunkBytes + esdp_files::kTailBytes;
  struct Sent {
    esdp::OpId op;
    uint64_t length;
  };

  absl::Status SendAll(int fd, esdp_files::Chunks chunks, const std::string& name);
  absl::Status Send(int fd, const esdp_files::FileExtent& chunk, size_t place);
  absl::StatusOr<esdp::OpId> SendSummed(int fd, const esdp_files::FileExtent& chunk, size_t place);

  Connection& connection_;
  UploadOptions options_;
  Progress progress_;
  esdp::Region memory_;
  std::deque<Sent> sent_;
  uint64_t done_ = 0;  // bytes of the file that are there; its holes too
  uint64_t size_ = 0;
  bool whole_ = true;
};

}  // namespace esdp_get

#endif  // ESDP_TOOLS_ESDP_GET_UPLOAD_H_
