#ifndef ESDP_FILE_H_
#define ESDP_FILE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "esdp/region.h"

// What Socket::SendFile and Socket::RecvFile take. Sizes and offsets in bytes.
//
// Bytes pass through registered slots of the Context, read and written by threads of its own
// (ContextLimits::file_pool_max, file_threads): nothing is registered or mapped while data flows.
// What the page cache has of a range of up to 1 MiB is read by whoever moves the protocol, one slot
// at a time; a longer range by those threads alone. A post asks the file system what the descriptor
// is, reserves room for a RecvFile, opens a file for kDirect, and may register slots; it waits for no
// byte, unless there are no threads: then whoever moves the protocol waits for the medium. What is
// posted behind one in its direction waits for its turn, a Shutdown and a graceful Close too. Lists
// are copied at post; slices and descriptors are borrowed until the terminal event.
//
// SendFile is one Send of everything: `bytes` of its event counts slices and ranges, and never is
// less with OK. Errors beside those of every post: InvalidArgument (nothing to send, no regular file
// that can be read, a range that ends behind 2^63 - 1), Unimplemented (kUnsupported: a strategy that
// the fabric has not), ResourceExhausted (kMemory). Of its event:
// kFile, see OnShortFile. A cancel, or a deadline that does not abort, ends one of which bytes have
// gone only with OnShortFile::kStop, as a file that is too short would; else it goes on.
//
// RecvFile takes the next bytes of the stream: `bytes` of its event have left the stream, and up to
// Event::file_offset they are in the file. Errors beside those of every post: InvalidArgument
// (length 0, no regular file that can be written, O_APPEND, O_DIRECT), ResourceExhausted (kNoSpace: no room
// for it; kMemory). Of its event: kFile and kNoSpace, see OnShortFile; kFile with kEof where the
// stream ends before. A cancel or a deadline ends it where it is; where bytes have come, the
// receives that were posted behind it end with it (kCancelled).

namespace esdp {

// How the bytes of a file reach the peer.
enum class FileStrategy : uint8_t {
  kPipelined,  // read into registered slots, while the slots before are on their way
  kPlain,      // by one slot: read, then sent
  kDirect,     // as kPipelined, past the page cache (O_DIRECT): for large files that are read once.
               // Where the file system has no such way, as kPipelined
  kMapped,     // out of the page cache itself, registered: Unimplemented (kUnsupported) where the
  kSpliced,    // fabric cannot. None can so far; decision 0017 says what it takes
};

// What to do where a file cannot keep what was promised: it ends early, or its medium fails.
enum class OnShortFile : uint8_t {
  kAbort,  // aborts the connection: the peer must not take what follows for the rest of the file
  kStop,   // ends the operation with kFile and the exact count, and with kCancelled what was posted
           // behind it in this direction. The stream is whole: the application says in its own
           // framing what has happened
};

// A part of a regular file. The descriptor is the caller's, stays open until the terminal event, and
// its own offset is not moved. A hole is sent as zeros.
struct FileRange {
  int fd = -1;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// What goes out, one behind the other, without anything between: any number of each.
struct FilePlan {
  absl::Span<const Slice> header = {};
  absl::Span<const FileRange> ranges = {};
  absl::Span<const Slice> trailer = {};
  FileStrategy strategy = FileStrategy::kPipelined;
  OnShortFile on_short = OnShortFile::kAbort;
  // Lets the page cache forget what was read, whoever else reads it: for large files that nobody reads
  // again soon. Threads read all of it then, what is in memory too.
  bool drop_behind = false;
};

// Until when the bytes of RecvFile are on the medium. A sync that fails is final: the system may
// have dropped what it could not write, and would call the next one a success. So Event::file_offset
// is behind the last sync that went well then.
enum class SyncPolicy : uint8_t {
  kNone,  // when the system likes
  kEnd,  // by the terminal event, as fdatasync(2) has it: all before Event::file_offset, also where
         // the stream has ended early, by a cancel, or where the file has no room for more
  kEvery,  // also each time so many bytes were written; others are being written meanwhile
};

// Where the next `length` bytes of the stream go. The file is a regular one, open for writing,
// without O_APPEND and O_DIRECT; the descriptor is the caller's as in FileRange.
struct FileSink {
  int fd = -1;
  uint64_t offset = 0;
  uint64_t length = 0;
  SyncPolicy sync = SyncPolicy::kNone;
  uint64_t sync_every = uint64_t{64} << 20;
  // Takes the room first, where the file system can promise any: what it has not then fails the
  // post, before data flows.
  bool reserve = true;
  OnShortFile on_short = OnShortFile::kAbort;
  // Whole blocks of zeros (4 KiB) become holes, where the file system has any, and no room is
  // reserved: for files that were sparse at their source.
  bool sparse = false;
  // Lets the page cache forget what a sync has brought to the medium: not with SyncPolicy::kNone.
  bool drop_behind = false;
};

}  // namespace esdp

#endif  // ESDP_FILE_H_
