#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "impl/base/status.h"
#include "impl/fabric/qpip/rendezvous.h"

// The connecting side.

namespace esdp::fabric::qpip {

absl::Status Rendezvous::Connect(QueuePairId id, const Address& local, const Address& peer,
                                 ConstBytes private_data, Time deadline) {
  if (absl::Status status = CheckPrivateData(private_data); !status.ok()) return status;
  ESDP_ASSIGN_OR_RETURN(TcpStream stream, TcpStream::Connect(local, peer, commons_.options));
  return Begin(id, std::move(stream), private_data, deadline).status();
}

absl::Status Rendezvous::ConnectOver(QueuePairId id, int descriptor, ConstBytes private_data,
                                     Time deadline) {
  if (absl::Status status = CheckPrivateData(private_data); !status.ok()) return status;
  ESDP_ASSIGN_OR_RETURN(TcpStream stream, TcpStream::Over(descriptor, commons_.options));
  ESDP_ASSIGN_OR_RETURN(const uint64_t owner, Begin(id, std::move(stream), private_data, deadline));
  try {
    (void)OnInitiatorReady(owner);   // it is connected: the request may leave at once
  } catch (const std::bad_alloc&) {  // it leaves when the poller says so
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Rendezvous::Begin(QueuePairId id, TcpStream stream,
                                           ConstBytes private_data, Time deadline) {
  const uint64_t owner =
      initiators_.Insert(Initiator{.queue_pair = id,
                                   .stream = std::move(stream),
                                   .private_data = {private_data.begin(), private_data.end()}});
  Initiator& initiator = *initiators_.Find(owner);
  initiator.watch =
      commons_.poller.Watch(initiator.stream.descriptor(), Watched::kInitiator, owner, false, true);
  if (initiator.watch == WatchId::kNone) {
    initiators_.Erase(owner);
    return absl::ResourceExhaustedError("the system cannot watch one more socket");
  }
  commons_.poller.SetDeadline(initiator.watch, deadline);
  queue_pairs_.Find(id)->BeginStartup();
  return owner;
}

bool Rendezvous::OnInitiatorReady(uint64_t owner) {
  Initiator* initiator = initiators_.Find(owner);
  if (initiator == nullptr) return false;
  if (!initiator->request_sent) return SendRequest(owner, *initiator);
  switch (initiator->reader.Read(initiator->stream)) {
    case StartupReader::Outcome::kMore:
      return false;
    case StartupReader::Outcome::kDone:
      OnReply(owner, *initiator);
      break;
    case StartupReader::Outcome::kEnd:
      Fail(owner, Cause::kPeerReset, "the peer closed before it had answered", {});
      break;
    case StartupReader::Outcome::kFailed:
      Fail(owner, CauseOfError(initiator->reader.error()),
           "no answer: " + ErrorText(initiator->reader.error()), {});
      break;
    case StartupReader::Outcome::kMalformed:
      Fail(owner, Cause::kProtocol, ToString(initiator->reader.malformed()), {});
      break;
  }
  return true;
}

bool Rendezvous::SendRequest(uint64_t owner, Initiator& initiator) {
  QueuePair* target = queue_pairs_.Find(initiator.queue_pair);
  if (const int error = initiator.stream.TakeError(); error != 0) {
    const Cause cause = error == ETIMEDOUT ? Cause::kTimedOut : CauseOfError(error);
    Fail(owner, cause, "cannot connect: " + ErrorText(error), {});
    return true;
  }
  const std::vector<std::byte> request =
      EncodeStartup(MakeRequest(OfferOf(target->options()), initiator.private_data.size()),
                    initiator.private_data);
  const IoResult written = initiator.stream.Write(request);
  if (written.outcome != IoOutcome::kMoved || written.bytes != request.size()) {
    Fail(owner, CauseOfError(written.error), "the MPA request was not sent", {});
    return true;
  }
  initiator.request_sent = true;
  commons_.poller.Change(initiator.watch, true, false);
  return true;
}

void Rendezvous::OnReply(uint64_t owner, Initiator& initiator) {
  QueuePair* target = queue_pairs_.Find(initiator.queue_pair);
  const StartupReader reader = initiator.reader;
  const ReplyVerdict verdict = JudgeReply(reader.startup(), OfferOf(target->options()));
  if (verdict.cause != Cause::kNone) {
    if (verdict.farewell) SendFarewell(initiator, verdict);
    Fail(owner, verdict.cause, verdict.detail, reader.private_data());
    return;
  }
  const WatchId watch = initiator.watch;
  commons_.poller.Rename(watch, Watched::kQueuePair, static_cast<uint64_t>(initiator.queue_pair));
  TcpStream stream = std::move(initiator.stream);
  initiators_.Erase(owner);
  target->Establish(std::move(stream), watch, verdict.negotiated, reader.private_data());
}

// RFC 6581: the responder, which has accepted, is told what cannot be.
void Rendezvous::SendFarewell(Initiator& initiator, const ReplyVerdict& verdict) {
  commons_.poller.Forget(std::exchange(initiator.watch, WatchId::kNone));
  Terminate terminate;
  terminate.reason = *verdict.farewell;
  commons_.lingering.Add(std::move(initiator.stream),
                         TerminateFrame(terminate, verdict.negotiated.checksum),
                         AddSaturating(commons_.clock->Now(), commons_.options.close_timeout));
}

void Rendezvous::OnInitiatorDeadline(uint64_t owner) {
  Fail(owner, Cause::kTimedOut, "no answer within the time given", {});
}

void Rendezvous::OnInitiatorWithoutMemory(uint64_t owner) {
  Fail(owner, Cause::kDevice, "no memory", {});
}

void Rendezvous::Fail(uint64_t owner, Cause cause, std::string detail, ConstBytes private_data) {
  Initiator* initiator = initiators_.Find(owner);
  if (initiator == nullptr) return;
  const QueuePairId id = initiator->queue_pair;
  commons_.poller.Forget(initiator->watch);
  initiators_.Erase(owner);
  queue_pairs_.Find(id)->FailStartup(cause, std::move(detail), private_data);
}

void Rendezvous::GiveUp(QueuePairId id) {
  uint64_t attempt = kNoHandle;
  initiators_.ForEach([&](uint64_t owner, const Initiator& initiator) {
    if (initiator.queue_pair == id) attempt = owner;
  });
  Initiator* initiator = initiators_.Find(attempt);
  if (initiator == nullptr) return;
  commons_.poller.Forget(initiator->watch);
  initiator->stream.Abort();
  initiators_.Erase(attempt);
}

}  // namespace esdp::fabric::qpip
