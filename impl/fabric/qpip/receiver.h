#ifndef ESDP_IMPL_FABRIC_QPIP_RECEIVER_H_
#define ESDP_IMPL_FABRIC_QPIP_RECEIVER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "impl/base/bytes.h"
#include "impl/fabric/qpip/crc32c.h"
#include "impl/fabric/qpip/ddp.h"
#include "impl/fabric/qpip/mpa.h"
#include "impl/fabric/qpip/rdmap.h"
#include "impl/fabric/qpip/tcp_stream.h"

namespace esdp::fabric::qpip {

// Where segments go. For each one: OnHeader, then Place and OnPlaced until the payload is
// in, then OnSegment. A reason ends the stream; nothing is called after that.
class SegmentHandler {
 public:
  using Refusal = std::optional<TerminateReason>;

  virtual Refusal OnHeader(const DdpHeader& header, size_t payload_bytes) = 0;
  // Appends the memory of the next payload bytes, at most `bytes_max` and at least one. It is asked
  // before each read, so that memory that was withdrawn in the middle of a segment is left alone.
  virtual Refusal Place(size_t bytes_max, IoVector& target) = 0;
  // Where the payload of the segment `later` behind this one (1: the next) would lie if the peer
  // went on as it began, in memory that may be overwritten meanwhile. Empty: no guess.
  virtual Bytes Guess(size_t later) = 0;
  // So many of the bytes given by Place have been filled.
  virtual void OnPlaced(size_t bytes) = 0;
  // The segment is complete and its CRC, if there is one, is right.
  virtual Refusal OnSegment() = 0;
  // A frame without any ULPDU: legal, and a ready-to-receive sign of RFC 6581.
  virtual Refusal OnEmptyFrame() = 0;

 protected:
  ~SegmentHandler() = default;
};

// Memory that the connections of a fabric use in turn; nothing in it outlives a call.
struct ReceiveScratch {
  static constexpr size_t kStagingBytes = 64 * 1024;
  static constexpr size_t kAheadMax = 3;  // segments that are read on a guess
  static constexpr size_t kAheadBytes = 128 * 1024;

  ReceiveScratch() { misplaced.reserve(kAheadBytes + kStagingBytes); }

  // What one read asks for behind the present payload: first what ends one frame and begins the
  // next, in the staging area, then the payload that is guessed to follow.
  struct Ahead {
    ConstBytes gap;
    Bytes payload;
  };

  std::array<std::byte, kStagingBytes> staging;
  size_t staged = 0;
  IoVector target;
  IoVector place;
  std::array<Ahead, 1 + kAheadMax> ahead;
  size_t ahead_count = 0;
  std::vector<std::byte> misplaced;
};

// Takes frames out of a TCP stream, whatever the way it is cut.
//
// Payload of large segments is read straight into its target. Headers, and what of small segments
// arrives with them, are read into a staging area that belongs to the fabric, not to the
// connection. How much is asked for there adapts: it grows as long as reads come back full of small
// segments, so that one system call fetches many, and falls back to one header as soon as a large
// segment is seen, so that none of its successors' payload is staged.
//
// Bulk data comes in segments that are like each other. So behind a large one the payload of the
// next few is read along, straight to where it would belong. Where the guess was wrong, what was
// read is taken back from there and looked at in order.
class Receiver {
 public:
  // Segments with at least this much payload are read directly.
  static constexpr size_t kDirectBytes = 2048;
  // What one system call asks for at most beyond the present segment.
  static constexpr size_t kAheadBytes = ReceiveScratch::kAheadBytes;

  enum class Outcome : uint8_t {
    kDrained,  // the socket has nothing more for now
    kMore,     // the budget is used up
    kEnd,      // the peer closed; see InsideFrame
    kFailed,   // the socket failed with error()
    kRefused,  // the stream must end with refusal()
  };

  void set_checksum(bool checksum) { checksum_ = checksum; }

  // Reads about `budget` bytes at most.
  Outcome Read(TcpStream& stream, SegmentHandler& handler, ReceiveScratch& scratch, size_t budget);
  // Reads one frame and not a byte beyond it; kMore when it is complete.
  Outcome ReadOneFrame(TcpStream& stream, SegmentHandler& handler, ReceiveScratch& scratch);

  bool InsideFrame() const { return stage_ != Stage::kHeader || filled_ != 0; }
  int error() const { return error_; }
  TerminateReason refusal() const { return refusal_; }
  // The segment that was refused, for the Terminate message. Absent when there was no header yet.
  const std::optional<DdpHeader>& header() const { return header_; }
  uint16_t ulpdu_bytes() const { return ulpdu_bytes_; }
  uint64_t bytes() const { return bytes_; }    // that were ever read
  uint64_t frames() const { return frames_; }  // that were ever complete

 private:
  enum class Stage : uint8_t { kHeader, kPayload, kTrailer };
  using Refusal = SegmentHandler::Refusal;

  static constexpr size_t kWindowFirst = 256;

  Outcome ReadOnce(TcpStream& stream, SegmentHandler& handler, ReceiveScratch& scratch,
                   bool one_frame);
  void Aim(SegmentHandler& handler, ReceiveScratch& scratch, bool one_frame);
  Refusal Sort(size_t bytes, SegmentHandler& handler, ReceiveScratch& scratch);
  Refusal SortMisplaced(size_t at, size_t bytes, SegmentHandler& handler, ReceiveScratch& scratch);
  bool IsRight(Bytes guess, SegmentHandler& handler, IoVector& place) const;
  size_t StagingBytes() const;
  size_t UnitBytesLeft() const;
  size_t HeaderBytesNeeded() const;
  static size_t WholeHeaderBytes(ConstBytes bytes);
  void Adapt(bool staging_was_filled);

  Refusal Consume(ConstBytes bytes, SegmentHandler& handler, IoVector& target);
  Refusal ConsumeHeader(ConstBytes& bytes, SegmentHandler& handler);
  Refusal ConsumePayload(ConstBytes& bytes, SegmentHandler& handler, IoVector& target);
  Refusal ConsumeTrailer(ConstBytes& bytes, SegmentHandler& handler);
  Refusal BeginSegment(SegmentHandler& handler);
  Refusal EndFrame(SegmentHandler& handler);
  void CountPlaced(const IoVector& target, size_t bytes, SegmentHandler& handler);

  Stage stage_ = Stage::kHeader;
  bool checksum_ = false;
  bool saw_large_ = false;  // in the present read
  uint8_t filled_ = 0;      // bytes of the header or trailer that are there
  uint16_t ulpdu_bytes_ = 0;
  uint32_t payload_bytes_ = 0;
  uint32_t payload_left_ = 0;
  uint32_t window_ = kWindowFirst;  // 0: one header and no more
  int error_ = 0;
  TerminateReason refusal_ = TerminateReason::kCatastrophic;
  std::array<std::byte, kFpduLengthBytes + kDdpHeaderMax> head_{};
  std::array<std::byte, kFpduTrailerMax> trailer_{};
  std::optional<DdpHeader> header_;
  Crc32c crc_;
  uint64_t frames_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_RECEIVER_H_
