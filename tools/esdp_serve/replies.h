#ifndef ESDP_TOOLS_ESDP_SERVE_REPLIES_H_
#define ESDP_TOOLS_ESDP_SERVE_REPLIES_H_

#include <esdp_files.pb.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "tools/esdp_files/chunks.h"
#include "tools/esdp_files/descriptor.h"
#include "tools/esdp_files/root.h"

// What requests come to: functions of the request and of the file system, that wait for the latter.

namespace esdp_serve {

esdp_files::wire::Status WireStatus(const absl::Status& status);
// An answer that says no.
esdp_files::wire::Answer Refusal(uint64_t id, const absl::Status& status);
// The answer as a frame; returns how long it is.
size_t PutAnswer(const esdp_files::wire::Answer& answer, std::span<std::byte> block);

// A Get whose bytes are still to come.
struct OpenedFile {
  esdp_files::Descriptor file;
  struct stat about {};  // when it was opened
  uint64_t etag = 0;
  esdp_files::Chunks chunks;
  bool with_crc = false;
  bool with_sha256 = false;  // of the whole, in a second answer
  uint64_t request = 0;      // its id
  bool has_holes = false;
};

// What goes out for a request: the first `bytes` of the block, and then, if there is one, a file.
struct Reply {
  size_t bytes = 0;
  esdp_files::wire::Status status = esdp_files::wire::OK;
  bool tail_failed = false;  // the tail in these bytes tells of an error
  uint64_t file_bytes = 0;   // of a file that is in these bytes already
  std::unique_ptr<OpenedFile> opened;
  // A small file whose bytes are here, without holes: ReplyAtOnce can answer for it the next time.
  esdp_files::Descriptor small;
  struct stat small_about {};
};
// Get, Stat, List and Hello; Unimplemented for what is none.
Reply ReplyTo(const esdp_files::wire::Request& request, const esdp_files::Root& root,
              std::span<std::byte> block);

// The reply to a Get of a small file that is open, where nobody has to wait for it: it still is what fstat
// told of it then, and what is asked for is in the page cache.
std::optional<Reply> ReplyAtOnce(const esdp_files::wire::Request& request, int fd,
                                 const struct stat& about, std::span<std::byte> block);

// Whether the file is still the one that was opened.
esdp_files::wire::Status CheckUnchanged(const OpenedFile& opened);

// Reads a chunk and puts its tail behind it. What cannot be read is zeros, and the tail says why.
// The last chunk's tells also whether the file has changed meanwhile.
esdp_files::wire::Status ReadChunk(const OpenedFile& opened, const esdp_files::FileExtent& chunk,
                                   bool last, std::span<std::byte> room);

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_REPLIES_H_
