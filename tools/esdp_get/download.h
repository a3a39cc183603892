#ifndef ESDP_TOOLS_ESDP_GET_DOWNLOAD_H_
#define ESDP_TOOLS_ESDP_GET_DOWNLOAD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tools/esdp_files/file_digest.h"
#include "tools/esdp_get/connection.h"
#include "tools/esdp_get/file_receiver.h"
#include "tools/esdp_get/part_file.h"

namespace esdp_get {

struct DownloadOptions {
  bool resume = false;
  bool crc = false;
  bool sync = false;
  bool sha256 = false;  // of the whole file, compared with the server's
};

// A Downloader fetches files: first they are asked for, then they are taken, in order. Several may be
// asked ahead.
//
//   Owns:     nothing.
//   Threads:  one.
//   Blocks:   as the connection and the file system do.
//   Units:    bytes.
//   Errors:   Take: whole() tells whether the next one can be taken.
class Downloader {
 public:
  // Of `total` bytes so many are there.
  using Progress = std::function<void(const std::string& name, uint64_t done, uint64_t total)>;

  Downloader(Connection& connection, const DownloadOptions& options, Progress progress)
      : connection_(connection),
        options_(options),
        progress_(std::move(progress)),
        receiver_(connection) {}

  absl::Status Ask(const std::string& name);
  // The oldest that was asked goes to `target`.
  absl::Status Take(const std::string& name, const std::string& target);
  // Both, going on with what an earlier run has left.
  absl::Status Fetch(const std::string& name, const std::string& target);
  bool whole() const { return whole_; }

 private:
  absl::Status Ask(const std::string& name, uint64_t offset, uint64_t etag);
  absl::Status Store(const std::string& name, const esdp_files::wire::Answer& answer,
                     PartFile& part);
  // Behind the bytes: what the server says of all of it is what is here.
  absl::Status CompareWhole(uint64_t id, PartFile& part, esdp_files::FileDigest& digest,
                            uint64_t size);

  Connection& connection_;
  DownloadOptions options_;
  Progress progress_;
  FileReceiver receiver_;
  bool whole_ = true;
};

}  // namespace esdp_get

#endif  // ESDP_TOOLS_ESDP_GET_DOWNLOAD_H_
