#include "impl/fabric/local/rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "impl/base/secure_random.h"
#include "impl/base/status.h"

// The listening side, and ports.

namespace esdp::fabric::local {
namespace {

constexpr int kAcceptsPerTurn = 32;
constexpr int kLastTurns = 128;  // a listener that stops answers those that wait already
constexpr Duration kRestAfterFailure = std::chrono::milliseconds(100);
constexpr uint16_t kFirstPort = 49152;
constexpr int kPorts = 16384;

absl::Status UnknownListener() { return absl::NotFoundError("no such listener"); }

absl::Status UnknownRequest() {
  return absl::NotFoundError("no such request: it was answered, or its listener was stopped");
}

absl::Status CheckPrivateData(ConstBytes private_data) {
  if (private_data.size() <= kPrivateDataMax) return absl::OkStatus();
  return absl::OutOfRangeError("more private data than limits().private_data_max");
}

bool IsShortOfDescriptors(int error) { return error == EMFILE || error == ENFILE; }

}  // namespace

// One after the other from a place that nobody knows, so that two fabrics seldom meet.
uint16_t Rendezvous::NextPort() {
  if (next_port_ == 0) {
    next_port_ = static_cast<uint16_t>(kFirstPort + SecureRandomSeed().value_or(0) % kPorts);
  }
  const uint16_t port = next_port_;
  next_port_ = port == UINT16_MAX ? kFirstPort : static_cast<uint16_t>(port + 1);
  return port;
}

absl::StatusOr<Descriptor> Rendezvous::ListenSomewhere(Address& address, int backlog) {
  if (address.port != 0) return ListenAt(address, backlog);
  absl::StatusOr<Descriptor> socket = absl::ResourceExhaustedError("no port is free");
  for (int i = 0; i < kPorts; ++i) {
    address.port = NextPort();
    socket = ListenAt(address, backlog);
    if (socket.ok() || !absl::IsAlreadyExists(socket.status())) break;
  }
  return socket;
}

absl::StatusOr<ListenerId> Rendezvous::Listen(const Address& address, int backlog) {
  Address chosen = address;
  ESDP_ASSIGN_OR_RETURN(Descriptor socket, ListenSomewhere(chosen, backlog));
  const uint64_t owner =
      listeners_.Insert(Listener{.socket = std::move(socket), .address = chosen});
  Listener& listener = *listeners_.Find(owner);
  listener.watch =
      shared_.poller.Watch(listener.socket.number(), soft::Watched::kListener, owner, true, false);
  if (listener.watch != soft::WatchId::kNone) return ListenerId{owner};
  listeners_.Erase(owner);
  return absl::ResourceExhaustedError("the system cannot watch one more socket");
}

absl::StatusOr<Address> Rendezvous::ListenerAddress(ListenerId id) const {
  const Listener* listener = listeners_.Find(static_cast<uint64_t>(id));
  if (listener == nullptr) return UnknownListener();
  return listener->address;
}

absl::Status Rendezvous::StopListening(ListenerId id) {
  const uint64_t owner = static_cast<uint64_t>(id);
  Listener* listener = listeners_.Find(owner);
  if (listener == nullptr) return UnknownListener();
  for (int i = 0; i < kLastTurns && OnListenerReady(owner);) ++i;
  shared_.poller.Forget(listener->watch);
  listeners_.Erase(owner);
  shared_.outbox.EraseEventsIf([id](const RendezvousEvent& event) { return event.listener == id; });
  // Those whose request is not complete are dropped when it is: they find no listener.
  while (const uint64_t presented = FindPresented(id)) {
    SayNo(*requests_.Find(presented), {});
    Drop(presented);
  }
  return absl::OkStatus();
}

uint64_t Rendezvous::FindPresented(ListenerId listener) {
  uint64_t found = kNoHandle;
  requests_.ForEach([&](uint64_t owner, const Request& request) {
    if (request.listener == listener && request.presented) found = owner;
  });
  return found;
}

bool Rendezvous::OnListenerReady(uint64_t owner) {
  Listener* listener = listeners_.Find(owner);
  if (listener == nullptr) return false;
  bool moved = false;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (silent_requests_.size() >= kSilentRequestsMax && !DropOneThatIsSilent()) {
      Rest(*listener);
      break;
    }
    Descriptor socket = AcceptFrom(listener->socket);
    if (!socket.is_open()) {
      const int error = errno;
      if (error == EAGAIN || error == EWOULDBLOCK) break;
      if (IsShortOfDescriptors(error) && DropOneThatIsSilent()) continue;
      OnAcceptFailed(*listener, ListenerId{owner}, error);
      break;
    }
    listener->starved = false;
    moved = true;
    if (IsSameUser(socket.number())) AddRequest(ListenerId{owner}, std::move(socket));
  }
  return moved;
}

void Rendezvous::OnAcceptFailed(Listener& listener, ListenerId id, int error) {
  if (IsShortOfDescriptors(error)) {
    RendezvousEvent event;
    event.type = RendezvousType::kShort;
    event.listener = id;
    shared_.outbox.PushBack(std::move(event));
  }
  Rest(listener);
  if (std::exchange(listener.starved, true) || !shared_.options.log) return;
  shared_.options.log("connections wait at " + ToString(listener.address) + ": " +
                      std::strerror(error) +
                      "; they are taken when the system allows it (ulimit -n: descriptors)");
}

// Those that wait keep the listener readable: look away for a while instead of spinning.
void Rendezvous::Rest(Listener& listener) {
  shared_.poller.Change(listener.watch, false, false);
  shared_.poller.SetDeadline(listener.watch,
                             AddSaturating(shared_.clock->Now(), kRestAfterFailure));
}

void Rendezvous::OnListenerDeadline(uint64_t owner) {
  if (const Listener* listener = listeners_.Find(owner)) {
    shared_.poller.Change(listener->watch, true, false);
  }
}

bool Rendezvous::DropOneThatIsSilent() {
  const std::optional<uint64_t> chosen = silent_requests_.Choose(shared_.clock->Now());
  if (chosen) Drop(*chosen);
  return chosen.has_value();
}

bool Rendezvous::AddRequest(ListenerId listener, Descriptor socket) {
  const uint64_t owner =
      requests_.Insert(Request{.listener = listener, .socket = std::move(socket)});
  Request* request = requests_.Find(owner);
  if (request == nullptr) return false;
  request->watch =
      shared_.poller.Watch(request->socket.number(), soft::Watched::kRequest, owner, true, false);
  const Time now = shared_.clock->Now();
  shared_.poller.SetDeadline(request->watch, AddSaturating(now, shared_.options.startup_timeout));
  request->silent = silent_requests_.Add(owner, Address{}, now);
  OnRequestReady(owner);
  return true;
}

void Rendezvous::OnRequestReady(uint64_t owner) {
  Request* request = requests_.Find(owner);
  if (request == nullptr || request->presented) return;
  const HelloOutcome outcome =
      ReceiveHello(request->socket.number(), request->hello, request->block);
  if (outcome == HelloOutcome::kNone) return;
  const Listener* listener = listeners_.Find(static_cast<uint64_t>(request->listener));
  if (outcome == HelloOutcome::kDone && listener != nullptr && IsAcceptable(*listener, *request)) {
    Present(owner, *request);
  } else {
    Drop(owner);
  }
}

// What a program sees of addresses has to be true, whoever claims it.
bool Rendezvous::IsAcceptable(const Listener& listener, const Request& request) const {
  const Hello& hello = request.hello;
  if (hello.kind != HelloKind::kRequest || !request.block.is_open()) return false;
  if (!IsAddress(hello.from) || !IsAddress(hello.to)) return false;
  const Address to = FromHello(hello.to);
  const Address from = FromHello(hello.from);
  if (from.family != to.family || IsWildcard(from) || !IsOwnAddress(from)) return false;
  if (to.family != listener.address.family || to.port != listener.address.port) return false;
  return IsWildcard(listener.address) ? IsOwnAddress(to) : to == listener.address;
}

void Rendezvous::Present(uint64_t owner, Request& request) {
  // What it does next is looked at when it has been answered.
  shared_.poller.Forget(std::exchange(request.watch, soft::WatchId::kNone));
  silent_requests_.Remove(std::exchange(request.silent, kNoHandle));
  request.presented = true;
  RendezvousEvent event;
  event.type = RendezvousType::kConnectRequest;
  event.listener = request.listener;
  event.request = RequestId{owner};
  event.local = FromHello(request.hello.to);
  event.peer = FromHello(request.hello.from);
  event.initiator_depth = std::min(request.hello.responder_resources, kReadsInFlightMax);
  event.responder_resources = std::min(request.hello.initiator_depth, kReadsInFlightMax);
  event.private_data_bytes = static_cast<uint16_t>(request.hello.private_data_bytes);
  event.private_data = request.hello.private_data;
  shared_.outbox.PushBack(std::move(event));
}

Agreement Rendezvous::AgreementOf(const Request& request, const QueuePairOptions& options) const {
  return {
      .local = FromHello(request.hello.to),
      .peer = FromHello(request.hello.from),
      .initiator_depth = std::min(options.initiator_depth, request.hello.responder_resources),
      .responder_resources = std::min(options.responder_resources, request.hello.initiator_depth)};
}

absl::Status Rendezvous::Accept(RequestId id, QueuePairId queue_pair, ConstBytes private_data) {
  const uint64_t owner = static_cast<uint64_t>(id);
  Request* request = requests_.Find(owner);
  if (request == nullptr || !request->presented) return UnknownRequest();
  ESDP_RETURN_IF_ERROR(CheckPrivateData(private_data));
  QueuePair& target = *queue_pairs_.Find(queue_pair);
  ESDP_ASSIGN_OR_RETURN(WritableMemory own, Channel::MakeBlock());
  const soft::WatchId watch =
      shared_.poller.Watch(request->socket.number(), soft::Watched::kQueuePair,
                           static_cast<uint64_t>(queue_pair), true, false);
  if (watch == soft::WatchId::kNone) {
    return absl::ResourceExhaustedError("the system cannot watch one more socket");
  }
  const Agreement agreement = AgreementOf(*request, target.options());
  Hello answer{.kind = HelloKind::kAccept,
               .initiator_depth = agreement.initiator_depth,
               .responder_resources = agreement.responder_resources};
  answer.SetPrivateData(private_data);
  answer.nonce_address = NonceAddress();
  answer.fabric = shared_.number;
  PeerProcess process(request->socket.number());
  const int socket = request->socket.number();
  absl::StatusOr<std::unique_ptr<Channel>> channel =
      Channel::Make(std::move(request->socket), std::move(own.mapping), request->block,
                    shared_.bells.Of(process.number(), request->hello.fabric));
  target.BeginStartup();
  if (channel.ok()) Prove(request->hello, process, **channel);
  if (!channel.ok()) {
    shared_.poller.Forget(watch);
    target.FailStartup(Cause::kProtocol, std::string(channel.status().message()), {});
  } else if (!SendHello(socket, answer, &own.file)) {
    shared_.poller.Forget(watch);
    target.FailStartup(Cause::kPeerReset, "the peer is gone: the answer was not sent", {});
  } else {
    target.Establish(*std::move(channel), watch, std::move(process), agreement, {});
  }
  Drop(owner);
  return absl::OkStatus();
}

uint64_t Rendezvous::NonceAddress() const {
  return shared_.nonce ? reinterpret_cast<uint64_t>(&*shared_.nonce) : 0;
}

// Where the system refuses it once, it is not asked again: it may write each refusal to its log.
void Rendezvous::Prove(const Hello& hello, PeerProcess& process, Channel& channel) {
  if (hello.nonce_address == 0 || !shared_.reads_peers) return process.ForbidReading();
  const std::optional<Nonce> nonce = process.ReadNonce(hello.nonce_address);
  shared_.reads_peers = nonce.has_value() || process.IsReadable();
  if (!nonce) return process.ForbidReading();
  channel.Prove(*nonce);
}

absl::Status Rendezvous::Reject(RequestId id, ConstBytes private_data) {
  const uint64_t owner = static_cast<uint64_t>(id);
  Request* request = requests_.Find(owner);
  if (request == nullptr || !request->presented) return UnknownRequest();
  ESDP_RETURN_IF_ERROR(CheckPrivateData(private_data));
  SayNo(*request, private_data);
  Drop(owner);
  return absl::OkStatus();
}

// The system keeps it for the peer when the socket is closed.
void Rendezvous::SayNo(const Request& request, ConstBytes private_data) {
  Hello answer{.kind = HelloKind::kReject};
  answer.SetPrivateData(private_data);
  (void)SendHello(request.socket.number(), answer, nullptr);
}

void Rendezvous::Drop(uint64_t owner) {
  const Request* request = requests_.Find(owner);
  if (request == nullptr) return;
  silent_requests_.Remove(request->silent);
  shared_.poller.Forget(request->watch);
  requests_.Erase(owner);
}

}  // namespace esdp::fabric::local
