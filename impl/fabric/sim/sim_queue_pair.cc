#include "impl/fabric/sim/sim_queue_pair.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace esdp::fabric::sim {
namespace {

constexpr Duration kKeepAliveIdle = std::chrono::seconds(15);

}  // namespace

SimQueuePair::SimQueuePair(const Surroundings& surroundings, QueuePairId id,
                           const QueuePairOptions& options)
    : around_(surroundings),
      id_(id),
      number_(surroundings.world.NextNumber()),
      sends_(surroundings.regions, surroundings.outbox, id, options.send_work),
      receives_(surroundings.regions, surroundings.outbox, id, options.receive_work),
      initiator_depth_(std::min(options.initiator_depth, surroundings.limits.reads_in_flight_max)),
      responder_resources_(
          std::min(options.responder_resources, surroundings.limits.reads_in_flight_max)),
      keep_alive_idle_(options.keep_alive_idle > Duration::zero() ? options.keep_alive_idle
                                                                  : kKeepAliveIdle),
      lend_messages_(options.lend_messages && surroundings.limits.lends_messages) {}

void SimQueuePair::Record(StepKind kind, uint64_t detail, uint64_t content) {
  around_.world.Record(kind, number_, detail, content);
}

WireEnd SimQueuePair::Where() const {
  if (connecting_side_) return {number_, local_.port, true, peer_address_.port};
  return {number_, peer_address_.port, false, local_.port};
}

void SimQueuePair::Connect(const std::shared_ptr<Handshake>& handshake, Time deadline) {
  state_ = State::kConnecting;
  connecting_side_ = true;
  handshake_ = handshake;
  handshake_->initiator = weak_from_this();
  handshake_->initiator_depth = initiator_depth_;
  handshake_->responder_resources = responder_resources_;
  local_ = handshake->initiator_address;
  peer_address_ = handshake->listener_address;
  Record(StepKind::kConnect, peer_address_.port, DigestOf(handshake->private_data));
  if (WireObserver* observer = around_.world.observer()) {
    observer->OnPrivateData(Where(), handshake->private_data);
  }
  if (deadline != kTimeInfinite) {
    deadline_ = around_.world.Schedule(deadline, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr || self->state_ != State::kConnecting) return;
      self->Withdraw();
      self->End(Cause::kTimedOut, "no answer before the deadline");
    });
  }
  SendRequest();
}

void SimQueuePair::SendRequest() {
  World& world = around_.world;
  last_arrival_ = world.Now() + world.DrawTrip(number_, handshake_->private_data.size());
  world.Schedule(last_arrival_, [&world, handshake = handshake_] {
    const AddressBook::Entry* listener = world.addresses().Find(handshake->listener_address);
    if (listener != nullptr) {
      world.Record(StepKind::kRequest, static_cast<uint64_t>(listener->listener),
                   handshake->initiator_address.port);
      listener->owner->OnRequest(listener->listener, handshake);
      return;
    }
    world.Schedule(world.Now() + world.DrawTransit(0), [initiator = handshake->initiator] {
      if (const auto queue_pair = initiator.lock()) {
        queue_pair->OnAnswer({.cause = Cause::kRefused});
      }
    });
  });
}

void SimQueuePair::OnAnswer(const Answer& answer) {
  if (state_ != State::kConnecting || silent_) return;
  Record(StepKind::kAnswer, static_cast<uint64_t>(answer.cause), DigestOf(answer.private_data));
  if (answer.cause != Cause::kNone) {
    const bool rejected = answer.cause == Cause::kRejected;
    End(answer.cause, rejected ? "the peer's program refused" : "nobody listens at this address",
        answer.private_data);
    return;
  }
  peer_ = answer.acceptor;
  initiator_depth_ = answer.initiator_depth;
  responder_resources_ = answer.responder_resources;
  may_send_ = true;
  BecomeReady(answer.private_data);
  Transmit({.kind = FrameKind::kReady});
  DrawBreak();
}

void SimQueuePair::Accept(const std::shared_ptr<Handshake>& handshake, ConstBytes private_data) {
  state_ = State::kAccepting;
  handshake_ = handshake;
  handshake_->acceptor = weak_from_this();
  peer_ = handshake->initiator;
  local_ = handshake->listener_address;
  peer_address_ = handshake->initiator_address;
  initiator_depth_ = std::min(initiator_depth_, handshake->responder_resources);
  responder_resources_ = std::min(responder_resources_, handshake->initiator_depth);
  may_send_ = !around_.limits.initiator_speaks_first;
  Answer answer{.acceptor = weak_from_this(),
                .initiator_depth = responder_resources_,
                .responder_resources = initiator_depth_};
  answer.private_data.assign(private_data.begin(), private_data.end());
  if (WireObserver* observer = around_.world.observer()) {
    observer->OnPrivateData(Where(), answer.private_data);
  }
  World& world = around_.world;
  last_arrival_ =
      world.Now() + world.DrawTrip(number_, private_data.size()) + world.DrawLateness(number_);
  world.Schedule(last_arrival_, [peer = peer_, answer = std::move(answer)] {
    if (const auto queue_pair = peer.lock()) queue_pair->OnAnswer(answer);
  });
}

void SimQueuePair::BecomeReady(const std::vector<std::byte>& private_data) {
  state_ = State::kReady;
  handshake_.reset();
  if (deadline_.has_value()) around_.world.Cancel(*deadline_);
  Record(StepKind::kEstablished, initiator_depth_, responder_resources_);
  RendezvousEvent event = EventOf(RendezvousType::kEstablished);
  event.initiator_depth = initiator_depth_;
  event.responder_resources = responder_resources_;
  SetPrivateData(event, private_data);
  around_.outbox.Tell(event);
  if (WireObserver* observer = around_.world.observer()) observer->OnEstablished(Where());
}

void SimQueuePair::DrawBreak() {
  World& world = around_.world;
  const bool silence = world.Strikes(FaultKind::kSilence, world.faults().silence, number_);
  if (!silence && !world.Strikes(FaultKind::kReset, world.faults().reset, number_)) return;
  if (WireObserver* observer = world.observer()) {
    observer->OnFault(Where(), silence ? FaultKind::kSilence : FaultKind::kReset);
  }
  world.Schedule(world.Now() + world.DrawUpTo(world.faults().break_within),
                 [silence, ends = std::array{weak_from_this(), peer_}] {
                   for (const auto& end : ends) {
                     const auto self = end.lock();
                     if (self == nullptr) continue;
                     silence ? self->FallSilent() : self->OnFrame({.kind = FrameKind::kReset});
                   }
                 });
}

void SimQueuePair::FallSilent() {
  if (state_ == State::kEnded || std::exchange(silent_, true)) return;
  World& world = around_.world;
  const Duration notice = keep_alive_idle_ + world.DrawUpTo(3 * keep_alive_idle_);
  world.Schedule(world.Now() + notice, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->state_ == State::kEnded) return;
    self->End(Cause::kPeerSilent, "nothing was heard of the peer for too long");
  });
}

void SimQueuePair::Vanish(bool told) {
  if (state_ == State::kIdle || state_ == State::kEnded) return;
  if (WireObserver* observer = around_.world.observer()) {
    observer->OnFault(Where(), FaultKind::kDeath);
  }
  if (state_ == State::kConnecting) Withdraw();
  if (const auto peer = peer_.lock()) {
    if (told) {
      Transmit({.kind = FrameKind::kReset});
    } else {
      peer->FallSilent();
    }
  }
  FallSilent();
}

void SimQueuePair::Withdraw() {
  World& world = around_.world;
  last_arrival_ = std::max(last_arrival_, world.Now() + world.DrawTrip(number_, 0));
  world.Schedule(last_arrival_, [handshake = handshake_] {
    if (const auto acceptor = handshake->acceptor.lock()) {
      acceptor->OnWithdrawn();
    } else if (const auto owner = handshake->owner.lock()) {
      owner->OnWithdrawn(handshake);
    }
  });
}

void SimQueuePair::OnWithdrawn() {
  if (state_ == State::kAccepting) End(Cause::kPeerReset, "the connecting side has given up");
}

absl::Status SimQueuePair::Disconnect(bool orderly) {
  if (state_ != State::kReady && (orderly || state_ != State::kClosing)) {
    return absl::FailedPreconditionError("the queue pair is not connected");
  }
  if (!orderly) {
    TransmitSome();
    Transmit({.kind = FrameKind::kReset});
    End(Cause::kLocalDisconnect, "");
    return absl::OkStatus();
  }
  state_ = State::kClosing;
  receives_.Flush();
  waiting_.clear();
  ScheduleTurn();
  return absl::OkStatus();
}

void SimQueuePair::Destroy() {
  if (state_ == State::kConnecting) Withdraw();
  if (state_ == State::kAccepting || state_ == State::kReady || state_ == State::kClosing) {
    Transmit({.kind = FrameKind::kReset});
  }
  if (deadline_.has_value()) around_.world.Cancel(*deadline_);
  if (WireObserver* observer = around_.world.observer();
      observer != nullptr && state_ != State::kEnded && state_ != State::kIdle) {
    observer->OnEnd(Where(), Cause::kLocalDisconnect);
  }
  state_ = State::kEnded;
  sends_.Flush();
  receives_.Flush();
  around_.regions.InvalidateAll(id_);
  around_.outbox.ForgetQueuePair(id_);
}

void SimQueuePair::End(Cause cause, const char* detail,
                       const std::vector<std::byte>& private_data) {
  const bool was_connected = state_ == State::kReady || state_ == State::kClosing;
  state_ = State::kEnded;
  handshake_.reset();
  waiting_.clear();
  if (deadline_.has_value()) around_.world.Cancel(*deadline_);
  Record(StepKind::kEnd, static_cast<uint64_t>(cause));
  if (WireObserver* observer = around_.world.observer()) observer->OnEnd(Where(), cause);
  sends_.Flush();
  receives_.Flush();
  RendezvousEvent event =
      EventOf(was_connected ? RendezvousType::kDisconnected : RendezvousType::kConnectFailed);
  event.cause = cause;
  event.detail = detail;
  SetPrivateData(event, private_data);
  around_.outbox.Tell(event);
}

RendezvousEvent SimQueuePair::EventOf(RendezvousType type) const {
  RendezvousEvent event;
  event.type = type;
  event.queue_pair = id_;
  event.local = local_;
  event.peer = peer_address_;
  return event;
}

}  // namespace esdp::fabric::sim
