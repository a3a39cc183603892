#include "impl/fabric/qpip/rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "impl/base/status.h"
#include "impl/base/undo.h"

namespace esdp::fabric::qpip {
namespace {

constexpr int kAcceptsPerTurn = 32;
// The system's queue is long whatever the backlog: those in it cost nothing here.
constexpr int kSystemQueue = 4096;
constexpr Duration kBetweenWords = std::chrono::seconds(10);
constexpr Duration kRestAfterFailure = std::chrono::milliseconds(100);
constexpr int kLastTurns = 128;  // a listener that stops answers those that wait already

absl::Status UnknownListener() { return absl::NotFoundError("no such listener"); }

absl::Status UnknownRequest() {
  return absl::NotFoundError("no such request: it was answered, or its listener was stopped");
}

RendezvousEvent RequestEvent(uint64_t owner, ListenerId listener, const TcpStream& stream,
                             const StartupReader& reader) {
  RendezvousEvent event;
  event.type = RendezvousType::kConnectRequest;
  event.listener = listener;
  event.request = RequestId{owner};
  event.local = stream.LocalAddress();
  event.peer = stream.PeerAddress();
  const Offer most{.checksum = false,
                   .initiator_depth = kReadsInFlightMax,
                   .responder_resources = kReadsInFlightMax};
  const Negotiated possible = AnswerRequest(reader.startup(), most);
  event.initiator_depth = possible.initiator_depth;
  event.responder_resources = possible.responder_resources;
  const ConstBytes data = reader.private_data();
  event.private_data_bytes = static_cast<uint16_t>(data.size());
  CopyBytes(event.private_data, data);
  return event;
}

}  // namespace

absl::Status Rendezvous::CheckPrivateData(ConstBytes private_data) {
  if (private_data.size() <= kPrivateDataSentMax) return absl::OkStatus();
  return absl::OutOfRangeError("more private data than limits().private_data_max");
}

Offer Rendezvous::OfferOf(const QueuePairOptions& options) const {
  return Offer{.checksum = options.checksum || commons_.options.checksum,
               .initiator_depth = options.initiator_depth,
               .responder_resources = options.responder_resources};
}

// --- listening ---

absl::StatusOr<ListenerId> Rendezvous::Listen(const Address& address, int backlog) {
  absl::StatusOr<TcpStream> socket = ListenOn(address, kSystemQueue);
  if (!socket.ok()) return socket.status();
  // Inherited by what is accepted, so that a buffer size counts from the first packet on.
  if (absl::Status status = socket->Configure(commons_.options); !status.ok()) return status;
  const uint64_t owner = listeners_.Insert(
      Listener{.socket = *std::move(socket),
               .over = {},
               .silent_max = std::max(kSilentRequestsMax, static_cast<size_t>(backlog))});
  Listener& listener = *listeners_.Find(owner);
  listener.watch =
      commons_.poller.Watch(listener.socket.descriptor(), Watched::kListener, owner, true, false);
  if (listener.watch != WatchId::kNone) return ListenerId{owner};
  listeners_.Erase(owner);
  return absl::ResourceExhaustedError("the system cannot watch one more socket");
}

absl::StatusOr<Address> Rendezvous::ListenerAddress(ListenerId id) const {
  const Listener* listener = listeners_.Find(static_cast<uint64_t>(id));
  if (listener == nullptr) return UnknownListener();
  return listener->socket.is_open() ? listener->socket.LocalAddress() : listener->over;
}

absl::StatusOr<ListenerId> Rendezvous::ListenOver(int descriptor) {
  ESDP_ASSIGN_OR_RETURN(TcpStream stream, TcpStream::Over(descriptor, commons_.options));
  const uint64_t listener =
      listeners_.Insert(Listener{.socket = {}, .over = stream.LocalAddress()});
  Undo forget([&] { listeners_.Erase(listener); });
  const uint64_t owner =
      requests_.Insert(Request{.listener = ListenerId{listener}, .stream = std::move(stream)});
  Undo drop([&] { Drop(owner); });
  Request& request = *requests_.Find(owner);
  request.watch =
      commons_.poller.Watch(request.stream.descriptor(), Watched::kRequest, owner, true, false);
  if (request.watch == WatchId::kNone) {
    return absl::ResourceExhaustedError("the system cannot watch one more socket");
  }
  commons_.poller.SetDeadline(
      request.watch, AddSaturating(commons_.clock->Now(), commons_.options.startup_timeout));
  // As a rule its request is there.
  (void)OnRequestReady(owner);
  drop.Cancel();
  forget.Cancel();
  return ListenerId{listener};
}

absl::Status Rendezvous::StopListening(ListenerId id) {
  const uint64_t owner = static_cast<uint64_t>(id);
  Listener* listener = listeners_.Find(owner);
  if (listener == nullptr) return UnknownListener();
  try {
    for (int i = 0; i < kLastTurns && OnListenerReady(owner);) ++i;
  } catch (const std::bad_alloc&) {  // what waits in the system's queue is reset
  }
  commons_.poller.Forget(listener->watch);
  const bool over = !listener->socket.is_open();
  listeners_.Erase(owner);
  commons_.outbox.EraseEventsIf(
      [id](const RendezvousEvent& event) { return event.listener == id; });

  // Those whose request is not complete are rejected when it is: Present finds no listener. Nobody
  // waits for the one of a listener over a connection.
  if (over) {
    if (const uint64_t incomplete = FindRequest(id, false)) Drop(incomplete);
  }
  while (const uint64_t presented = FindRequest(id, true)) {
    try {
      RejectStream(*requests_.Find(presented), {});
    } catch (const std::bad_alloc&) {  // it is reset
    }
    Drop(presented);
  }
  return absl::OkStatus();
}

uint64_t Rendezvous::FindRequest(ListenerId listener, bool presented) {
  uint64_t found = kNoHandle;
  requests_.ForEach([&](uint64_t owner, const Request& request) {
    if (request.listener == listener && request.presented == presented) found = owner;
  });
  return found;
}

bool Rendezvous::OnListenerReady(uint64_t owner) {
  Listener* listener = listeners_.Find(owner);
  if (listener == nullptr || !listener->socket.is_open()) return false;
  bool moved = false;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    // One more than that, so that it is known whether it comes from elsewhere.
    if (silent_requests_.size() > listener->silent_max && !DropOneThatIsSilent()) {
      Rest(*listener, AddSaturating(commons_.clock->Now(), kRestAfterFailure));
      break;
    }
    TcpStream stream;
    int error = 0;
    const IoOutcome outcome = AcceptFrom(listener->socket, stream, error);
    if (outcome == IoOutcome::kWouldBlock) break;
    if (outcome == IoOutcome::kFailed) {
      // Out of descriptors: a stranger that says nothing is the first to go.
      const bool is_short = error == EMFILE || error == ENFILE;
      if (is_short && DropOneThatIsSilent()) continue;
      if (is_short) SayShort(ListenerId{owner});
      OnAcceptFailed(*listener, error);
      break;
    }
    moved = true;
    listener->starved = false;
    AddRequest(ListenerId{owner}, std::move(stream));
  }
  return moved;
}

// Those that wait keep the listener readable: look away for a while instead of spinning.
void Rendezvous::Rest(Listener& listener, Time until) {
  commons_.poller.Change(listener.watch, false, false);
  commons_.poller.SetDeadline(listener.watch, until);
}

void Rendezvous::OnAcceptFailed(Listener& listener, int error) {
  Rest(listener, AddSaturating(commons_.clock->Now(), kRestAfterFailure));
  if (std::exchange(listener.starved, true) || !commons_.options.log) return;
  const absl::StatusOr<Address> address = listener.socket.LocalAddress();
  commons_.options.log("connections wait at " + (address.ok() ? ToString(*address) : "a listener") +
                       ": " + strerror(error) +
                       "; they are taken when the system allows it (ulimit -n: descriptors)");
}

void Rendezvous::SayShort(ListenerId listener) {
  RendezvousEvent event;
  event.type = RendezvousType::kShort;
  event.listener = listener;
  commons_.outbox.PushBack(event);
}

void Rendezvous::OnListenerDeadline(uint64_t owner) {
  const Listener* listener = listeners_.Find(owner);
  if (listener != nullptr) commons_.poller.Change(listener->watch, true, false);
}

// --- the accepting side ---

void Rendezvous::AddRequest(ListenerId listener, TcpStream stream) {
  if (!stream.Configure(commons_.options).ok()) return;
  const uint64_t owner =
      requests_.Insert(Request{.listener = listener, .stream = std::move(stream)});
  Request* request = requests_.Find(owner);
  if (request == nullptr) return;
  try {
    request->watch =
        commons_.poller.Watch(request->stream.descriptor(), Watched::kRequest, owner, true, false);
    const Time now = commons_.clock->Now();
    commons_.poller.SetDeadline(request->watch,
                                AddSaturating(now, commons_.options.startup_timeout));
    request->silent = silent_requests_.Add(owner, request->stream.PeerAddress(), now);
    OnRequestReady(owner);
  } catch (const std::bad_alloc&) {  // it is reset
    Drop(owner);
  }
}

bool Rendezvous::OnRequestReady(uint64_t owner) {
  Request* request = requests_.Find(owner);
  if (request == nullptr || request->presented) return false;
  const StartupReader::Outcome outcome = request->reader.Read(request->stream);
  switch (outcome) {
    case StartupReader::Outcome::kMore:
      return false;
    case StartupReader::Outcome::kDone:
      if (!request->reader.startup().rejected) {
        Present(owner, *request);
      } else {
        TurnAway(owner, Cause::kProtocol, "a request cannot reject");
      }
      break;
    case StartupReader::Outcome::kEnd:
      TurnAway(owner, Cause::kPeerReset, "the peer closed before its MPA request was complete");
      break;
    case StartupReader::Outcome::kFailed:
      TurnAway(owner, CauseOfError(request->reader.error()),
               "no MPA request: " + ErrorText(request->reader.error()));
      break;
    case StartupReader::Outcome::kMalformed:
      TurnAway(owner, Cause::kProtocol, ToString(request->reader.malformed()));
      break;
  }
  return true;
}

void Rendezvous::Present(uint64_t owner, Request& request) {
  const bool listening = listeners_.Find(static_cast<uint64_t>(request.listener)) != nullptr;
  // Markers would have to be put into what we send: we have none (RFC 5044 section 7.1.1, bit M).
  if (!listening || request.reader.startup().markers) {
    RejectStream(request, {});
    TurnAway(owner, Cause::kProtocol, "the peer asks for MPA markers");
    return;
  }
  // What it does next is looked at when it has been answered.
  commons_.poller.Forget(std::exchange(request.watch, WatchId::kNone));
  silent_requests_.Remove(request.silent);
  request.presented = true;
  commons_.outbox.PushBack(RequestEvent(owner, request.listener, request.stream, request.reader));
}

absl::Status Rendezvous::Accept(RequestId id, QueuePairId queue_pair, ConstBytes private_data) {
  const uint64_t owner = static_cast<uint64_t>(id);
  Request* request = requests_.Find(owner);
  if (request == nullptr || !request->presented) return UnknownRequest();
  if (absl::Status status = CheckPrivateData(private_data); !status.ok()) return status;
  QueuePair& target = *queue_pairs_.Find(queue_pair);
  const MpaStartup& startup = request->reader.startup();
  const Negotiated negotiated = AnswerRequest(startup, OfferOf(target.options()));
  // First: where it throws, nothing has changed.
  const std::vector<std::byte> reply =
      EncodeStartup(MakeReply(startup, negotiated, private_data.size()), private_data);
  const WatchId watch = commons_.poller.Watch(request->stream.descriptor(), Watched::kQueuePair,
                                              static_cast<uint64_t>(queue_pair), true, false);
  if (watch == WatchId::kNone) {
    return absl::ResourceExhaustedError("the system cannot watch one more socket");
  }
  // The first bytes of a connection fit its empty buffer.
  const IoResult written = request->stream.Write(reply);
  target.BeginStartup();
  if (written.outcome == IoOutcome::kMoved && written.bytes == reply.size()) {
    target.Establish(std::move(request->stream), watch, negotiated, {});
  } else {
    commons_.poller.Forget(watch);
    target.FailStartup(CauseOfError(written.error), "the peer is gone: the reply was not sent", {});
  }
  Drop(owner);
  return absl::OkStatus();
}

absl::Status Rendezvous::Reject(RequestId id, ConstBytes private_data) {
  const uint64_t owner = static_cast<uint64_t>(id);
  Request* request = requests_.Find(owner);
  if (request == nullptr || !request->presented) return UnknownRequest();
  if (absl::Status status = CheckPrivateData(private_data); !status.ok()) return status;
  try {
    RejectStream(*request, private_data);
  } catch (const std::bad_alloc&) {  // it is reset
  }
  Drop(owner);
  return absl::OkStatus();
}

void Rendezvous::RejectStream(Request& request, ConstBytes private_data) {
  commons_.poller.Forget(std::exchange(request.watch, WatchId::kNone));
  const MpaStartup rejection = MakeRejection(request.reader.startup(), private_data.size());
  commons_.lingering.Add(std::move(request.stream), EncodeStartup(rejection, private_data),
                         AddSaturating(commons_.clock->Now(), commons_.options.close_timeout));
}

void Rendezvous::Drop(uint64_t owner) {
  Request* request = requests_.Find(owner);
  if (request == nullptr) return;
  silent_requests_.Remove(request->silent);
  commons_.poller.Forget(request->watch);
  requests_.Erase(owner);
}

bool Rendezvous::DropOneThatIsSilent() {
  const Time now = commons_.clock->Now();
  const std::optional<uint64_t> chosen = silent_requests_.Choose(now);
  if (!chosen) return false;
  ++dropped_silent_;
  if (commons_.options.log && now >= next_word_) {
    next_word_ = AddSaturating(now, kBetweenWords);
    const Request* request = requests_.Find(*chosen);
    commons_.options.log(
        "no room for more connections that have said nothing: the oldest are "
        "dropped, this one from " +
        ToString(request->stream.PeerAddress()) + " (" + std::to_string(dropped_silent_) +
        " so far)");
  }
  Drop(*chosen);
  return true;
}

void Rendezvous::OnRequestDeadline(uint64_t owner) {
  TurnAway(owner, Cause::kTimedOut, "no MPA request within the time given");
}

void Rendezvous::TurnAway(uint64_t owner, Cause cause, std::string detail) {
  const Request* request = requests_.Find(owner);
  if (request == nullptr) return;
  const Listener* listener = listeners_.Find(static_cast<uint64_t>(request->listener));
  if (listener != nullptr && !listener->socket.is_open()) {
    RendezvousEvent event;
    event.type = RendezvousType::kTurnedAway;
    event.listener = request->listener;
    event.local = listener->over;
    event.peer = request->stream.PeerAddress();
    event.cause = cause;
    event.detail = std::move(detail);
    commons_.outbox.PushBack(std::move(event));
  }
  Drop(owner);
}

}  // namespace esdp::fabric::qpip
