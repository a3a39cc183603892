#include "impl/fabric/qpip/startup.h"

#include <algorithm>

namespace esdp::fabric::qpip {
namespace {

// Where nothing is negotiated (revision 1, or depths left unsaid), one read either way is safe.
constexpr uint32_t kDepthUnsaid = 1;

uint16_t Word(uint32_t depth) {
  return static_cast<uint16_t>(std::min<uint32_t>(depth, kMpaDepthMax));
}

uint32_t Agreed(uint32_t ours, uint16_t peers) {
  return std::min<uint32_t>(ours, peers == kMpaDepthUnsaid ? kDepthUnsaid : peers);
}

MpaStartup AnswerOf(const MpaStartup& request, size_t private_data_bytes) {
  MpaStartup reply;
  reply.kind = MpaKind::kReply;
  reply.revision = request.revision;
  reply.enhanced = request.enhanced;
  reply.private_data_bytes = static_cast<uint16_t>(private_data_bytes);
  return reply;
}

}  // namespace

MpaStartup MakeRequest(const Offer& offer, size_t private_data_bytes) {
  MpaStartup request;
  request.checksum = offer.checksum;
  request.enhanced = true;
  request.private_data_bytes = static_cast<uint16_t>(private_data_bytes);
  request.inbound_reads = Word(offer.responder_resources);
  request.outbound_reads = Word(offer.initiator_depth);
  request.peer_to_peer = true;
  request.ready_by_write = true;
  return request;
}

Negotiated AnswerRequest(const MpaStartup& request, const Offer& offer) {
  Negotiated negotiated;
  negotiated.checksum = offer.checksum || request.checksum;
  negotiated.awaits_ready_sign = request.enhanced && request.peer_to_peer;
  const uint16_t inbound = request.enhanced ? request.inbound_reads : kMpaDepthUnsaid;
  const uint16_t outbound = request.enhanced ? request.outbound_reads : kMpaDepthUnsaid;
  negotiated.initiator_depth = Agreed(offer.initiator_depth, inbound);
  negotiated.responder_resources = Agreed(offer.responder_resources, outbound);
  return negotiated;
}

MpaStartup MakeReply(const MpaStartup& request, const Negotiated& negotiated,
                     size_t private_data_bytes) {
  MpaStartup reply = AnswerOf(request, private_data_bytes);
  reply.checksum = negotiated.checksum;
  if (!request.enhanced) return reply;
  reply.inbound_reads = Word(negotiated.responder_resources);
  reply.outbound_reads = Word(negotiated.initiator_depth);
  if (!request.peer_to_peer) return reply;
  // One kind is picked; a write if the initiator left it open, as others do.
  reply.peer_to_peer = true;
  reply.ready_by_write =
      request.ready_by_write || (!request.ready_by_read && !request.ready_by_empty_frame);
  reply.ready_by_read = !reply.ready_by_write && request.ready_by_read;
  reply.ready_by_empty_frame = !reply.ready_by_write && !reply.ready_by_read;
  return reply;
}

MpaStartup MakeRejection(const MpaStartup& request, size_t private_data_bytes) {
  MpaStartup reply = AnswerOf(request, private_data_bytes);
  reply.rejected = true;
  reply.checksum = request.checksum;
  return reply;
}

ReplyVerdict JudgeReply(const MpaStartup& reply, const Offer& offer) {
  ReplyVerdict verdict;
  const auto refuse = [&verdict](Cause cause, const char* detail) {
    verdict.cause = cause;
    verdict.detail = detail;
    return verdict;
  };
  if (reply.rejected) return refuse(Cause::kRejected, "the peer rejected the connection");
  if (reply.markers) return refuse(Cause::kProtocol, "the peer asks for MPA markers");
  Negotiated& negotiated = verdict.negotiated;
  negotiated.initiator = true;
  negotiated.checksum = offer.checksum || reply.checksum;
  if (!reply.enhanced) {  // [R25.4]
    negotiated.initiator_depth = std::min(offer.initiator_depth, kDepthUnsaid);
    negotiated.responder_resources = std::min(offer.responder_resources, kDepthUnsaid);
    return verdict;
  }
  negotiated.initiator_depth = Agreed(offer.initiator_depth, reply.inbound_reads);
  negotiated.responder_resources = Agreed(offer.responder_resources, reply.outbound_reads);
  const bool unsaid = reply.outbound_reads == kMpaDepthUnsaid;
  if (!unsaid && reply.outbound_reads > offer.responder_resources) {
    verdict.farewell = TerminateReason::kMpaInsufficientReads;
    return refuse(Cause::kProtocol, "the peer wants more RDMA reads in flight than were offered");
  }
  if (reply.peer_to_peer && !reply.ready_by_write) {
    verdict.farewell = TerminateReason::kMpaNoMatchingReadiness;
    return refuse(Cause::kProtocol, "the peer chose a ready-to-receive frame that was not offered");
  }
  negotiated.sends_ready_sign = reply.peer_to_peer;
  return verdict;
}

std::vector<std::byte> EncodeStartup(const MpaStartup& startup, ConstBytes private_data) {
  std::vector<std::byte> frame(kMpaHeaderBytes + kMpaWordsBytes);
  frame.resize(EncodeMpa(startup, frame));
  frame.insert(frame.end(), private_data.begin(), private_data.end());
  return frame;
}

StartupReader::Outcome StartupReader::Read(TcpStream& stream) {
  while (filled_ < needed_) {
    const IoResult result = stream.Read(Bytes(bytes_).first(needed_).subspan(filled_));
    if (result.outcome == IoOutcome::kWouldBlock) return Outcome::kMore;
    if (result.outcome == IoOutcome::kEnd) return Outcome::kEnd;
    if (result.outcome == IoOutcome::kFailed) {
      error_ = result.error;
      return Outcome::kFailed;
    }
    filled_ += result.bytes;
    if (needed_ != kMpaHeaderBytes) continue;
    malformed_ = DecodeMpaHeader(ConstBytes(bytes_).first(filled_), kind_, startup_);
    if (malformed_ == MpaError::kShort) continue;
    if (malformed_ != MpaError::kNone) return Outcome::kMalformed;
    needed_ += startup_.wire_data_bytes();
  }
  malformed_ = DecodeMpaWords(ConstBytes(bytes_).first(filled_).subspan(kMpaHeaderBytes), startup_);
  return malformed_ == MpaError::kNone ? Outcome::kDone : Outcome::kMalformed;
}

ConstBytes StartupReader::private_data() const {
  return ConstBytes(bytes_).first(filled_).last(startup_.private_data_bytes);
}

}  // namespace esdp::fabric::qpip
