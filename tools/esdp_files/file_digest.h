#ifndef ESDP_TOOLS_ESDP_FILES_FILE_DIGEST_H_
#define ESDP_TOOLS_ESDP_FILES_FILE_DIGEST_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/esdp_files/digest.h"

namespace esdp_files {

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
  // Reads so many bytes from the offset on, on the thread of the digest.
  using Read = std::function<absl::Status(uint64_t offset, std::byte* bytes, size_t length)>;

  explicit FileDigest(Read read) : read_(std::move(read)), thread_([this] { Run(); }) {}
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

  const Read read_;
  Digest digest_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t allowed_ = 0;
  uint64_t done_ = 0;
  bool ending_ = false;
  absl::Status status_;
  std::thread thread_;  // begins when all else is there
};

}  // namespace esdp_files

#endif  // ESDP_TOOLS_ESDP_FILES_FILE_DIGEST_H_
