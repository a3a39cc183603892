#include "impl/provider/setup/establishment.h"

#include <array>
#include <string>
#include <utility>

#include "impl/base/bytes.h"
#include "impl/provider/setup/patience.h"
#include "impl/sdp/wire/codec.h"

namespace esdp::provider {
namespace {

// [R25.1] Whole where it fits. A Hello's compact form is its beginning [R2.6.2].
ConstBytes EncodeHello(const sdp::wire::Message& hello, const fabric::Fabric& fabric,
                       std::array<std::byte, sdp::wire::kHelloBytes>& bytes) {
  size_t length = sdp::wire::Encode(hello, 0, bytes);
  if (fabric.limits().private_data_max >= length) return ConstBytes(bytes).first(length);
  const auto& body = *std::get_if<sdp::wire::Hello>(&hello.body);
  if (body.return_token == sdp::wire::ReturnToken{}) {
    return ConstBytes(bytes).first(sdp::wire::kCompactHelloBytes);
  }
  constexpr size_t kTail = sdp::wire::kCompactHelloTokenBytes - sdp::wire::kCompactHelloBytes;
  CopyBytes(Bytes(bytes).subspan(sdp::wire::kCompactHelloBytes, kTail),
            ConstBytes(bytes).subspan(sdp::wire::kHelloAddressesEnd, kTail));
  return ConstBytes(bytes).first(sdp::wire::kCompactHelloTokenBytes);
}

// What was said of the queue pair before.
void ForgetEnd(Session& session) {
  session.transport.failure() = {};
  session.rejection = Rejection::kNone;
  session.message_field = "";
}

}  // namespace

void Establishment::Start(Session& session, const sdp::StartConnect& action) {
  driver_.Flush();
  session.connecting = true;
  Address local = session.local;
  Address peer = session.peer;
  sdp::wire::Message hello = action.hello;
  absl::Status status;
  if (action.port) {
    if (session.transport.may_connect() && !connections_.BeginMove(session)) {
      session.transport.Refuse(
          absl::ResourceExhaustedError("too many connections are being moved by their peers"));
    }
    // The old port may still be in use, perhaps by a listener: the Hello alone has it.
    local.port = 0;
    peer.port = *action.port;
    // The core has a bound of its own.
    session.connect_deadline = EndOfAttempt(kTimeInfinite, !session.has_another_way,
                                            session.transport.fabric().limits(), driver_.now());
  } else if (session.transport.may_connect()) {
    status = NameLocalPort(session, local, hello);
  }
  std::array<std::byte, sdp::wire::kHelloBytes> bytes{};
  const ConstBytes encoded = EncodeHello(hello, session.transport.fabric(), bytes);
  if (session.transport.may_connect()) {
    if (status.ok()) status = Connect(session, local, peer, encoded);
    if (status.ok()) return driver_.tap().Sent(session.id, driver_.now(), encoded, hello);
    session.transport.failure().NoteRefusal(status);
  }
  session.transport.Note(QueuePairCue::kFailed);
  if (session.attempt && session.attempt->has_next) return;  // another fabric is tried
  driver_.Answer(sdp::ConnectFailed{.another_way = session.has_another_way});
}

absl::Status Establishment::Connect(const Session& session, const Address& local,
                                    const Address& peer, ConstBytes hello) {
  fabric::Fabric& fabric = session.transport.fabric();
  const fabric::QueuePairId queue_pair = session.transport.queue_pair();
  if (session.attempt && session.attempt->descriptor >= 0) {
    return fabric.ConnectOver(queue_pair, session.attempt->descriptor, hello,
                              session.connect_deadline);
  }
  return fabric.Connect(queue_pair, local, peer, hello, session.connect_deadline);
}

// The peer compares the Hello's port with the transport's, so it has to be known now. [R2.6.7]
// Where the transport tells it nothing it takes port and addresses from there.
absl::Status Establishment::NameLocalPort(const Session& session, Address& local,
                                          sdp::wire::Message& hello) {
  local.family = session.peer.family;
  const absl::StatusOr<Address> reserved = session.transport.fabric().ReserveAddress(
      session.transport.queue_pair(), local, session.peer);
  if (absl::IsUnimplemented(reserved.status())) return absl::OkStatus();
  if (!reserved.ok()) return reserved.status();
  local = *reserved;
  sdp::wire::Hello& named = std::get<sdp::wire::Hello>(hello.body);
  named.local_port = local.port;
  named.source_address = local.bytes;
  return absl::OkStatus();
}

void Establishment::Accept(Session& session, const sdp::AcceptConnection& action) {
  driver_.Flush();
  std::array<std::byte, sdp::wire::kHelloAckBytes> hello_ack{};
  const size_t bytes = sdp::wire::Encode(action.hello_ack, 0, hello_ack);
  if (session.transport.may_connect()) {
    // Without memory it throws, and the request is rejected with the connection's end.
    const absl::Status status = session.transport.fabric().Accept(
        session.request, session.transport.queue_pair(), ConstBytes(hello_ack).first(bytes));
    if (status.ok()) {
      session.request = fabric::RequestId::kNone;
      driver_.tap().Sent(session.id, driver_.now(), ConstBytes(hello_ack).first(bytes),
                         action.hello_ack);
      return;
    }
    session.transport.failure().NoteRefusal(status);
  }
  session.transport.Note(QueuePairCue::kFailed);
  RejectRequest(session);
  driver_.Answer(sdp::ConnectFailed{.another_way = session.has_another_way});
}

void Establishment::Reject(Session& session, const sdp::RejectConnection& action) {
  if (session.transport.phase() == QueuePairPhase::kAwaited) {
    driver_.WriteLog("the return of " + fabric::ToString(session.peer) +
                     " is rejected: " + action.reason);
  } else if (*session.reason == '\0') {
    session.reason = action.reason;
  }
  RejectRequest(session);
}

void Establishment::Replace(Session& session) {
  driver_.Flush();  // whatever is collected is the old one's
  ForgetEnd(session);
  session.moved = true;
  const bool is_followed = session.request != fabric::RequestId::kNone;
  do {
    if (!is_followed) session.next_place = NextToTry(session);
    ReplaceByNext(session);
  } while (!is_followed && !session.transport.may_connect() && session.has_another_way);
}

// Who follows its peer tries one fabric after the other.
uint8_t Establishment::NextToTry(const Session& session) {
  if (!session.any_fabric) return session.transport.place();
  return session.has_another_way ? static_cast<uint8_t>(session.next_place + 1) : uint8_t{0};
}

void Establishment::ReplaceByNext(Session& session) {
  const uint8_t place_before = session.transport.place();
  const fabric::QueuePairId before = session.transport.queue_pair();
  session.transport.Replace(*fabrics_[session.next_place], session.next_place);
  connections_.Rename(session, place_before, before);
  session.has_another_way = session.any_fabric && session.next_place + 1u < fabrics_.size();
}

void Establishment::AwaitHello(Session& session) {
  session.transport.Note(QueuePairCue::kPeerAwaited);
  session.connecting = false;
  ForgetEnd(session);
  if (!session.early_return) return;
  session.next_place = session.early_return->place;
  session.request = session.early_return->request;
  driver_.Answer(sdp::HelloArrived{session.early_return->hello});
  session.early_return.reset();
}

// Whatever becomes of it, its queue pair is destroyed with the first word of it.
void Establishment::SayFarewell(Session& session, const sdp::Farewell& action) {
  fabric::Fabric& fabric = session.transport.fabric();
  const auto queue_pair = fabric.CreateQueuePair(session.transport.options());
  if (!queue_pair.ok()) return;
  Address local = session.local;
  local.port = 0;
  Address peer = session.peer;
  peer.port = action.port;
  std::array<std::byte, sdp::wire::kHelloBytes> bytes{};
  const ConstBytes hello = EncodeHello(action.hello, fabric, bytes);
  if (fabric.Connect(*queue_pair, local, peer, hello, AddSaturating(driver_.now(), kFarewellWait))
          .ok()) {
    connections_.AddFarewell(session.transport.place(), *queue_pair);
    driver_.tap().Sent(session.id, driver_.now(), hello, action.hello);
  } else {
    (void)fabric.DestroyQueuePair(*queue_pair);
  }
}

void Establishment::RejectRequest(Session& session) {
  if (session.request == fabric::RequestId::kNone) return;
  (void)fabrics_[session.next_place]->Reject(
      std::exchange(session.request, fabric::RequestId::kNone), {});
}

// The fabrics reject what waits there.
void Establishment::StopReturn(Session& session) {
  for (size_t place = 0; place < session.return_listeners.size(); ++place) {
    const fabric::ListenerId listener = session.return_listeners[place];
    if (listener != fabric::ListenerId::kNone) (void)fabrics_[place]->StopListening(listener);
  }
  session.return_listeners.clear();
  session.early_return.reset();
}

}  // namespace esdp::provider
