#include "tests/sim/checkers/wire_checker.h"

#include <algorithm>

namespace esdp::simulation {

using fabric::sim::Frame;
using fabric::sim::FrameKind;
using fabric::sim::WireEnd;
using sdp::wire::Message;

namespace wire = sdp::wire;

// What the Hello or HelloAck of one side says binds the other.
void WireChecker::OnPrivateData(const WireEnd& from, std::vector<std::byte>& data) {
  if (from.connecting) suspends_.OnHello(from);
  Message message;
  if (wire::Decode(data, message)) {
    if (!data.empty()) marks().Hit("a Hello of another form");
    return;
  }
  marks().Hit(std::string("sent ") + simulation::NameOf(message));
  End& peer = PeerOf(from);
  peer.limit = message.base.acknowledged + message.base.buffers;
  if (const auto* hello = Get<wire::Hello>(message)) {
    peer.adverts_max = hello->max_adverts;
    modes_.OnDeclared(from, hello->max_adverts);
    resizes_.OnDeclared(from, hello->local_receive_size);
  }
  if (const auto* ack = Get<wire::HelloAck>(message)) {
    peer.adverts_max = ack->max_adverts;
    modes_.OnDeclared(from, ack->max_adverts);
    resizes_.OnDeclared(from, ack->actual_receive_size);
  }
}

void WireChecker::OnTransmit(const WireEnd& from, Frame& frame) {
  if (IsDisregarded(from.connection)) return FollowMove(from, frame);
  if (frame.kind == FrameKind::kWrite) modes_.OnWrite(from);
  if (frame.kind == FrameKind::kWrite || frame.kind == FrameKind::kReadRequest) {
    suspends_.OnTransfer(from);
  }
  if (frame.kind != FrameKind::kSend) return;
  Message message;
  if (const auto error = wire::Decode(frame.payload, message)) {
    return Find(from, std::string("sends what is no message: ") + error->field);
  }
  OnMessage(from, message, frame.has_key);
}

// It stays the same connection, whatever else it says.
void WireChecker::FollowMove(const WireEnd& from, const Frame& frame) {
  Message message;
  if (frame.kind != FrameKind::kSend || wire::Decode(frame.payload, message)) return;
  if (const auto* asks = Get<wire::SuspComm>(message)) suspends_.NoteReturn(from, *asks);
}

void WireChecker::OnMessage(const WireEnd& from, const Message& message, bool invalidates) {
  ++messages_;
  const size_t payload = PayloadOf(message);
  const End& end = Of(from);
  uint64_t shown = 0;
  for (const End::Advert& advert : end.sources) shown += advert.unread - advert.read;
  for (const End::Return& back : end.returns) {
    if (Beyond(back.sequence, message.base.acknowledged)) shown += back.bytes;
  }
  modes_.OnImmediateSent(from, message, payload, invalidates);
  resizes_.OnImmediateSent(from, message, end.sinks > 0);
  urgents_.OnImmediateSent(suspends_.FirstOf(from), message, payload,
                           shown);  // they outlive a move
  suspends_.OnImmediateSent(from, message, payload, !end.sources.empty(), end.sinks > 0);
  CheckSequence(from, message);
  CheckCredits(from, message, payload);
  CheckEnd(from, message, payload);
  NoteSent(from, message, payload);
}

void WireChecker::CheckSequence(const WireEnd& from, const Message& message) {
  End& end = Of(from);
  if (message.base.sequence != end.sent + 1) {
    Find(from,
         "MSeq " + std::to_string(message.base.sequence) + " follows " + std::to_string(end.sent));
  }
  if (Beyond(message.base.acknowledged, end.arrived)) {
    Find(from, "acknowledges a message that has not arrived");
  }
  end.sent = message.base.sequence;
}

// Section 4.3. The adapter knows of headers a little earlier than the core, so that this is never
// too strict.
void WireChecker::CheckCredits(const WireEnd& from, const Message& message, size_t payload) {
  const End& end = Of(from);
  const uint32_t needed = payload > 0 ? 2 : 0;  // credits that must be left
  if (Beyond(message.base.sequence + needed, end.limit)) {
    Find(from, std::string("overdraws its credits with ") + simulation::NameOf(message));
  }
  if (message.base.sequence == end.limit) marks().Hit("the last credit used");
  const bool bare = Get<wire::Data>(message) != nullptr && payload == 0;
  if (bare && message.base.sequence + 1 == end.limit) marks().Hit("a bare Data with two credits");
}

void WireChecker::CheckEnd(const WireEnd& from, const Message& message, size_t payload) {
  End& end = Of(from);
  if (end.end_sent && payload > 0) Find(from, "sends user bytes after DisConn");
  if (Get<wire::DisConn>(message) != nullptr) {
    if (end.end_sent) Find(from, "sends DisConn twice");
    end.end_sent = true;
  }
}

void WireChecker::NoteSent(const WireEnd& from, const Message& message, size_t payload) {
  End& end = Of(from);
  marks().Hit(std::string("sent ") + simulation::NameOf(message));
  if (payload > 0) {
    // The sink gives up its oldest advert for the payload, or counts it.
    if (end.live > 0) {
      --end.live;
    } else {
      ++end.potential_non_discards;
    }
  }
  if (Get<wire::SrcAvailCancel>(message) != nullptr && !end.sources.empty()) {
    end.cancel_sent = message.base.sequence;
  }
  if (Get<wire::RdmaWrCompl>(message) != nullptr && end.live > 0) --end.live;
  if (Get<wire::ModeChange>(message) != nullptr) NoteChangeSent(from, message);
  NoteAdvertSent(from, message, payload);
  NoteAnswerSent(from, message);
}

void WireChecker::NoteChangeSent(const WireEnd& from, const Message& message) {
  const auto& change = *Get<wire::ModeChange>(message);
  if (change.changes_send_half || change.mode != wire::Mode::kCombined) return;
  End& end = Of(from);
  if (!end.sources.empty()) marks().Hit("Pipelined left with SrcAvails outstanding");
  if (end.live > 0) marks().Hit("Pipelined left with SinkAvails in hand");
  if (PeerOf(from).sinks > 0) marks().Hit("Pipelined left with SinkAvails outstanding");
  end.live = 0;
  end.frozen_until = message.base.sequence;
  end.frozen_non_discards = end.potential_non_discards;
}

void WireChecker::NoteAdvertSent(const WireEnd& from, const Message& message, size_t payload) {
  End& end = Of(from);
  if (const auto* advert = Get<wire::SrcAvail>(message)) {
    if (end.cancel_sent) Find(from, "advertises before its SrcAvailCancel is processed");
    // One that has come, and that the sender has not looked at yet, overrides this as well.
    const bool lost = end.sink_arrived && Beyond(*end.sink_arrived, message.base.acknowledged);
    if (!lost) end.sources.push_back({advert->length - payload, 0, payload > 0});
    if (end.sources.size() > end.adverts_max) Find(from, "more SrcAvails than the peer takes");
    if (end.sources.size() > 1) marks().Hit("two SrcAvails outstanding");
    if (!end.seen.empty()) marks().Hit("both sides advertise as sources");
  }
  if (Get<wire::SinkAvail>(message) != nullptr) {
    if (++end.sinks > int64_t{end.adverts_max}) Find(from, "more SinkAvails than the peer takes");
    if (end.sinks > 1) marks().Hit("two SinkAvails outstanding");
    if (!end.seen.empty()) marks().Hit("a SrcAvail and a SinkAvail cross");
    if (payload > 0) marks().Hit("a transaction");
    if (resizes_.IsPending(from)) marks().Hit("a SinkAvail while a resize is in flight");
    end.has_sinks = true;
    end.seen.clear();  // section 8.3: what came meanwhile is ignored
  }
}

void WireChecker::NoteAnswerSent(const WireEnd& from, const Message& message) {
  End& end = Of(from);
  const bool gives_back = Get<wire::SendSm>(message) != nullptr;
  const auto* read = Get<wire::RdmaRdCompl>(message);
  if ((!gives_back && read == nullptr) || end.has_sinks) return;
  if (end.seen.empty()) {
    Find(from,
         std::string("answers an advert that is not there with ") + simulation::NameOf(message));
    return;
  }
  End::Advert& advert = end.seen.front();
  if (read != nullptr) {
    advert.read += read->length;
    if (advert.read > advert.unread) Find(from, "RdmaRdCompl: more than was advertised");
    if (advert.read < advert.unread) marks().Hit("an advert read in parts");
    if (end.cancel_seen && advert.read >= advert.unread) marks().Hit("a cancel crosses the end");
  }
  if (gives_back && advert.read > 0) marks().Hit("SendSm after a part was read");
  if (gives_back && end.cancel_seen && !Beyond(*end.cancel_seen, message.base.acknowledged)) {
    marks().Hit("a cancel that took adverts back");
    end.seen.clear();  // section 7.4: one SendSm for all
  } else if (gives_back || advert.read >= advert.unread) {
    end.seen.pop_front();
  }
  if (end.seen.empty()) end.cancel_seen.reset();
}

void WireChecker::OnArrive(const WireEnd& at, const Frame& frame) {
  if (frame.kind != FrameKind::kSend || IsDisregarded(at.connection)) return;
  Message message;
  if (wire::Decode(frame.payload, message)) return;
  End& end = Of(at);
  if (message.base.sequence != end.arrived + 1) Find(at, "a message arrives out of order");
  end.arrived = message.base.sequence;
  const uint32_t limit = message.base.acknowledged + message.base.buffers;
  if (Beyond(limit, end.limit)) end.limit = limit;
  modes_.OnArrived(at, message);
  resizes_.OnArrived(at, message);
  suspends_.OnArrived(at, message);
  NoteArrived(at, message, PayloadOf(message));
}

void WireChecker::NoteArrived(const WireEnd& at, const Message& message, size_t payload) {
  End& end = Of(at);
  if (const auto* advert = Get<wire::SrcAvail>(message)) {
    end.seen.push_back({.unread = advert->length - payload});
    if (end.sinks > 0) marks().Hit("a SrcAvail and a SinkAvail cross");
  }
  if (end.frozen_until && !Beyond(*end.frozen_until, message.base.acknowledged)) {
    end.frozen_until.reset();
  }
  if (Get<wire::SinkAvail>(message) != nullptr) NoteSinkArrived(end, message);
  if (const auto* change = Get<wire::ModeChange>(message)) {
    const bool lowers = !change->changes_send_half && change->mode == wire::Mode::kCombined;
    if (lowers) end.sinks = -int64_t{end.adverts_max};
  }
  if (Get<wire::SrcAvailCancel>(message) != nullptr && !end.seen.empty()) {
    end.cancel_seen = message.base.sequence;
  }
  if (payload > 0 || Get<wire::RdmaWrCompl>(message) != nullptr) EndOneSink(end);
  if (Get<wire::SinkCancelAck>(message) != nullptr || Get<wire::DisConn>(message) != nullptr) {
    end.sinks = -int64_t{end.adverts_max};
  }
  NoteAnswerArrived(end, message);
}

// Its adverts are no more, but the sender may not have looked at this message yet.
void WireChecker::GiveBack(End& end, const Message& message, size_t adverts) {
  uint64_t bytes = 0;
  for (; adverts > 0; --adverts) {
    bytes += end.sources.front().unread - end.sources.front().read;
    end.sources.pop_front();
  }
  end.returns.push_back({message.base.sequence, bytes});
  if (end.returns.size() > 8) end.returns.pop_front();
}

void WireChecker::EndOneSink(End& end) {
  end.sinks = std::max(end.sinks - 1, -int64_t{end.adverts_max});
}

void WireChecker::NoteSinkArrived(End& end, const Message& message) {
  const auto& advert = *Get<wire::SinkAvail>(message);
  if (end.frozen_until) {
    if (advert.non_discards != end.frozen_non_discards) {
      --end.frozen_non_discards;
      --end.potential_non_discards;
    }
    if (!end.sources.empty() && end.sources.front().with_bytes) return;  // shown after the change
  } else if (advert.non_discards != end.potential_non_discards) {
    marks().Hit("a stale SinkAvail dropped");
    --end.potential_non_discards;
    return;
  } else {
    ++end.live;
  }
  GiveBack(end, message, end.sources.size());  // section 8.3: the sink wins
  end.cancel_sent.reset();
  end.sink_arrived = message.base.sequence;
}

void WireChecker::NoteAnswerArrived(End& end, const Message& message) {
  if (end.sources.empty()) return;
  End::Advert& advert = end.sources.front();
  if (const auto* read = Get<wire::RdmaRdCompl>(message)) {
    advert.read += read->length;
    if (advert.read >= advert.unread) end.sources.pop_front();
  } else if (Get<wire::SendSm>(message) != nullptr) {
    const bool all = end.cancel_sent && !Beyond(*end.cancel_sent, message.base.acknowledged);
    GiveBack(end, message, all ? end.sources.size() : 1);
  }
  if (end.sources.empty()) end.cancel_sent.reset();
}

}  // namespace esdp::simulation
