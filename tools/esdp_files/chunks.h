#ifndef ESDP_TOOLS_ESDP_FILES_CHUNKS_H_
#define ESDP_TOOLS_ESDP_FILES_CHUNKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// The bytes of files between the frames: chunks of up to kChunkBytes, each with a tail behind it. An
// extent begins a chunk of its own. Both sides know from the answer how long each chunk is, so that
// a receiver can post for several ahead.
//
// A tail with a status that is not 0 is the last thing that its sender sends of the file; what is not
// of the file in the chunk before it is zeros. Behind one of a Get nothing at all comes before the
// answer to a Resync.

namespace esdp_files {

inline constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
inline constexpr size_t kTailBytes = 16;
inline constexpr uint64_t kFileBytesMax = (uint64_t{1} << 63) - 1;
inline constexpr size_t kExtentsMax = 1024;  // of an answer

struct FileExtent {
  uint64_t offset = 0;
  uint64_t length = 0;
  bool operator==(const FileExtent&) const = default;
};

struct Tail {
  uint32_t crc = 0;     // CRC32C of the chunk, where it was asked for
  uint32_t status = 0;  // a wire::Status
  uint64_t offset = 0;  // of the chunk in the file
  bool operator==(const Tail&) const = default;
};
void StoreTail(const Tail& tail, std::span<std::byte, kTailBytes> out);
Tail LoadTail(std::span<const std::byte, kTailBytes> bytes);

// The chunks of extents, one after the other.
class Chunks {
 public:
  Chunks() = default;
  explicit Chunks(std::vector<FileExtent> extents);
  bool done() const { return next_ == extents_.size(); }
  // The next one, while it is not done().
  FileExtent Peek() const;
  void Skip();
  uint64_t length() const;  // of those that are left
  // From an offset on, at which a chunk begins.
  void SkipTo(uint64_t offset);

 private:
  std::vector<FileExtent> extents_;  // none of them empty
  size_t next_ = 0;
  uint64_t inside_ = 0;  // of the next extent: bytes that went
};

// Whether these can be extents of bytes that lie in [offset, end): in order, apart, none empty, and
// `length` bytes together. A peer may say anything.
bool ExtentsAreSound(std::span<const FileExtent> extents, uint64_t offset, uint64_t end,
                     uint64_t length);

// The parts of [offset, end) of a file that are data; all of it where they are more than kExtentsMax, or
// cannot be told.
std::vector<FileExtent> DataOf(int fd, uint64_t offset, uint64_t end);

uint32_t Crc32c(std::span<const std::byte> bytes);

}  // namespace esdp_files

#endif  // ESDP_TOOLS_ESDP_FILES_CHUNKS_H_
