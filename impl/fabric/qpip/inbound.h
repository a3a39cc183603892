#ifndef ESDP_IMPL_FABRIC_QPIP_INBOUND_H_
#define ESDP_IMPL_FABRIC_QPIP_INBOUND_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "impl/base/bytes.h"
#include "impl/base/ring.h"
#include "impl/fabric/qpip/ddp.h"
#include "impl/fabric/qpip/rdmap.h"
#include "impl/fabric/qpip/receiver.h"
#include "impl/fabric/soft/region_table.h"
#include "impl/fabric/soft/work_queue.h"
#include "impl/fabric/types.h"

namespace esdp::fabric::qpip {

using soft::EntryList;
using soft::Place;
using soft::ReceiveSlot;
using soft::RegionTable;
using soft::SendSlot;
using soft::WorkQueue;

// One of our RDMA Reads whose response has not fully arrived. Its tag admits nothing but the
// response, and only in its turn: it is in no table.
struct ReadInFlight {
  uint64_t slot = 0;  // in the send queue
  uint32_t sink_tag = 0;
  uint32_t length = 0;
  uint32_t received = 0;
  Place place;
};

// What arrives, message by message.
class InboundEvents {
 public:
  using Refusal = SegmentHandler::Refusal;

  virtual void OnMessage(uint64_t receive_slot) = 0;  // the slot is filled in
  virtual Refusal OnReadRequest(const ReadRequest& request) = 0;
  virtual void OnReadComplete() = 0;  // of the first read in flight
  // The peer ends the stream. The receiver is then stopped by a refusal, which is not to be sent.
  virtual void OnTerminate(const Terminate& terminate) = 0;
  // The frame that an initiator sends to say that it is ready (RFC 6581), as its first.
  virtual Refusal OnReadySign(bool is_ready_sign) = 0;

 protected:
  ~InboundEvents() = default;
};

// RDMAP's receiving half (RFC 5040): checks every segment and tells where its payload belongs.
//
// Segments of one message come in order, as RFC 5041 has them sent; messages of different queues
// and tags may alternate.
class Inbound final : public SegmentHandler {
 public:
  // Frames without a byte of payload that end no message and ask for nothing take no credit of
  // their sender's. So many in a row are borne: one is a ready sign of RFC 6581, and RDMAP has
  // writes and reads of nothing.
  static constexpr uint32_t kEmptyFramesMax = 1024;

  Inbound(QueuePairId queue_pair, soft::RegionTable& regions, WorkQueue<ReceiveSlot>& receives,
          WorkQueue<SendSlot>& sends, GrowingRing<ReadInFlight>& reads, InboundEvents& events)
      : queue_pair_(queue_pair),
        regions_(regions),
        receives_(receives),
        sends_(sends),
        reads_(reads),
        events_(events) {}

  Refusal OnHeader(const DdpHeader& header, size_t payload_bytes) override;
  Refusal Place(size_t bytes_max, IoVector& target) override;
  Bytes Guess(size_t later) override;
  void OnPlaced(size_t bytes) override;
  Refusal OnSegment() override;
  Refusal OnEmptyFrame() override;

  // The refusal was for more than kEmptyFramesMax of them.
  bool IsFlooded() const { return empty_frames_ > kEmptyFramesMax; }
  // The receive that the next Send fills, or is filling.
  bool IsNext(uint64_t receive_slot) const { return receive_slot == next_receive_; }
  // For the Terminate message: the request whose segment was refused, if it was one.
  const std::optional<ReadRequest>& refused_request() const { return refused_request_; }

 private:
  enum class Kind : uint8_t { kSend, kControl, kWrite, kReadResponse };

  Bytes GuessSend(size_t later) const;
  Bytes GuessReadResponse(size_t later) const;
  Refusal BeginUntagged(RdmapOpcode opcode);
  Refusal BeginSend();
  Refusal BeginControl(RdmapOpcode opcode);
  Refusal BeginWrite();
  Refusal BeginReadResponse();
  Refusal EndSend(RdmapOpcode opcode);
  Refusal EndControl(RdmapOpcode opcode);
  Refusal EndReadResponse();
  Refusal CountFrame(bool empty);

  const QueuePairId queue_pair_;
  soft::RegionTable& regions_;
  WorkQueue<ReceiveSlot>& receives_;
  WorkQueue<SendSlot>& sends_;
  GrowingRing<ReadInFlight>& reads_;
  InboundEvents& events_;

  // The present segment.
  DdpHeader header_;
  Kind kind_ = Kind::kSend;
  uint32_t payload_bytes_ = 0;
  uint32_t placed_ = 0;

  std::array<uint32_t, kDdpQueues> sequence_{1, 1, 1};  // expected next
  uint64_t next_receive_ = 0;                           // slot that the next Send fills
  esdp::fabric::qpip::Place receive_place_;
  std::array<std::byte, 64> control_{};  // payload of a Read Request or Terminate
  std::optional<ReadRequest> refused_request_;
  uint32_t empty_frames_ = 0;  // in a row
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_INBOUND_H_
