#include "impl/switch/engine/relay.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <string>
#include <utility>

#include "esdp/context.h"
#include "impl/switch/engine/acquaintances.h"
#include "impl/switch/mpa_request.h"

namespace esdp::switching {
namespace {

constexpr absl::Duration kAcceptWithin = absl::Seconds(10);
// A client that takes nothing but SDP has nowhere else to go.
constexpr int kPatientAnswers = 10;
// A server that listens for SDP answers once it accepts, however busy it is.
constexpr int kHeardAnswers = 200;
// A client whose connection the program has closed already is to find its end by SDP: nobody else
// waits.
constexpr unsigned kAskedOfClosedWithin = 100;  // milliseconds

SocketOptions OptionsOf(const RuleOptions& options) {
  SocketOptions made;
  // A relay copies anyhow.
  const bool copies = options.zcopy_bytes == 0;
  made.zcopy_send_min = made.zcopy_recv_min = copies ? RuleOptions::kNever : options.zcopy_bytes;
  return made;
}

}  // namespace

Relay::Relay(Engine& engine, uint64_t id, const RelayRequest& request, Descriptor end,
             Descriptor tcp)
    : engine_(engine),
      id_(id),
      request_(request),
      end_(std::move(end)),
      program_(end_.get(), reset_),
      tcp_(std::move(tcp)),
      phase_(request.begin == Begin::kUnknown ? Phase::kUnknown : Phase::kSettingUp) {
  const StatusRecord record = {
      .number = request.number,
      .shown = Shown::kSettingUp,
      .role = request.begin == Begin::kConnects ? Role::kClient : Role::kServer,
      .verdict = request.verdict,
  };
  place_ = Status().Add(request.names, record);
}

Relay::~Relay() = default;

// What has come is told at once.
bool Relay::WatchEnd() {
  end_watched_ =
      end_watched_ || engine_.Watch(end_.get(), kOwnEvents, Engine::Source::kProgram, id_);
  return end_watched_;
}

void Relay::UnwatchEnd() {
  if (std::exchange(end_watched_, false)) engine_.Unwatch(end_.get());
}

void Relay::Begin() {
  // Where it is to go directly nobody asks before that what the program has written.
  const bool goes_directly = phase_ == Phase::kSettingUp && request_.options.mode == Mode::kDirect;
  if (!goes_directly && !WatchEnd()) return Fail(Reason::kNoDescriptors);
  if (phase_ == Phase::kSettingUp) return BeginSdp();
  (void)fcntl(tcp_.get(), F_SETFL, O_NONBLOCK);
  (void)engine_.Watch(tcp_.get(), kOwnEvents, Engine::Source::kTcp, id_);
  LookAtFirstBytes();
}

// --- what the peer speaks ------------------------------------------------------------------------

void Relay::LookAtFirstBytes() {
  std::array<unsigned char, libc::kMpaRequestMax> bytes;
  const ssize_t got = recv(tcp_.get(), bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return;
  const size_t need =
      got <= 0 ? libc::kMpaNone : libc::JudgeMpaRequest(bytes.data(), static_cast<size_t>(got));
  const bool whole = need == libc::kMpaWhole;
  if (!whole && need != libc::kMpaNone) return AwaitRestOfRequest();
  if (phase_ == Phase::kTcp) {
    // Behind our own bytes it comes too late: its client goes on by TCP.
    if (whole) (void)recv(tcp_.get(), bytes.data(), libc::MpaRequestBytes(bytes.data()), 0);
    return far_pump_->ReleaseInput();
  }
  if (!whole) return BeginTcp(got > 0 ? Reason::kAnsweredPlain : Reason::kCopyPassedOn);
  engine_.Unwatch(tcp_.get());
  phase_ = Phase::kSettingUp;
  BeginSdp();
}

void Relay::AwaitRestOfRequest() {
  if (std::exchange(awaits_rest_, true)) return;
  engine_.RelayLater(id_, libc::kMpaRestWithinMs, [](Relay& self) {
    if (self.phase_ == Phase::kUnknown) return self.BeginTcp(Reason::kAnsweredPlain);
    if (self.phase_ != Phase::kTcp) return;
    self.far_pump_->ReleaseInput();
    self.MoveFar();
  });
}

bool Relay::PostEarly() {
  if (phase_ != Phase::kSettingUp || request_.options.mode != Mode::kDirect) return false;
  Engine::Domain* const domain = engine_.direct_domain();
  if (domain != nullptr) posted_early_ = PostSetUp(*domain);
  return posted_early_ && posted_early_->ok();
}

void Relay::BeginSdp() {
  const absl::StatusOr<Engine::Domain*> domain = engine_.DomainOf(request_.options.mode);
  if (!domain.ok()) return OnNoSdp(Reason::kFabric);
  const absl::Status posted = posted_early_ ? *posted_early_ : PostSetUp(**domain);
  if (posted.ok()) return;
  Tell(5, "no SDP: %s", std::string(posted.message()).c_str());
  OnNoSdp(Reason::kFabric);
}

absl::Status Relay::PostSetUp(Engine::Domain& domain) {
  const bool connects = request_.begin == Begin::kConnects;
  Context& context = domain.context;
  absl::StatusOr<Socket> socket =
      context.CreateSocket(Family::kIpv4, SocketType::kStream, OptionsOf(request_.options));
  if (!socket.ok()) return socket.status();
  socket_ = *std::move(socket);
  const int patience = request_.verdict == Verdict::kSdp ? kPatientAnswers : 1;
  const int answers = request_.is_heard ? kHeardAnswers : patience;
  const absl::Duration within =
      connects ? answers * absl::Milliseconds(request_.options.answer_ms) : kAcceptWithin;
  const OpArgs args = {.queue = domain.queue,
                       .cookie = CookieOf(id_, Posted::kSetUp),
                       .deadline = context.After(within)};
  if (connects) return socket_.ConnectOver(tcp_.get(), args).status();
  const absl::Status listens = socket_.ListenOver(tcp_.get());
  return listens.ok() ? socket_.Accept(1, args).status() : listens;
}

void Relay::OnSetUp(const Event& event) {
  if (phase_ != Phase::kSettingUp) return;
  if (!event.ok()) {
    Tell(5, "no SDP: %s", event.status().ToString().c_str());
    const bool late = event.kind == ErrorKind::kDeadlineExceeded;
    return OnNoSdp(late ? Reason::kAnswerLate : Reason::kAnsweredPlain);
  }
  Socket connected = std::move(socket_);
  if (request_.begin != Begin::kConnects) {
    absl::StatusOr<Socket> taken =
        (*engine_.DomainOf(request_.options.mode))->context.TakeAccepted(event.accepted);
    if (!taken.ok()) return Fail(Reason::kFabric);
    connected = *std::move(taken);
  } else {
    Peers().Learn(request_.names.peer, Learned::kSpeaks);
  }
  tcp_.Reset();
  if (aborted_) return End(Reason::kNone);
  if (request_.options.mode == Mode::kDirect) return BeginDirect(std::move(connected));
  phase_ = Phase::kSdp;
  sdp_ = std::make_unique<SdpPump>(engine_, id_, std::move(connected), program_);
  Show(Shown::kSdp, Reason::kRelayed);
  if (!sdp_->Open(request_.options.buffer_bytes)) return Fail(Reason::kMemory);
  CheckSdp();
}

// A client may have another way.
void Relay::OnNoSdp(Reason reason) {
  socket_ = Socket();
  if (request_.begin != Begin::kConnects || request_.verdict == Verdict::kSdp || aborted_) {
    return Fail(reason);
  }
  Peers().Learn(request_.names.peer, Learned::kSilent);
  Show(Shown::kSettingUp, reason);
  ConnectAnew();
}

void Relay::ConnectAnew() {
  phase_ = Phase::kConnectingAnew;
  const int family = request_.names.peer.any.sa_family;
  tcp_.Reset();  // there may be no other number left
  tcp_.Reset(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!tcp_.valid()) return Fail(Reason::kNoDescriptors);
  const int result = connect(tcp_.get(), &request_.names.peer.any, request_.names.peer_bytes);
  if (result != 0 && errno != EINPROGRESS) return Fail(Reason::kAnsweredPlain);
  (void)engine_.Watch(tcp_.get(), kOwnEvents, Engine::Source::kTcp, id_);
}

void Relay::OnConnectedAnew() {
  int error = 0;
  socklen_t bytes = sizeof(error);
  sockaddr_storage peer = {};
  socklen_t peer_bytes = sizeof(peer);
  (void)getsockopt(tcp_.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  if (error != 0) return Fail(Reason::kAnsweredPlain);
  if (getpeername(tcp_.get(), reinterpret_cast<sockaddr*>(&peer), &peer_bytes) != 0) return;
  host.reconnected(id_, tcp_.get());
  BeginTcp(Reason::kNone);
}

// --- moving --------------------------------------------------------------------------------------

void Relay::BeginTcp(Reason reason) {
  phase_ = Phase::kTcp;
  if (aborted_) return Abort();
  if (int none = -1; request_.options.mode == Mode::kDirect) {
    (void)host.go_direct(id_, nullptr, nullptr, none);
  }
  Show(Shown::kRelayedTcp, reason);
  if (!WatchEnd()) return Fail(Reason::kNoDescriptors);
  far_pump_ = std::make_unique<FarPump>(std::make_unique<TcpEnd>(tcp_.get()), program_,
                                        request_.options.buffer_bytes);
  if (reason == Reason::kWaitRanOut) {
    far_pump_->HoldInput();
    LookAtFirstBytes();
  }
  MoveFar();
}

void Relay::MoveFar() {
  const uint64_t sent = far_pump_->sent(), received = far_pump_->received();
  far_pump_->Move();
  if (phase_ == Phase::kStream) {
    direct_->TellStatus();
  } else {
    Status().Change(place_, [&](StatusRecord& record, StatusHeader& all) {
      record.tcp_sent = far_pump_->sent();
      record.tcp_received = far_pump_->received();
      all.tcp_sent += far_pump_->sent() - sent;
      all.tcp_received += far_pump_->received() - received;
    });
  }
  if (far_pump_->failed()) return Fail(phase_ == Phase::kStream ? Reason::kFabric : Reason::kNone);
  if (far_pump_->reset_by_program()) return Abort();
  if (!far_pump_->ended()) return;
  if (phase_ == Phase::kStream) return CloseDirect(/*reset=*/false);
  End(Reason::kNone);
}

void Relay::OnProgram() {
  if (phase_ == Phase::kSdp) {
    sdp_->OnProgram();
    CheckSdp();
  } else if (phase_ == Phase::kTcp || phase_ == Phase::kStream) {
    MoveFar();
  } else if (phase_ == Phase::kUnknown && program_.HasSpoken() && !std::exchange(orphan_, true)) {
    // It speaks first, or has closed.
    unsigned within = request_.options.wait_ms;
    if (program_.IsClosed()) within = std::max(within, kAskedOfClosedWithin);
    if (request_.verdict == Verdict::kSdp) within = kRequestWithinMs;
    engine_.RelayLater(id_, within, [](Relay& self) {
      if (self.phase_ == Phase::kUnknown) self.BeginTcp(Reason::kWaitRanOut);
    });
  }
}

void Relay::OnTcp() {
  const bool holds = phase_ == Phase::kTcp && far_pump_->holds_input();
  if (holds || phase_ == Phase::kUnknown) LookAtFirstBytes();
  if (phase_ == Phase::kConnectingAnew) return OnConnectedAnew();
  if (phase_ == Phase::kTcp || phase_ == Phase::kStream) MoveFar();
  if (phase_ == Phase::kDirect && closing_) OnOrphan();
}

void Relay::OnEvent(const Event& event) {
  if (PostedOf(event) == Posted::kSetUp) return OnSetUp(event);
  if (direct_ != nullptr) return OnDirectEvent(event);
  if (sdp_ == nullptr) return;
  sdp_->OnEvent(event);
  CheckSdp();
}

void Relay::CheckSdp() {
  Status().Change(place_, [&](StatusRecord& record, StatusHeader& all) {
    all.sdp_sent += sdp_->sent() - record.sdp_sent;
    all.sdp_received += sdp_->received() - record.sdp_received;
    record.sdp_sent = sdp_->sent();
    record.sdp_received = sdp_->received();
  });
  if (phase_ != Phase::kSdp) {
    if (sdp_->closed()) engine_.Drop(id_);
    return;
  }
  if (sdp_->closed()) return End(Reason::kNone);
  if (sdp_->reset_by_program()) return Abort();
  if (sdp_->failed()) {
    Tell(4, "number %d: %s", request_.number, sdp_->failure().status().ToString().c_str());
    return Fail(Reason::kFabric);
  }
  if (sdp_->output_ended() && sdp_->input_ended()) return sdp_->Close(CloseMode::kGraceful);
  if (sdp_->output_ended() && !orphan_ && program_.IsClosed()) WatchOrphan();
}

// The program has closed, and the peer has not: TCP does not wait for it without end either.
void Relay::WatchOrphan() {
  orphan_ = true;
  engine_.RelayLater(id_, kOrphanFor, [](Relay& self) { self.Abort(); });
}

// Nobody ends it before the process is gone.
bool Relay::Flush() {
  const bool all = phase_ == Phase::kGone || FlushOutput();
  if (all && phase_ != Phase::kGone) LogEnd();
  return all;
}

bool Relay::FlushOutput() {
  if (phase_ == Phase::kTcp) {
    MoveFar();
    return phase_ == Phase::kGone || far_pump_->output_empty();
  }
  if (direct_ != nullptr) return FlushDirect();
  if (phase_ != Phase::kSdp) return false;
  sdp_->EndOutput();
  CheckSdp();
  return phase_ == Phase::kGone || sdp_->output_ended() || sdp_->output_failed() || sdp_->failed();
}

// --- the end -------------------------------------------------------------------------------------

void Relay::Abort() {
  aborted_ = true;
  // A client that has asked for SDP, or is about to, is to find the reset behind the answer: without
  // one it would take the server for one of TCP alone, and connect once more.
  const bool is_asked = request_.begin != Begin::kConnects &&
                        (phase_ == Phase::kUnknown || phase_ == Phase::kSettingUp);
  if (is_asked) return;
  if (phase_ == Phase::kTcp) {
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(tcp_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  End(Reason::kNone);
}

void Relay::Fail(Reason reason) {
  if (phase_ == Phase::kGone) return;
  // The end that the program reads has come before: only what it writes goes nowhere.
  const bool read_all = (sdp_ != nullptr && sdp_->input_ended()) ||
                        (far_pump_ != nullptr && far_pump_->input_ended());
  if (!program_.IsClosed() && !read_all) host.reset(id_);
  aborted_ = true;
  End(reason);
}

void Relay::End(Reason reason) {
  if (phase_ == Phase::kGone) return;
  LogEnd();
  const bool had_sdp = phase_ == Phase::kSdp;
  phase_ = Phase::kGone;
  Show(Shown::kEnded, reason);
  UnwatchEnd();
  end_.Reset();
  tcp_.Reset();
  if (direct_ != nullptr) {
    (void)Directs().Take(id_);
    direct_->Abort();  // of one that is closed nothing
  }
  if (had_sdp && !sdp_->closed()) return sdp_->Close(CloseMode::kAbort);
  engine_.Drop(id_);
}

void Relay::Show(Shown shown, Reason reason) {
  Status().Change(place_, [&](StatusRecord& record, StatusHeader&) {
    record.shown = shown;
    if (reason != Reason::kNone) record.reason = reason;
  });
}

void Relay::LogEnd() {
  if (std::exchange(end_logged_, true)) return;
  uint64_t sent = sdp_ != nullptr ? sdp_->sent() : 0;
  uint64_t received = sdp_ != nullptr ? sdp_->received() : 0;
  if (direct_ != nullptr) {
    sent = direct_->sent();
    received = direct_->received();
    direct_->TellStatus();
  }
  const FarPump* const tcp = direct_ == nullptr ? far_pump_.get() : nullptr;
  Tell(7,
       "number %d %s: by SDP %" PRIu64 " bytes sent, %" PRIu64 " received; by TCP %" PRIu64
       " and %" PRIu64,
       request_.number, request_.begin == Begin::kConnects ? "connected" : "accepted", sent,
       received, tcp != nullptr ? tcp->sent() : 0, tcp != nullptr ? tcp->received() : 0);
}

}  // namespace esdp::switching
