#ifndef ESDP_TOOLS_ESDP_COPY_FILE_DIGEST_H_
#define ESDP_TOOLS_ESDP_COPY_FILE_DIGEST_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/esdp_copy/digest.h"
#include "tools/esdp_copy/file.h"

namespace esdp_copy {

// The SHA-256 of a file from its first byte on, by a thread of its own: it is slower than the
// transfer beside it.
//
//   Owns:     its thread, until the destructor.
//   Threads:  one calls.
//   Blocks:   WaitFor up to the time given, the destructor for one read.
//   Units:    bytes.
//   Errors:   of reading, by WaitFor.
class FileDigest {
 public:
  explicit FileDigest(const File& file) : file_(file), thread_([this] { Run(); }) {}
  FileDigest(const FileDigest&) = delete;
  FileDigest& operator=(const FileDigest&) = delete;
  ~FileDigest();

  // The bytes before `end` are there.
  void Allow(uint64_t end);
  uint64_t done() const;
  // Whether all before `end` is in the digest: waits for that, but no longer than so.
  absl::StatusOr<bool> WaitFor(uint64_t end, absl::Duration patience);
  // Of what is done; once.
  Sum Finish() { return digest_.Finish(); }

 private:
  void Run();

  const File& file_;
  Digest digest_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t allowed_ = 0;
  uint64_t done_ = 0;
  bool ending_ = false;
  absl::Status status_;
  std::thread thread_;  // begins when all else is there
};

}  // namespace esdp_copy

#endif  // ESDP_TOOLS_ESDP_COPY_FILE_DIGEST_H_
