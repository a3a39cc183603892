#include <algorithm>
#include <optional>
#include <variant>

#include "impl/base/check.h"
#include "impl/sdp/common/limits.h"
#include "impl/sdp/connection.h"

// How bytes are delivered: our adverts, what becomes of them, and the modes of both halves.

namespace esdp::sdp {

// --- what may be advertised ---

// [R5.13]
size_t Connection::AdvertRoom() const {
  return peer_.max_adverts -
         std::min<size_t>(peer_.max_adverts, source_.count() + sink_.outstanding());
}

bool Connection::MayAdvertise() const {
  if (!mode_policy_.wants_adverts()) return false;
  if (!peer_may_read_ || modes_.permits().source_adverts == AdvertAllowance::kNone) return false;
  if (AdvertRoom() == 0 && !source_.outstanding()) return false;  // SinkAvails have taken it all
  // [R15.1] The peer waits for us to read, and the application for something else: an advert
  // of ours could close the circle.
  return (reader_.held() == 0 && !adverts_crossed_) || receive_.has_room();
}

bool Connection::MayOffer() const {
  // [R7.4.1] A cancel must be Processed first.
  if (source_.cancelling() || AdvertRoom() == 0 || writer_.awaits_answer()) return false;
  const AdvertAllowance allowance = modes_.permits().source_adverts;
  return allowance == AdvertAllowance::kMany ||
         (allowance == AdvertAllowance::kOne && !source_.outstanding());
}

void Connection::OfferAdvert(Actions& actions) {
  const bool combined = modes_.send() == Mode::kCombined;  // [R5.8, R5.10]
  source_.Offer(send_.AdvertCandidate(), combined ? kInlineBytes : 0, actions);
}

// --- answers to Expose and Withdraw ---

void Connection::On(const Exposed& exposed, Actions& actions) {
  if (SinkAdverts::Owns(exposed.advert)) return OnSinkExposed(exposed, actions);
  if (phase_ == Phase::kAborting || phase_ == Phase::kClosed) {
    source_.OnExposeFailed(exposed.advert);  // too late: nobody will be told of it
    return;
  }
  if (!ESDP_CHECK(source_.OnExposed(exposed))) {
    Fail(Outcome::kInternal, "Exposed: not asked", actions);
    return;
  }
  // Nothing was sent since the offer, so credit and slot are still there.
  Send& send = NewSend(source_.Message(), actions);
  const uint32_t inline_bytes = source_.inline_bytes();
  const uint64_t number = send_.TakeAdvert(source_.range(), inline_bytes, send);
  Stamp(send, inline_bytes > 0 ? SendKind::kPayload : SendKind::kControl, false);
  const uint32_t sequence = send.message.base.sequence;
  if (inline_bytes > 0) {
    OnPayloadPosted(sequence);
  }
  source_.OnPosted(number, sequence);
  ++counters_.source_adverts_sent;
}

void Connection::On(const ExposeFailed& failed, Actions& actions) {
  const bool of_sink = SinkAdverts::Owns(failed.advert);
  const bool asked =
      of_sink ? sink_.OnExposeFailed(failed.advert) : source_.OnExposeFailed(failed.advert);
  if (phase_ == Phase::kAborting || phase_ == Phase::kClosed) return;
  if (!ESDP_CHECK(asked)) {
    Fail(Outcome::kInternal, "ExposeFailed: not asked", actions);
    return;
  }
  of_sink ? receive_.OnExposeRefused() : send_.OnExposeFailed();
  ++counters_.expose_failures;
}

void Connection::On(const Withdrawn& withdrawn, Actions& actions) {
  if (const auto number = sink_.OnWithdrawn(withdrawn.advert)) {
    receive_.OnWithdrawn(*number, actions);
  }
  if (const auto number = source_.OnWithdrawn(withdrawn.advert)) send_.OnWithdrawn(*number);
}

// --- what the peer says of our adverts ---

void Connection::OnRdmaRdCompl(const MessageArrived& arrived, Actions& actions) {
  const auto& completion = std::get<wire::RdmaRdCompl>(arrived.message.body);
  const SourceAdverts::Progress progress =
      source_.OnRdmaRdCompl(completion.length, arrived.invalidated_key, actions);
  const char* violation = progress.violation;
  // [R7.2.4] The sink receives all of a remainder before it completes a later advert.
  if (progress.bytes_read > 0 && send_.in_remainder()) {
    violation = "RdmaRdCompl: an earlier advert's remainder was not sent";
  }
  if (violation != nullptr) {
    Fail(Outcome::kPeerProtocol, violation, actions);
    return;
  }
  if ((arrived.message.base.flags & wire::kFlagReqPipe) != 0) mode_policy_.OnHint();
  if (progress.bytes_read > 0) send_.OnAdvertRead(progress.bytes_read, counters_);
  if (!progress.complete) return;
  send_.OnAdvertComplete();
  mode_policy_.OnRead();
}

void Connection::OnSendSm(const MessageArrived& arrived, Actions& actions) {
  ++counters_.send_sm_received;
  const SourceAdverts::Progress progress =
      source_.OnSendSm(arrived.message.base.acknowledged, actions);
  if (progress.revoked) {
    send_.OnAdvertsCancelled();
    send_.OnAdvertsRevoked(actions);
  }
  if (!progress.refused) return;
  mode_policy_.OnRefused();
  send_.OnAdvertRefused();
}

void Connection::OverrideSourceAdverts(Actions& actions) {
  counters_.source_adverts_lost += source_.count();
  source_.Override(actions);
  send_.OnAdvertsRevoked(actions);
}

void Connection::SendSourceCancel(Actions& actions) {
  if (!MaySendControl()) return;
  Send& send = NewSend(wire::SrcAvailCancel{}, actions);
  Stamp(send, SendKind::kControl, false);
  source_.OnCancelPosted(send.message.base.sequence);
  ++counters_.source_cancels_sent;
}

// --- modes ---

void Connection::OnModeChange(const wire::ModeChange& change, Actions& actions) {
  ++counters_.mode_changes_received;
  const Modes::Change led_to = MayUseModes() || change.mode == Mode::kCombined
                                   ? modes_.OnModeChange(change)
                                   : Modes::Change::kIllegal;
  if (led_to == Modes::Change::kIllegal) {
    Fail(Outcome::kPeerProtocol, "ModeChange: not from this mode, or not by its master", actions);
  } else if (modes_.receive() == Mode::kBuffered && reader_.held() > 0) {
    Fail(Outcome::kPeerProtocol, "ModeChange: to Buffered with a SrcAvail outstanding", actions);
  } else if (led_to == Modes::Change::kSendRaised) {
    mode_policy_.OnRaised();
  } else if (led_to == Modes::Change::kReceiveLowered) {
    DropSinkAdverts(actions);  // [R5.22, R8.5.1]
    // Its master waits to hear that we know.
    if (!acknowledge_at_) acknowledge_at_ = AddSaturating(now_, config_.acknowledge_delay);
  }
}

bool Connection::HintsPipelined() const {
  return MayUseModes() && mode_policy_.Hints(modes_.receive(), receive_.LargeReceives());
}

void Connection::SendModeChanges(Actions& actions) {
  if (!MaySendControl()) return;
  if (!teardown_.disconn_sent() && !source_.cancelling()) {
    const auto next = mode_policy_.NextSend(modes_.send(), send_.LargeSends());
    const auto change = next ? modes_.ChangeOfSend(*next) : std::nullopt;
    // [R5.15, R5.17]
    const bool ready = (next != Mode::kBuffered || !source_.outstanding()) &&
                       (next != Mode::kCombined || !writer_.in_process());
    if (change && ready) PostModeChange(*change, actions);
  }
  if (teardown_.peer_shut() || !MaySendControl()) return;
  const auto next = mode_policy_.NextReceive(modes_.receive(), receive_.LargeReceives());
  const auto change = next ? modes_.ChangeOfReceive(*next) : std::nullopt;
  if (change) PostModeChange(*change, actions);
}

void Connection::PostModeChange(const wire::ModeChange& change, Actions& actions) {
  Send& send = NewSend(change, actions);
  Stamp(send, SendKind::kControl, false);
  if (!change.changes_send_half && modes_.send() == Mode::kPipelined) writer_.LeavePipelined();
  modes_.OnPosted(change, send.message.base.sequence);
  ++counters_.mode_changes_sent;
}

}  // namespace esdp::sdp
