#include <memory>
#include <string>
#include <utility>

#include "impl/base/status.h"
#include "impl/fabric/socket_address.h"
#include "impl/provider/session/failures.h"
#include "impl/provider/setup/patience.h"
#include "impl/provider/setup/rendezvous.h"

// Attempts to connect, over one fabric after the other.

namespace esdp::provider {
absl::StatusOr<ConnectionId> Rendezvous::Connect(const Address& local, const Address& peer,
                                                 const ConnectionOptions& options, Time deadline,
                                                 const std::function<void(ConnectionId)>& named) {
  return Try({.options = options, .local = local, .deadline = deadline}, peer, 0, named);
}

absl::StatusOr<ConnectionId> Rendezvous::ConnectOver(
    int descriptor, const ConnectionOptions& options, Time deadline,
    const std::function<void(ConnectionId)>& named) {
  ESDP_ASSIGN_OR_RETURN(const uint8_t place, PlaceOverTcp());
  ESDP_ASSIGN_OR_RETURN(const fabric::TcpEnds ends, fabric::EndsOf(descriptor));
  return Try(
      {.options = options, .local = ends.local, .deadline = deadline, .descriptor = descriptor},
      ends.peer, place, named);
}

absl::StatusOr<uint8_t> Rendezvous::PlaceOverTcp() const {
  for (size_t place = 0; place < fabrics_.size(); ++place) {
    if (fabrics_[place]->limits().takes_tcp) return static_cast<uint8_t>(place);
  }
  return absl::UnimplementedError(
      std::string("no connection over a TCP socket that is there already on the fabric ") +
      fabrics_[0]->name() + ": qpip has them");
}

absl::StatusOr<ConnectionId> Rendezvous::Try(Attempt&& wishes, const Address& peer, uint8_t place,
                                             const std::function<void(ConnectionId)>& named) {
  if (IsFull() && !DropHalfOpen("others want in")) {
    return absl::ResourceExhaustedError(
        std::to_string(connections_max_) +
        " connections are there, the Context's limit: close some, or raise connections_max");
  }
  ESDP_ASSIGN_OR_RETURN(std::unique_ptr<Session> made, Make(wishes.options, true, wishes.local,
                                                            peer, place, wishes.descriptor >= 0));
  ESDP_ASSIGN_OR_RETURN(Session* const added, Add(std::move(made)));
  const ConnectionId id = added->id;
  added->attempt = std::move(wishes);
  if (named) named(id);
  Session& session = Begin(*added);
  const absl::Status& refused = session.transport.failure().refused_call;
  if (HasEnded(session.visibility)) {
    const bool no_memory = session.failure && session.failure->ending == EndReason::kNoMemory;
    const absl::StatusCode code =
        no_memory ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInternal;
    return MakeStatus(refused.ok() ? code : refused.code(),
                      driver_.RootCause(session, session.cause).text);
  }
  Move(session.visibility, VisibilityCue::kAnnounced);
  return id;
}

// What a fabric refuses at once is no path.
Session& Rendezvous::Begin(Session& first) {
  for (Session* session = &first;;) {
    Attempt& attempt = *session->attempt;
    attempt.has_next = attempt.descriptor < 0 && session->transport.place() + 1u < fabrics_.size();
    session->connect_deadline = EndOfAttempt(attempt.deadline, !attempt.has_next,
                                             session->transport.fabric().limits(), driver_.now());
    driver_.Feed(*session, sdp::AskConnect{});
    driver_.Flush();
    if (session->transport.may_connect() || !attempt.has_next) return *session;
    Session* const next = Next(*session);
    if (next == nullptr) return *session;
    session = next;
  }
}

bool Rendezvous::MayTryNext(const Session& session, fabric::Cause cause) {
  if (!session.attempt || !session.attempt->has_next) return false;
  if (session.transport.phase() == QueuePairPhase::kAbandoned) return false;
  return MeansNoPath(cause);
}

bool Rendezvous::MeansNoPath(fabric::Cause cause) {
  return cause == fabric::Cause::kUnreachable || cause == fabric::Cause::kRefused ||
         cause == fabric::Cause::kTimedOut;
}

// A session on the next fabric takes over name and wishes. Where there is none to be had, the
// attempt has failed: nullptr.
Session* Rendezvous::Next(Session& session) {
  Attempt attempt = *std::move(session.attempt);
  session.attempt.reset();
  const std::string failure =
      Explain(sdp::Outcome::kConnectFailed, "", DetailsOf(session), session.peer).text;
  attempt.failures += std::string("; over ") + session.transport.fabric().name() + ": " + failure;
  const auto place = static_cast<uint8_t>(session.transport.place() + 1);
  auto made = Make(attempt.options, true, attempt.local, session.peer, place, false);
  if (!made.ok()) {
    session.transport.failure().NoteRefusal(made.status());
    driver_.Feed(session, sdp::ConnectFailed{});
    return nullptr;
  }
  // Most peers are on other hosts.
  if (!session.transport.fabric().limits().of_this_host) {
    driver_.WriteLog(failure + ": now over " + fabrics_[place]->name());
  }
  (*made)->attempt = std::move(attempt);
  (*made)->visibility = session.visibility;
  driver_.timers().ClearAll(session.id);
  session.transport.DestroyQueuePair();
  return connections_.Replace(session, *std::move(made));
}

}  // namespace esdp::provider
