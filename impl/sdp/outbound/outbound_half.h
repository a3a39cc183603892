#ifndef ESDP_IMPL_SDP_OUTBOUND_OUTBOUND_HALF_H_
#define ESDP_IMPL_SDP_OUTBOUND_OUTBOUND_HALF_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/time.h"
#include "impl/sdp/flow/outgoing.h"
#include "impl/sdp/flow/resize.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/counters.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/interface/input.h"
#include "impl/sdp/lifecycle/machines.h"
#include "impl/sdp/outbound/adaptive_threshold.h"
#include "impl/sdp/outbound/advert_writer.h"
#include "impl/sdp/outbound/send_queue.h"
#include "impl/sdp/outbound/source_adverts.h"

namespace esdp::sdp {

// The half-connection in which we are the source: the queue of sends, our SrcAvails, what the peer
// has shown us to write to, and the size that our messages may have. What it answers of the peer's
// messages is a violation of the protocol as text, or nullptr.
class OutboundHalf {
 public:
  // What a queue pair and the peer allow.
  struct Limits {
    SendQueue::Limits queue;
    bool peer_may_read = false;    // an RDMA read of our memory can work
    bool invalidates = false;      // the peer takes a Send that invalidates its key
    uint32_t write_bytes_max = 0;  // of one RDMA Write
    AdaptiveThreshold::PeerBuffers peer_buffers;
    uint32_t peer_buffer_wish = 0;  // to ask of the peer [11]; 0: as they are
    bool peer_buffers_by_need = false;
  };
  // SrcAvails: what the modes and the other half leave to this one. Asked for anew each time.
  struct SourceTerms {
    AdvertAllowance adverts = AdvertAllowance::kNone;
    size_t room = 0;         // adverts of either kind that the peer can still hold
    bool may_cross = false;  // [R15.1] those of the peer that wait for us to read
  };

  void Start(const Limits& limits);
  // [R12.6], [R12.7] Everything sent has arrived, and every advert is void.
  void OnQueuePairLeft(Actions& actions);

  // --- the application ---
  void Ask(const AskSend& ask, Time now, Counters& counters) {
    if (ask.adaptive) [[unlikely]]
      return AskAdaptive(ask, now, counters);
    send_.Ask(ask);
  }
  void AskRefused(const AskSend& ask, Outcome outcome) { send_.AskRefused(ask, outcome); }
  // SendImmediate would copy it, send it and finish it.
  bool MayLeaveImmediate(const AskSend& ask) const {
    return send_.MayLeaveImmediate(ask) && !ask.adaptive;
  }
  void SendImmediate(const AskSend& ask, Outgoing& outgoing, Actions& actions, Counters& counters);
  // Takes a send back, or asks the peer to give it back by `end_by`. False: it is none of ours.
  bool Cancel(const AskCancel& ask, Time end_by, const Outgoing& outgoing, Actions& actions);
  Time NextEndBy() const { return send_.NextEndBy(); }
  bool Has(OperationId operation) const { return send_.Has(operation); }

  // --- what waits ---
  bool empty() const { return send_.empty(); }  // no operation
  bool has_pieces() const { return send_.has_pieces(); }
  bool writable() const { return send_.writable(); }
  size_t waiting() const { return send_.waiting(); }  // not below the large sends
  bool drained() const { return send_.drained(); }    // no byte
  // [R13.1.1, R13.1.2] Nothing is left that DisConn would have to wait for.
  bool done() const { return send_.drained() && source_.idle() && !writer_.in_process(); }
  bool wants_source_adverts() const { return send_.wants_advert(); }
  bool MayAdvertise(const SourceTerms& terms) const {
    if (!limits_.peer_may_read || terms.adverts == AdvertAllowance::kNone) return false;
    return (terms.room > 0 || source_.outstanding()) && terms.may_cross;
  }
  uint32_t LargeSends(bool may_advertise) const { return send_.LargeSends(may_advertise); }
  std::optional<uint64_t> UrgentAhead() const { return send_.UrgentAhead(); }
  bool has_urgent() const { return send_.has_urgent(); }

  // --- what leaves ---
  void CopySmall(bool may_advertise, Actions& actions, Counters& counters) {
    if (send_.may_copy(may_advertise)) send_.CopyWaiting(may_advertise, actions, counters);
  }
  // `draining`: nothing will follow. Stops at an advert that has to be exposed first.
  void SendPayload(const SourceTerms& terms, bool draining, Outgoing& outgoing, Actions& actions,
                   Counters& counters);
  void SendSourceCancel(Outgoing& outgoing, Actions& actions, Counters& counters);
  // [8.4] Completes what the peer wants back, then answers. `acknowledges`: no acknowledgement is
  // held back.
  void SendSinkCancelAck(bool may_advertise, bool acknowledges, Outgoing& outgoing,
                         Actions& actions, Counters& counters);
  void FinishReady(Counters& counters, Actions& actions) { send_.FinishReady(counters, actions); }

  // --- our SrcAvails ---
  bool offering() const { return source_.offering(); }  // its advert has the next MSeq
  bool advertised() const { return source_.outstanding(); }
  size_t source_adverts() const { return source_.count(); }
  bool cancels_source_adverts() const { return source_.cancelling(); }
  void AskSourceAdvertsBack() { source_.AskCancel(); }
  // The answers to Expose. False: not to what was asked.
  bool OnExposed(const Exposed& exposed, Outgoing& outgoing, Actions& actions, Counters& counters);
  bool OnExposeFailed(AdvertId advert) { return source_.OnExposeFailed(advert); }
  void GoWithoutExposure() { send_.OnExposeFailed(); }
  void OnWithdrawn(AdvertId advert) {
    if (const auto number = source_.OnWithdrawn(advert)) send_.OnWithdrawn(*number);
  }
  struct Read {
    const char* violation = nullptr;
    bool complete = false;  // an advert was read to its end
  };
  Read OnRdmaRdCompl(uint32_t length, std::optional<uint32_t> invalidated_key, Actions& actions,
                     Counters& counters);
  // True: the peer has refused the oldest.
  bool OnSendSm(uint32_t acknowledged, Actions& actions, Counters& counters);

  // --- the peer's SinkAvails ---
  bool writes() const { return !writer_.idle(); }
  bool in_process() const { return writer_.in_process(); }
  bool write_in_flight() const { return writer_.writes_in_flight() > 0; }
  // `pipelined`: our half is.
  const char* OnSinkAvail(const wire::SinkAvail& advert, AdvertWriter::Legality legality,
                          bool pipelined, size_t adverts_max, Actions& actions, Counters& counters);
  void OnSinkAvailCancel() { writer_.OnSinkAvailCancel(); }
  void OnWriteFinished(Outgoing& outgoing) {
    outgoing.OnRdmaFinished();
    writer_.OnWriteFinished();
    send_.OnWriteFinished();
  }
  void LeavePipelined() { writer_.LeavePipelined(); }
  void DropSinkAdverts() { writer_.DropAll(); }
  // [R9.1, R9.2, R9.3] Small bytes that wait leave with a SinkAvail of ours.
  bool MayRideAlong(const Outgoing& outgoing) const;
  void RideAlong(Send& send, Counters& counters) {
    send_.TakeCopied(send);
    OnPayloadPosted(send.message.base.sequence, counters);
  }

  // --- the size of our messages [11] ---
  const ResizeRequest& resize() const { return resize_; }
  uint32_t message_bytes() const { return resize_.size(); }
  void OnResizeDisregarded();
  const char* OnChRcvBufAck(uint32_t actual_size, const wire::BaseHeader& header);
  // Not `may_ask`: the buffers of our own are being changed, or nothing will follow.
  void SendResizeRequest(bool may_ask, Outgoing& outgoing, Actions& actions, Counters& counters);

  // --- the wire ---
  void OnAcknowledged(uint32_t sequence) {
    send_.OnAcknowledged(sequence);
    writer_.OnAcknowledged(sequence);
  }
  void OnPayloadFinished() { send_.OnPayloadFinished(); }
  // The connection is over: everything has arrived, or operations end with `outcome`.
  void OnAllDelivered(Counters& counters, Actions& actions);
  void FinishAll(Outcome outcome, Actions& actions) { send_.FinishAll(outcome, actions); }

  // --- the threshold that is learned, from the operations that end in a step ---
  bool learns() const { return threshold_.waits(); }
  void LearnFromEnds(const Actions& actions, Time now, Counters& counters);

  bool InvariantsHold() const {
    return send_.InvariantsHold() && source_.InvariantsHold() && writer_.InvariantsHold();
  }
  void AddTo(Digest& digest) const;

 private:
  void AskAdaptive(AskSend ask, Time now, Counters& counters);
  bool MayOffer(const SourceTerms& terms) const;
  void Offer(AdvertAllowance adverts, Actions& actions);
  void PostPayload(SendQueue::Next next, bool may_advertise, Outgoing& outgoing, Actions& actions,
                   Counters& counters);
  void OnPayloadPosted(uint32_t sequence, Counters& counters, bool cut = false) {
    const uint64_t bytes = send_.OnPosted(sequence, counters);
    if (resize_.Counts(cut)) [[unlikely]]
      resize_.OnPayloadPosted(bytes);
    writer_.OnPayloadPosted();
  }
  bool WritesHavePrecedence(bool may_advertise, Outgoing& outgoing, Actions& actions,
                            Counters& counters);
  void SendWrites(bool may_advertise, Outgoing& outgoing, Actions& actions, Counters& counters);
  void ApplySize();
  void RefreshUrgentNotice(Outgoing& outgoing) const {
    if (send_.has_urgent()) [[unlikely]]
      outgoing.SetUrgentAhead(send_.UrgentAhead());
  }

  SendQueue send_;
  SourceAdverts source_;
  AdvertWriter writer_;
  ResizeRequest resize_;
  AdaptiveThreshold threshold_;
  Limits limits_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_OUTBOUND_OUTBOUND_HALF_H_
