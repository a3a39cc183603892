#ifndef ESDP_IMPL_SDP_INBOUND_INBOUND_HALF_H_
#define ESDP_IMPL_SDP_INBOUND_INBOUND_HALF_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/time.h"
#include "impl/sdp/flow/outgoing.h"
#include "impl/sdp/flow/receive_buffers.h"
#include "impl/sdp/inbound/advert_reader.h"
#include "impl/sdp/inbound/receive_queue.h"
#include "impl/sdp/inbound/sink_adverts.h"
#include "impl/sdp/inbound/urgent_in.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/config.h"
#include "impl/sdp/interface/counters.h"
#include "impl/sdp/interface/input.h"

namespace esdp::sdp {

// The half-connection in which we are the sink: receives and unread bytes, the private receive
// buffers, the peer's SrcAvails that we read, and our SinkAvails.
class InboundHalf {
 public:
  explicit InboundHalf(const Config& config);
  // A queue pair is ready. `invalidates`: the peer takes a Send that invalidates its key.
  void Start(uint32_t reads_out_max, bool invalidates) {
    reads_out_max_ = reads_out_max;
    invalidates_ = invalidates;
  }
  // [R12.6], [R12.7] Everything received is here, and every advert is void. Before the credits are
  // forgotten.
  void OnQueuePairLeft(Actions& actions);

  // --- the application ---
  void Ask(const AskReceive& ask) {
    receive_.Ask(ask);
    adverts_crossed_ = false;
  }
  void AskRefused(const AskReceive& ask, Outcome outcome) { receive_.AskRefused(ask, outcome); }
  // Takes a receive back, where the peer may write to it by `end_by`.
  void Cancel(const AskCancel& ask, Time end_by, Actions& actions);
  Time NextEndBy() const { return receive_.NextEndBy(); }
  bool Has(OperationId operation) const { return receive_.Has(operation); }
  UrgentIn& urgent() { return urgent_; }
  const UrgentIn& urgent() const { return urgent_; }
  // Every receive ends: the application reads no more.
  void CancelAll(Outcome outcome, Actions& actions);

  // --- what arrives ---
  struct Arrival {
    const char* violation = nullptr;  // the peer broke the protocol: nothing else is valid
    bool keeps_buffer = false;        // the receive buffer holds unread bytes
  };
  Arrival OnData(const MessageArrived& arrived, Outgoing& outgoing, Actions& actions,
                 Counters& counters);
  // `held_max`: SrcAvails that we must be able to hold at once.
  Arrival OnSrcAvail(const wire::SrcAvail& advert, const MessageArrived& arrived, size_t held_max,
                     Outgoing& outgoing, Actions& actions, Counters& counters);
  void OnSrcAvailCancel(uint32_t sequence, Credits& credits, Counters& counters);
  // `taken`: bytes were written to a receive.
  struct Written {
    const char* violation = nullptr;
    bool taken = false;
  };
  Written OnRdmaWrCompl(const MessageArrived& arrived, Outgoing& outgoing, Actions& actions,
                        Counters& counters);
  void OnSinkCancelAck(uint32_t acknowledged, Actions& actions);
  void OnReadFinished(Outgoing& outgoing, Counters& counters);
  bool read_in_flight() const { return reader_.reads_in_flight() > 0; }

  // --- unread bytes reach receives, and adverts are read ---
  struct DeliveryTerms {
    bool may_read = false;            // reads may start
    bool may_read_last = false;       // or that, but no more once there is a spare buffer
    bool may_post = false;            // receive buffers may be posted
    bool end_of_stream = false;       // the peer's DisConn is in
    bool has_source_adverts = false;  // of ours are outstanding
  };
  bool MayDeliver(bool end_of_stream) const {
    return receive_.may_copy() || reader_.active() || receive_.MayFinish(end_of_stream);
  }
  // True: [R15.1] both sides have advertised and neither may ever receive. Ours go as Data.
  bool Deliver(const DeliveryTerms& terms, Outgoing& outgoing, Actions& actions,
               Counters& counters);
  // [R13.2.7] Nobody reads any more: the peer's buffers come back and its adverts come as Data, so
  // that it gets to its end.
  void Discard(Outgoing& outgoing, Actions& actions);
  void DropUnread() { receive_.DropUnread(); }
  // Bytes are here, or a receive waits for some.
  bool in_use() const { return receive_.has_unread() || !receive_.empty(); }
  bool readable() const {
    return receive_.has_unread() || (reader_.left() > 0 && !receive_.has_room());
  }
  size_t waiting() const { return receive_.buffers_held() + reader_.held(); }
  uint64_t unread_bytes() const { return receive_.unread_bytes() + reader_.unread_bytes(); }
  uint32_t LargeReceives() const { return receive_.LargeReceives(); }
  // [R15.1] The peer waits for us to read, and the application for something else: an advert of
  // ours could close the circle.
  bool MayBeCrossed() const {
    return (reader_.held() == 0 && !adverts_crossed_) || receive_.has_room();
  }

  // --- the peer's SrcAvails ---
  bool reads() const { return reader_.active(); }  // one is not Processed, or owes a remainder
  size_t source_adverts_held() const { return reader_.held(); }
  bool holds_acknowledgement() const { return reader_.HoldsAcknowledgement(); }
  bool owes_read_answer() const { return reader_.NextAnswer() != AdvertReader::Answer::kNone; }
  // [R15.2, R16.2] They wait for no receive. REQ_PIPE goes along from so many large receives on.
  void SendReadAnswers(uint32_t hints_from, Outgoing& outgoing, Actions& actions,
                       Counters& counters);
  // Inline bytes that were kept for an advert become ordinary unread ones.
  void UseInlineBytes() {
    if (reader_.fresh()) TakeInlineBytes();
  }

  // --- our SinkAvails ---
  bool offering() const { return sink_.offering(); }  // its advert has the next MSeq
  // A receive waits, and the peer does not know of any.
  bool hides_receives() const { return receive_.has_room() && sink_.idle(); }
  bool sink_idle() const { return sink_.idle(); }
  size_t sink_adverts() const { return sink_.outstanding(); }
  bool owes_sink_cancel() const { return sink_.cancel_owed(); }
  std::optional<uint32_t> oldest_sink_key() const { return sink_.oldest_key(); }
  // `room`: adverts of either kind that the peer can still hold; `share`: of ours at most.
  void OfferSink(size_t room, size_t share, const Outgoing& outgoing, Actions& actions);
  // The answers to Expose. False: not to what was asked.
  bool OnExposed(const Exposed& exposed) { return sink_.OnExposed(exposed); }
  bool OnExposeFailed(AdvertId advert) { return sink_.OnExposeFailed(advert); }
  void GoWithoutExposure() { receive_.OnExposeRefused(); }
  Send& PostSinkAvail(Outgoing::Kind kind, Outgoing& outgoing, Actions& actions,
                      Counters& counters);
  void SendSinkCancel(Outgoing& outgoing, Actions& actions, Counters& counters);
  void DropSinkAdverts(Actions& actions);  // [R8.5.1] they have vanished
  void OnWithdrawn(AdvertId advert, Actions& actions) {
    if (const auto number = sink_.OnWithdrawn(advert)) receive_.OnWithdrawn(*number, actions);
  }

  // --- receive buffers ---
  ReceiveBuffers& buffers() { return buffers_; }
  const ReceiveBuffers& buffers() const { return buffers_; }
  uint32_t FreeReceives() const {
    return buffers_.count() - receive_.BuffersHeldBelow(buffers_.count());
  }
  void SendResizeAnswer(Outgoing& outgoing, Actions& actions, Counters& counters);
  // Nothing is unread or being read: buffers that a smaller window has not may go.
  bool idle() const { return receive_.buffers_held() == 0 && !reader_.active(); }

  // --- the end ---
  void OnLost() {
    sink_.OnLost();
    receive_.OnAllWithdrawn();
  }
  void FinishAll(Outcome outcome, Actions& actions) { receive_.FinishAll(outcome, actions); }

  bool InvariantsHold(const Credits& credits) const {
    return buffers_.InvariantsHold(credits) && receive_.InvariantsHold() &&
           reader_.InvariantsHold() && sink_.InvariantsHold() &&
           sink_.outstanding() == receive_.advertised();
  }
  void AddTo(Digest& digest) const;

 private:
  void PostAgain(ReceiveBuffer buffer, bool may_post, Outgoing& outgoing, Actions& actions) {
    buffers_.PostAgain(buffer, may_post, outgoing.credits(), actions);
  }
  bool MayRead(const DeliveryTerms& terms) const {
    return terms.may_read || (terms.may_read_last && !buffers_.has_spare());
  }
  void TakeInlineBytes();
  // True: it is dealt with.
  bool TakenBySink(const MessageArrived& arrived, Arrival& arrival, Actions& actions,
                   Counters& counters);
  enum class Reading : uint8_t { kWaits, kDeliverFirst, kCrossed };
  Reading ReadAdvert(const DeliveryTerms& terms, Outgoing& outgoing, Actions& actions);
  bool SettleInlineBytes(uint32_t first_read_bytes, const DeliveryTerms& terms, Outgoing& outgoing,
                         Actions& actions);
  void RefuseAdvert();

  ReceiveQueue receive_;
  AdvertReader reader_;
  SinkAdverts sink_;
  UrgentIn urgent_;
  ReceiveBuffers buffers_;

  bool invalidates_ = false;
  bool adverts_crossed_ = false;      // adverts of both sides have met with no receive posted
  bool sink_adverts_enabled_ = true;  // the peer writes to what it is shown
  const bool shows_receives_;
  uint32_t reads_out_max_ = 0;
  const uint32_t read_bytes_max_;
  const uint64_t read_ahead_bytes_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_INBOUND_INBOUND_HALF_H_
