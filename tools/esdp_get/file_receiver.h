#ifndef ESDP_TOOLS_ESDP_GET_FILE_RECEIVER_H_
#define ESDP_TOOLS_ESDP_GET_FILE_RECEIVER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>

#include "tools/esdp_files/chunks.h"
#include "tools/esdp_get/connection.h"

namespace esdp_get {

// A FileReceiver writes the bytes that follow an answer into a file, chunk by chunk. Receives for
// several chunks are posted ahead. Summed chunks come into memory, and are written when their sums fit.
//
//   Owns:     memory for summed chunks.
//   Threads:  one.
//   Blocks:   until all of it is there.
//   Units:    bytes.
//   Errors:   those of the connection and of the file here leave the connection without use; those of
//             the file there do not, see connection_is_whole().
class FileReceiver {
 public:
  explicit FileReceiver(Connection& connection) : connection_(connection) {}

  // `moved` is told how many bytes have been written, as they are; `settled`, of summed chunks, in order,
  // that one is in the file. An error of it is one of the file here.
  using Moved = std::function<void(uint64_t)>;
  using Settled = std::function<absl::Status(const esdp_files::FileExtent&, uint32_t crc)>;
  absl::Status Receive(const esdp_files::wire::Answer& answer, bool with_crc, int fd,
                       const Moved& moved, const Settled& settled = nullptr);
  // Whether the connection goes on after an error.
  bool connection_is_whole() const { return whole_; }

 private:
  static constexpr size_t kAhead = 4;
  struct Posted {
    esdp_files::FileExtent chunk;
    esdp::OpId data;
    esdp::OpId tail;
    uint64_t rest;  // of the chunk, that had not come when it was posted
    size_t place;   // of the tail, and of the memory of a summed chunk
  };

  absl::Status Plan(const esdp_files::wire::Answer& answer);
  absl::Status PostAhead();
  absl::Status Post(const esdp_files::FileExtent& chunk);
  absl::Status PostSummed(const esdp_files::FileExtent& chunk, Posted& posted);
  absl::Status TakeBuffered(const esdp_files::FileExtent& chunk);
  absl::Status TakePosted();
  absl::Status Check(const esdp_files::Tail& tail, const esdp_files::FileExtent& chunk);
  absl::Status WriteSummed(const esdp_files::FileExtent& chunk, uint32_t crc,
                           std::span<const std::byte> bytes);
  absl::Status Write(uint64_t offset, std::span<const std::byte> bytes);
  absl::Status EndEarly(const absl::Status& reason);
  std::span<std::byte> Memory(size_t place);

  Connection& connection_;
  esdp::Region memory_;  // made with the first summed chunk
  std::array<std::array<std::byte, esdp_files::kTailBytes>, kAhead> tails_{};
  esdp_files::Chunks chunks_;
  std::deque<Posted> posted_;
  size_t next_place_ = 0;
  bool with_crc_ = false;
  bool whole_ = true;
  int fd_ = -1;
  Moved moved_;
  Settled settled_;
};

}  // namespace esdp_get

#endif  // ESDP_TOOLS_ESDP_GET_FILE_RECEIVER_H_
