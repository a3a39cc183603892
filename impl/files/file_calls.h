#ifndef ESDP_IMPL_FILES_FILE_CALLS_H_
#define ESDP_IMPL_FILES_FILE_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace esdp::files {

struct FileDetails {
  bool regular = false;
  bool readable = false;
  bool writable = false;  // at any offset
};

// What transfers ask of the system about files. Tests put scripted ones in its place.
//
//   Owns:     nothing; descriptors are the caller's.
//   Threads:  any.
//   Blocks:   as long as the file's medium takes; ReadCached does not.
//   Units:    bytes.
//   Errors:   a negative errno, never EINTR.
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  static FileCalls& System();

  // As fstat(2) and fcntl(2). 0, or the errno.
  virtual int Describe(int descriptor, FileDetails& details) = 0;
  // As pread(2): 0 is the end of the file.
  virtual int64_t Read(int descriptor, std::span<std::byte> to, uint64_t offset) = 0;
  // Only what is in memory: EAGAIN where it would have to wait, EOPNOTSUPP where the system cannot
  // tell for this file.
  virtual int64_t ReadCached(int descriptor, std::span<std::byte> to, uint64_t offset) = 0;
  // As pwrite(2).
  virtual int64_t Write(int descriptor, std::span<const std::byte> from, uint64_t offset) = 0;
  // As fdatasync(2).
  virtual int Sync(int descriptor) = 0;
  // What was written there begins to go to the medium: a later Sync finds the less to do, and is the
  // one that tells what has failed.
  virtual void StartSync(int descriptor, uint64_t offset, uint64_t length) = 0;
  // Room for bytes to come, where the file system can promise any; its size stays.
  virtual int Reserve(int descriptor, uint64_t offset, uint64_t length) = 0;
  // Zeros that take no room, where the file system can have such; the file is at least as long then.
  // Of whole blocks. Others may make the file longer meanwhile. EOPNOTSUPP: it cannot.
  virtual int MakeHole(int descriptor, uint64_t offset, uint64_t length) = 0;
  // As dup(2), close-on-exec.
  virtual int Duplicate(int descriptor) = 0;
  // The same file for O_DIRECT: a descriptor for Close, or an error.
  virtual int OpenDirect(int descriptor) = 0;
  // The same file for reads one behind the other, far ahead of which the system reads: a descriptor
  // for Close, or an error. What is read by another descriptor does not disturb it.
  virtual int OpenSequential(int descriptor) = 0;
  // Lets go of what the page cache has of it, where that is on the medium already; of its units,
  // which may be several MiB, those that lie in it whole.
  virtual void DropCached(int descriptor, uint64_t offset, uint64_t length) = 0;
  virtual void Close(int descriptor) = 0;
};

}  // namespace esdp::files

#endif  // ESDP_IMPL_FILES_FILE_CALLS_H_
