#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "impl/switch/engine/acquaintances.h"
#include "impl/switch/engine/relay.h"
#include "impl/switch/engine/to_mark.h"

// Connections that go directly, and those that do no longer.

namespace esdp::switching {
namespace {

StreamOptions StreamOptionsOf(const RuleOptions& options) {
  StreamOptions made;
  made.urgent = UrgentBytes::kApart;
  if (options.zcopy_bytes != 0) made.zcopy_min = options.zcopy_bytes;
  return made;
}

// The peer is on this host.
bool HaveOneAddress(const ConnectionNames& names) {
  if (names.local.any.sa_family != names.peer.any.sa_family) return false;
  if (names.local.any.sa_family == AF_INET6) {
    return IN6_ARE_ADDR_EQUAL(&names.local.ipv6.sin6_addr, &names.peer.ipv6.sin6_addr);
  }
  return names.local.ipv4.sin_addr.s_addr == names.peer.ipv4.sin_addr.s_addr;
}

}  // namespace

void Relay::BeginDirect(Socket connected) {
  Engine::Domain& domain = **engine_.DomainOf(Mode::kDirect);
  absl::StatusOr<Stream> stream =
      Stream::Of(domain.context, std::move(connected), StreamOptionsOf(request_.options));
  if (!stream.ok()) return Fail(Reason::kFabric);
  UnwatchEnd();
  const OpArgs on_shutdown = {.queue = domain.queue, .cookie = CookieOf(id_, Posted::kShutdown)};
  const OpArgs on_move = {.queue = domain.queue, .cookie = CookieOf(id_, Posted::kMove)};
  direct_ = std::make_shared<DirectStream>(
      domain.context, *std::move(stream), std::move(end_), place_, on_shutdown,
      MayMove(domain.context) ? std::optional<OpArgs>(on_move) : std::nullopt);
  phase_ = Phase::kDirect;
  Directs().Add(id_, direct_);
  int shown = -1;
  const bool goes = host.go_direct(
      id_, [](void* self) { return static_cast<Relay*>(self)->DrainIntoStream(); }, this, shown);
  if (!goes) {
    (void)Directs().Take(id_);
    return BeginStream(direct_->StopShowing().hidden);
  }
  Show(Shown::kSdp, Reason::kNone);
  Tell(4, "number %d goes directly", request_.number);
  if (shown >= 0) direct_->Show(Descriptor(shown));
}

// What the program has written while the connection was set up. A pair holds less than a Stream.
bool Relay::DrainIntoStream() {
  std::vector<std::byte> bytes(request_.options.buffer_bytes);
  StreamEnd stream(direct_);
  for (;;) {
    size_t got = 0, begin = 0;
    bool urgent = false;
    const ProgramEnd::Result result = program_.Read(bytes.data(), bytes.size(), got, urgent);
    while (begin < got) {
      size_t done = 0;
      const auto written = stream.Write(bytes.data() + begin, got - begin, done, urgent);
      if (written != FarEnd::Result::kMoved) break;
      begin += done;
    }
    if (begin < got) direct_->Abort();
    if (result != ProgramEnd::Result::kMoved) return result == ProgramEnd::Result::kAgain;
  }
}

void Relay::BeginStream(Descriptor end) {
  if (phase_ != Phase::kDirect) return;
  phase_ = Phase::kStream;
  direct_->SetUrgentInLine(true);
  KeepUrgentInLine(end.get());
  end_ = std::move(end);
  program_ = ProgramEnd(end_.get(), reset_);
  Show(Shown::kSdp, Reason::kRelayed);
  Tell(4, "number %d is relayed from here on", request_.number);
  far_pump_ = std::make_unique<FarPump>(std::make_unique<StreamEnd>(direct_), program_,
                                        request_.options.buffer_bytes);
  const int ready = direct_->ReadinessDescriptor();
  if (!WatchEnd() || !engine_.Watch(ready, kOwnEvents, Engine::Source::kTcp, id_)) {
    return Fail(Reason::kNoDescriptors);
  }
  MoveFar();
}

// What the peer sends from now on nobody reads: as with TCP that resets the connection.
void Relay::CloseDirect(bool reset) {
  if (phase_ == Phase::kGone || std::exchange(closing_, true)) return;
  direct_->Leave();
  SendReadersAway();
  if (reset) return Abort();
  EndOutput();
  if (phase_ == Phase::kStream) return CloseInOrder();
  OnOrphan();
  if (phase_ == Phase::kGone || close_posted_) return;
  WatchOrphan();
  Engine::Domain& domain = **engine_.DomainOf(Mode::kDirect);
  const auto posted =
      direct_->socket().Poll(kPollReadable | kPollPeerEnded,
                             {.queue = domain.queue, .cookie = CookieOf(id_, Posted::kPoll)});
  if (!posted.ok()) Abort();
}

// Again where one may have begun to wait behind the look.
void Relay::SendReadersAway() {
  constexpr unsigned kAgainAfter = 20;  // milliseconds
  if (phase_ == Phase::kGone || !direct_->SendReadersAway()) return;
  engine_.RelayLater(id_, kAgainAfter, [](Relay& self) { self.SendReadersAway(); });
}

void Relay::OnOrphan() {
  if (direct_->Unread().bytes > 0) return Abort();
  if (direct_->peer_ended()) CloseInOrder();
}

void Relay::OnPeer(const Event& event) {
  if (phase_ == Phase::kGone || close_posted_) return;
  const bool ended = event.ok() && (event.bytes & kPollPeerEnded) != 0;
  if (!ended || direct_->Unread().bytes > 0) return Abort();
  CloseInOrder();
}

void Relay::CloseInOrder() {
  if (std::exchange(close_posted_, true)) return;
  Engine::Domain& domain = **engine_.DomainOf(Mode::kDirect);
  const auto posted = direct_->socket().Close(
      CloseMode::kGraceful, {.queue = domain.queue,
                             .cookie = CookieOf(id_, Posted::kClose),
                             .deadline = domain.context.After(absl::Milliseconds(kOrphanFor))});
  if (!posted.ok()) End(Reason::kNone);
}

// The event tells when all has left, whoever has ended it.
void Relay::EndOutput() {
  if (direct_->Shutdown(SHUT_WR) != 0) shutdown_done_ = true;
}

bool Relay::FlushDirect() {
  if (phase_ == Phase::kStream) {
    MoveFar();
    if (phase_ == Phase::kGone) return true;
    if (!far_pump_->output_empty()) return false;
  }
  EndOutput();
  return shutdown_done_;
}

// One side asks: that which has accepted.
bool Relay::MayMove(const Context& context) const {
  if (request_.begin == Begin::kConnects || request_.options.fabric == SwitchFabric::kQpip) {
    return false;
  }
  if (HaveOneAddress(request_.names)) return true;
  const std::vector<Transport> opened = context.transports();
  const bool has_device = std::ranges::find(opened, Transport::kVerbs) != opened.end();
  return has_device && !Peers().Stays(request_.names.peer);
}

// Where it has come back over TCP nothing better leads to the peer's host.
void Relay::OnMoved(const Event& event) {
  const Transport now = direct_->socket().transport();
  if (event.ok() && now == Transport::kQpip) Peers().LearnThatStays(request_.names.peer);
  if (!event.ok() || now == Transport::kQpip || phase_ == Phase::kGone) return;
  Show(now == Transport::kLocal ? Shown::kSdpLocal : Shown::kSdpVerbs, Reason::kNone);
  Tell(4, "number %d goes over %s", request_.number, now == Transport::kLocal ? "local" : "verbs");
}

void Relay::OnDirectEvent(const Event& event) {
  if (PostedOf(event) == Posted::kMove) OnMoved(event);
  if (PostedOf(event) == Posted::kShutdown) shutdown_done_ = true;
  if (PostedOf(event) == Posted::kPoll) OnPeer(event);
  if (PostedOf(event) == Posted::kClose) End(Reason::kNone);
}

}  // namespace esdp::switching
