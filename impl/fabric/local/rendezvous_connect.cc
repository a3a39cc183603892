#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "impl/base/status.h"
#include "impl/fabric/local/rendezvous.h"

// The connecting side.

namespace esdp::fabric::local {
namespace {

// Unix sockets have no queue for those that a full backlog has turned away.
constexpr Duration kBetweenTries = std::chrono::milliseconds(5);

bool IsShort(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

// What is there, but not for us, is not there.
Cause CauseOf(int error) {
  if (error == EADDRNOTAVAIL) return Cause::kUnreachable;
  return IsShort(error) ? Cause::kDevice : Cause::kRefused;
}

std::string WhyNot(int error) {
  if (error == EADDRNOTAVAIL) return "the address is none of this host's";
  if (error == ECONNREFUSED) return "no program of this user listens there by shared memory";
  return std::string("cannot connect: ") + std::strerror(error);
}

}  // namespace

absl::Status Rendezvous::Connect(QueuePairId id, const Address& local, const Address& peer,
                                 ConstBytes private_data, Time deadline) {
  if (private_data.size() > kPrivateDataMax) {
    return absl::OutOfRangeError("more private data than limits().private_data_max");
  }
  const bool any = IsWildcard(local);
  if (!any && local.family != peer.family) {
    return absl::InvalidArgumentError("the local and the peer's address are of two families");
  }
  if (!any && !IsOwnAddress(local)) {
    return absl::NotFoundError("cannot bind to " + ToString(local) + ": it is none of this host's");
  }
  ESDP_ASSIGN_OR_RETURN(WritableMemory block, Channel::MakeBlock());
  const QueuePairOptions& options = queue_pairs_.Find(id)->options();
  // As in TCP, whoever connects to an address of its own host has that address too.
  Address from = any ? peer : local;
  from.port = local.port != 0 ? local.port : NextPort();
  if (IsWildcard(from)) from.bytes[from.bytes.size() - 1] = 1;
  if (IsWildcard(peer) && from.family == Family::kIpv4) from.bytes[12] = 127;
  Address to = IsWildcard(peer) ? from : peer;
  to.port = peer.port;
  Hello hello{.kind = HelloKind::kRequest,
              .initiator_depth = options.initiator_depth,
              .responder_resources = options.responder_resources,
              .private_data_bytes = 0,
              .nonce_address = NonceAddress(),
              .fabric = shared_.number,
              .from = ToHello(from),
              .to = ToHello(to)};
  hello.SetPrivateData(private_data);
  const uint64_t owner = initiators_.Insert(Initiator{.queue_pair = id,
                                                      .socket = {},
                                                      .deadline = deadline,
                                                      .peer = to,
                                                      .hello = hello,
                                                      .block = std::move(block)});
  queue_pairs_.Find(id)->BeginStartup();
  Try(owner);
  return absl::OkStatus();
}

void Rendezvous::Try(uint64_t owner) {
  Initiator* initiator = initiators_.Find(owner);
  if (initiator == nullptr) return;
  ConnectOutcome outcome = ConnectTo(initiator->peer);
  if (outcome.error == EAGAIN) {
    const Time next = AddSaturating(shared_.clock->Now(), kBetweenTries);
    attempts_.Set(owner, std::min(next, initiator->deadline));
    return;
  }
  if (outcome.error != 0) return Fail(owner, CauseOf(outcome.error), WhyNot(outcome.error), {});
  initiator->socket = std::move(outcome.socket);
  if (!SendHello(initiator->socket.number(), initiator->hello, &initiator->block.file)) {
    return Fail(owner, CauseOf(errno), WhyNot(errno), {});
  }
  initiator->block.file = {};
  initiator->watch = shared_.poller.Watch(initiator->socket.number(), soft::Watched::kInitiator,
                                          owner, true, false);
  if (initiator->watch == soft::WatchId::kNone) {
    return Fail(owner, Cause::kDevice, "the system cannot watch one more socket", {});
  }
  attempts_.Set(owner, initiator->deadline);
}

void Rendezvous::RunDeadlines(Time now) {
  while (const std::optional<TimerQueue::Due> due = attempts_.PopDue(now)) {
    const Initiator* initiator = initiators_.Find(due->key);
    if (initiator == nullptr) continue;
    if (now >= initiator->deadline) {
      Fail(due->key, Cause::kTimedOut, "no answer within the time given", {});
    } else {
      Try(due->key);
    }
  }
}

void Rendezvous::OnInitiatorReady(uint64_t owner) {
  const Initiator* initiator = initiators_.Find(owner);
  if (initiator == nullptr) return;
  Hello answer;
  Descriptor block;
  switch (ReceiveHello(initiator->socket.number(), answer, block)) {
    case HelloOutcome::kNone:
      return;
    case HelloOutcome::kDone:
      return OnAnswer(owner, answer, block);
    case HelloOutcome::kGone:
      return Fail(owner, Cause::kRefused, "the listener closed before it had answered", {});
    case HelloOutcome::kMalformed:
      return Fail(owner, Cause::kProtocol, "the answer is none of this protocol", {});
  }
}

void Rendezvous::OnAnswer(uint64_t owner, const Hello& answer, const Descriptor& block) {
  Initiator& initiator = *initiators_.Find(owner);
  if (answer.kind == HelloKind::kReject) {
    return Fail(owner, Cause::kRejected, "rejected by the peer's program", answer.PrivateData());
  }
  if (answer.kind != HelloKind::kAccept || !block.is_open()) {
    return Fail(owner, Cause::kProtocol, "the answer is none of this protocol", {});
  }
  QueuePair& target = *queue_pairs_.Find(initiator.queue_pair);
  const QueuePairOptions& options = target.options();
  const Agreement agreement{
      .local = FromHello(initiator.hello.from),
      .peer = FromHello(initiator.hello.to),
      .initiator_depth = std::min(options.initiator_depth, answer.responder_resources),
      .responder_resources = std::min(options.responder_resources, answer.initiator_depth)};
  PeerProcess process(initiator.socket.number());
  absl::StatusOr<std::unique_ptr<Channel>> channel =
      Channel::Make(std::move(initiator.socket), std::move(initiator.block.mapping), block,
                    shared_.bells.Of(process.number(), answer.fabric));
  if (!channel.ok()) {
    return Fail(owner,
                absl::IsPermissionDenied(channel.status()) ? Cause::kProtocol : Cause::kDevice,
                std::string(channel.status().message()), {});
  }
  Prove(answer, process, **channel);
  const soft::WatchId watch = initiator.watch;
  shared_.poller.Rename(watch, soft::Watched::kQueuePair,
                        static_cast<uint64_t>(initiator.queue_pair));
  attempts_.Cancel(owner);
  initiators_.Erase(owner);
  target.Establish(*std::move(channel), watch, std::move(process), agreement, answer.PrivateData());
}

void Rendezvous::Fail(uint64_t owner, Cause cause, std::string detail, ConstBytes private_data) {
  Initiator* initiator = initiators_.Find(owner);
  if (initiator == nullptr) return;
  const QueuePairId id = initiator->queue_pair;
  shared_.poller.Forget(initiator->watch);
  attempts_.Cancel(owner);
  initiators_.Erase(owner);
  queue_pairs_.Find(id)->FailStartup(cause, std::move(detail), private_data);
}

void Rendezvous::GiveUp(QueuePairId id) {
  uint64_t attempt = kNoHandle;
  initiators_.ForEach([&](uint64_t owner, const Initiator& initiator) {
    if (initiator.queue_pair == id) attempt = owner;
  });
  const Initiator* initiator = initiators_.Find(attempt);
  if (initiator == nullptr) return;
  shared_.poller.Forget(initiator->watch);
  attempts_.Cancel(attempt);
  initiators_.Erase(attempt);
}

}  // namespace esdp::fabric::local
