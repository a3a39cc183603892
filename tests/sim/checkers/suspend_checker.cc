#include "tests/sim/checkers/suspend_checker.h"

namespace esdp::simulation {

namespace wire = sdp::wire;
using fabric::sim::WireEnd;
using wire::Message;

uint16_t SuspendChecker::FirstOf(uint16_t connection) const {
  const auto found = moved_.find(connection);
  return found == moved_.end() ? connection : found->second.first;
}

WireEnd SuspendChecker::FirstOf(const WireEnd& end) const {
  const auto found = moved_.find(end.connection);
  if (found == moved_.end()) return end;
  WireEnd first = end;
  first.connection = found->second.first;
  first.connecting = end.connecting != found->second.turned;
  return first;
}

void SuspendChecker::OnHello(const WireEnd& from) {
  const auto found = returns_.find(from.listener);
  if (found == returns_.end()) return;
  moved_[from.connection] = found->second;
  marks().Hit("a connection on another queue pair");
  if (found->second.times > 1) marks().Hit("a connection moved twice");
  returns_.erase(found);
}

// Behind SuspComm nothing is begun. Only where the peer's crosses it, and the connecting side has
// to answer, does that finish first what the peer has begun.
bool SuspendChecker::IsSilent(const WireEnd& from) {
  const SuspendPage& end = Of(from);
  return end.acknowledged || (end.asked && !(from.connecting && end.asked_by_peer));
}

void SuspendChecker::OnImmediateSent(const WireEnd& from, const Message& message, size_t payload,
                                     bool shows_sources, bool shows_sinks) {
  SuspendPage& end = Of(from);
  const bool bare = Get<wire::Data>(message) != nullptr && payload == 0;
  const bool answers = Get<wire::SuspCommAck>(message) != nullptr;
  const auto* asks = Get<wire::SuspComm>(message);
  const bool aborts = Get<wire::AbortConn>(message) != nullptr;
  if (IsSilent(from) && !bare && !aborts) {
    Find(from, std::string(NameOf(message)) + " behind " +
                   (end.acknowledged ? "SuspCommAck" : "SuspComm"));
  }
  if (answers) {
    if (!end.asked_by_peer) Find(from, "SuspCommAck: an answer to no SuspComm");
    end.acknowledged = true;
  }
  if (asks == nullptr) return;
  if (shows_sources) marks().Hit("suspended with SrcAvails outstanding");
  if (shows_sinks) marks().Hit("suspended with SinkAvails outstanding");
  if (end.asked_by_peer) marks().Hit("both suspend");
  end.asked = true;
  NoteReturn(from, *asks);
}

void SuspendChecker::NoteReturn(const WireEnd& from, const wire::SuspComm& asks) {
  const auto moved = moved_.find(from.connection);
  const uint32_t times = moved == moved_.end() ? 0 : moved->second.times;
  const bool turned = FirstOf(from).connecting;  // whoever is asked connects
  returns_[static_cast<uint16_t>(asks.service_id)] = {FirstOf(from.connection), times + 1, turned};
}

void SuspendChecker::OnTransfer(const WireEnd& from) {
  if (IsSilent(from)) Find(from, "RDMA behind SuspComm");
}

void SuspendChecker::OnArrived(const WireEnd& at, const Message& message) {
  if (Get<wire::SuspComm>(message) == nullptr) return;
  SuspendPage& end = Of(at);
  if (end.asked) marks().Hit("both suspend");
  end.asked_by_peer = true;
}

}  // namespace esdp::simulation
