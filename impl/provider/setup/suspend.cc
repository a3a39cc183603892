#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "impl/base/bytes.h"
#include "impl/base/status.h"
#include "impl/provider/setup/rendezvous.h"
#include "impl/sdp/wire/codec.h"

// A suspended connection's peer comes back to a listener of its own, which takes nobody else (sdp
// wire protocol, section 12).

namespace esdp::provider {
namespace {

constexpr size_t kWrongReturnsMax = 16;
constexpr Duration kBeforeRejection = std::chrono::seconds(1);

}  // namespace

absl::StatusOr<uint16_t> Rendezvous::ListenForReturn(Session& session) {
  if (!session.return_listeners.empty()) {
    return absl::FailedPreconditionError("another move of the connection is under way");
  }
  Address address = session.local;
  address.port = 0;
  std::vector<fabric::ListenerId> at(fabrics_.size(), fabric::ListenerId::kNone);
  const uint8_t own = session.transport.place();
  if (session.any_fabric) {
    ESDP_ASSIGN_OR_RETURN(at, ListenOnAFreePort(address, 1));
  } else {
    ESDP_ASSIGN_OR_RETURN(at[own], fabrics_[own]->Listen(address, 1));
  }
  const auto place = static_cast<size_t>(
      std::ranges::find_if(at, [](auto each) { return each != fabric::ListenerId::kNone; }) -
      at.begin());
  const absl::StatusOr<Address> named = fabrics_[place]->ListenerAddress(at[place]);
  session.return_listeners = std::move(at);
  if (!named.ok()) {
    StopAt(session.return_listeners);
    session.return_listeners.clear();
    return named.status();
  }
  return named->port;
}

// Where time is virtual everything is to happen again as it did.
sdp::wire::ReturnToken Rendezvous::NewReturnToken(bool virtual_time) {
  sdp::wire::ReturnToken token{};
  if (virtual_time) {
    StoreBigEndian(std::as_writable_bytes(std::span(token)), 0, ++tokens_);
    return token;
  }
  for (size_t at = 0; at < token.size(); at += sizeof(uint32_t)) {
    const std::optional<uint32_t> number = random_.Next32();
    if (!number.has_value()) return {};
    StoreBigEndian(std::as_writable_bytes(std::span(token)), at, *number);
  }
  return token;
}

// Whoever guesses has to wait for each answer.
void Rendezvous::RejectReturn(Session& session, uint8_t place, const fabric::RendezvousEvent& event,
                              const std::string& why) {
  ++session.returns_rejected;
  SayRejected(event, why);
  if (wrong_returns_.size() == kWrongReturnsMax) RejectFirstReturn();
  const Time reject_at = AddSaturating(driver_.now(), kBeforeRejection);
  wrong_returns_.push_back({reject_at, place, event.request});
  if (wrong_returns_.size() == 1) driver_.timers().SetAlarm(kRejectAlarm, reject_at);
}

void Rendezvous::RejectDue() {
  while (!wrong_returns_.empty() && wrong_returns_.front().reject_at <= driver_.now()) {
    RejectFirstReturn();
  }
  if (!wrong_returns_.empty()) {
    driver_.timers().SetAlarm(kRejectAlarm, wrong_returns_.front().reject_at);
  }
}

void Rendezvous::RejectFirstReturn() {
  const WrongReturn& first = wrong_returns_.front();
  (void)fabrics_[first.place]->Reject(first.request, {});  // unless its listener has done so
  wrong_returns_.pop_front();
}

void Rendezvous::OnReturn(Session& session, uint8_t place, const fabric::RendezvousEvent& event) {
  // It goes by the port it had before, whatever port this queue pair comes from.
  const sdp::wire::TransportAddresses addresses{static_cast<uint8_t>(event.peer.family),
                                                session.peer.port, event.peer.bytes,
                                                event.local.bytes};
  sdp::HelloArrived arrived;
  if (const auto error = sdp::wire::DecodeHello(PrivateDataOf(event), addresses, arrived.hello)) {
    return RejectReturn(session, place, event,
                        std::string("no Hello: ") + error->field + ": " + error->reason);
  }
  driver_.tap().Received(session.id, driver_.now(), PrivateDataOf(event), arrived.hello);
  if (event.peer.bytes != session.peer.bytes)
    return RejectReturn(session, place, event, "not from the peer's address");
  if (const char* refusal = session.core.CheckResumption(arrived.hello)) {
    return RejectReturn(session, place, event, refusal);
  }
  if (session.transport.phase() == QueuePairPhase::kAwaited) {
    session.next_place = place;
    session.request = event.request;
    driver_.Feed(session, arrived);
    return driver_.Flush();
  }
  // The old queue pair is not gone yet, and what it has delivered perhaps not polled; or the peer
  // is there already.
  const sdp::Phase phase = session.core.phase();
  const bool early = phase == sdp::Phase::kSuspending || phase == sdp::Phase::kSuspended;
  if (!early || session.early_return)
    return Reject(place, event, "the connection has its new peer");
  session.early_return = {place, event.request, arrived.hello};
}

}  // namespace esdp::provider
