#ifndef ESDP_IMPL_FABRIC_QPIP_TRANSMITTER_H_
#define ESDP_IMPL_FABRIC_QPIP_TRANSMITTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "impl/base/bytes.h"
#include "impl/base/ring.h"
#include "impl/fabric/qpip/ddp.h"
#include "impl/fabric/qpip/lender.h"
#include "impl/fabric/qpip/mpa.h"
#include "impl/fabric/qpip/rdmap.h"
#include "impl/fabric/qpip/tcp_stream.h"
#include "impl/fabric/soft/region_table.h"
#include "impl/fabric/soft/work_queue.h"

namespace esdp::fabric::qpip {

using soft::EntryList;
using soft::Place;
using soft::SendSlot;
using soft::WorkQueue;

// One RDMAP message on its way out.
struct OutMessage {
  enum class Source : uint8_t {
    kEntries,      // of a slot in the send queue, from `place`
    kReadRequest,  // `request` itself
    kPeerRead,     // what `request` of the peer asks for
  };

  RdmapOpcode opcode = RdmapOpcode::kSend;
  Source source = Source::kEntries;
  DdpHeader header;              // of the first segment
  uint32_t length = 0;           // payload
  uint32_t framed = 0;           // payload in frames that have wholly left
  Place place;                   // kEntries: of the next frame
  ReadRequest request;           // kReadRequest, kPeerRead
  std::optional<uint64_t> slot;  // in the send queue
};

// Memory that the connections of a fabric use in turn; nothing in it outlives a call.
struct TransmitScratch {
  static constexpr size_t kFramesMax = 64;
  static constexpr size_t kFrameHeadBytes =
      kFpduLengthBytes + kDdpHeaderMax + kReadRequestBytes + kFpduTrailerMax;
  // So little is put together in one place: that costs less than to have the system gather it.
  static constexpr size_t kLinearBytes = 512;

  struct Frame {
    uint32_t bytes = 0;  // on the wire
    uint32_t payload = 0;
    uint32_t crc = 0;
    bool last = false;  // of its message
  };

  IoVector source;
  std::array<Frame, kFramesMax> frames;
  size_t frame_count = 0;
  std::array<std::byte, kFramesMax * kFrameHeadBytes> heads;  // headers and trailers, one by one
  size_t heads_used = 0;
  std::array<std::byte, kLinearBytes> linear;
  std::optional<Lender> lender;  // where the fabric lends its memory

  void Clear();
  // The pieces of a short source, one behind the other.
  ConstBytes Linear();
};

// The frame of a Terminate, the first and last message of its queue.
std::vector<std::byte> TerminateFrame(const Terminate& terminate, bool checksum);

// Turns messages into frames and writes them by gathering straight from their source.
//
// Frames are not kept: one that the socket took in part is made again, from the same message and
// place, and the part that is gone is left out.
class Transmitter {
 public:
  // What one frame carries. Small enough for any header, and a whole number of cache lines.
  static constexpr uint32_t kSegmentBytes = 65472;
  // Lent pages are a packet's pieces one by one: with the headers it has room for 16.
  static constexpr uint32_t kLentSegmentBytes = 15 * 4096;

  enum class Outcome : uint8_t {
    kWrote,    // something; perhaps all
    kFull,     // the socket takes no more for now
    kFailed,   // the socket failed with error()
    kRefused,  // a tag was withdrawn under the response to the peer's read: see refusal()
  };

  Transmitter(QueuePairId queue_pair, const soft::RegionTable& regions, const EntryList& entries)
      : queue_pair_(queue_pair), regions_(regions), entries_(entries) {}

  void set_checksum(bool checksum) { checksum_ = checksum; }

  bool empty() const { return messages_.empty(); }
  size_t size() const { return messages_.size(); }
  // Room for as many messages as can be under way.
  void Reserve() { messages_.Reserve(TransmitScratch::kFramesMax); }
  const OutMessage& front() const { return messages_.front(); }
  void PushBack(const OutMessage& message) { messages_.PushBack(message); }

  // Not when empty(). One system call, or a few where pages are lent. Calls on_sent(message) for
  // each message that has wholly left.
  template <typename OnSent>
  Outcome WriteOnce(TcpStream& stream, TransmitScratch& scratch, OnSent on_sent) {
    const Outcome outcome = Write(stream, scratch);
    while (sent_ != 0) {
      --sent_;
      on_sent(messages_.TakeFront());
    }
    return outcome;
  }

  // What has to be written to end the stream with this Terminate: the rest of the frame that has
  // left in part, and the frame of the message. A copy, since the sources are about to be given
  // back; zeros where they already are.
  std::vector<std::byte> Farewell(const Terminate& terminate, TransmitScratch& scratch) const;

  int error() const { return error_; }
  TerminateReason refusal() const { return refusal_; }

  static TerminateReason ReadReason(soft::TagError error);

 private:
  // Where a message's payload begins; null if its source gathers from entries or has none.
  struct Base {
    soft::TagError error = soft::TagError::kNone;
    const std::byte* data = nullptr;
  };

  Outcome Write(TcpStream& stream, TransmitScratch& scratch);
  bool Build(TransmitScratch& scratch);
  bool BuildMessage(OutMessage message, TransmitScratch& scratch);
  void BuildFrame(OutMessage& message, const std::byte* data, TransmitScratch& scratch) const;
  Base BaseOf(const OutMessage& message) const;
  void Count(size_t bytes, const TransmitScratch& scratch);

  const QueuePairId queue_pair_;
  const soft::RegionTable& regions_;
  const EntryList& entries_;
  GrowingRing<OutMessage> messages_;
  bool checksum_ = false;
  uint32_t sent_ = 0;         // messages at the front that have wholly left
  uint32_t partly_sent_ = 0;  // bytes of the first frame that have left
  uint32_t partly_sent_crc_ = 0;
  int error_ = 0;
  TerminateReason refusal_ = TerminateReason::kCatastrophic;
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_TRANSMITTER_H_
