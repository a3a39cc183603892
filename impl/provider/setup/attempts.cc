#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "impl/base/status.h"
#include "impl/provider/session/failures.h"
#include "impl/provider/setup/rendezvous.h"

// Attempts to connect, over one fabric after the other.

namespace esdp::provider {
namespace {

// A device of RoCE reaches peers that have none, and nobody there answers. So an attempt that is
// not the last has so much time, and at most half of what is left.
constexpr Duration kPatience = std::chrono::seconds(3);

Time DeadlineOf(const Attempt& attempt, Time now) {
  if (!attempt.has_next) return attempt.deadline;
  const Duration left =
      attempt.deadline == kTimeInfinite ? kDurationInfinite : attempt.deadline - now;
  return now + std::min(kPatience, std::max(left / 2, Duration{0}));
}

}  // namespace

absl::StatusOr<ConnectionId> Rendezvous::Connect(const Address& local, const Address& peer,
                                                 const ConnectionOptions& options, Time deadline,
                                                 const std::function<void(ConnectionId)>& named) {
  if (IsFull() && !DropHalfOpen("others want in")) {
    return absl::ResourceExhaustedError(
        std::to_string(connections_max_) +
        " connections are there, the Context's limit: close some, or raise connections_max");
  }
  ESDP_ASSIGN_OR_RETURN(std::unique_ptr<Endpoint> made, Make(options, true, local, peer, 0));
  ESDP_ASSIGN_OR_RETURN(Endpoint* const added, Add(std::move(made)));
  const ConnectionId id = added->id;
  Attempt& attempt = added->attempt.emplace();
  attempt.options = options;
  attempt.local = local;
  attempt.deadline = deadline;
  if (named) named(id);
  Endpoint& endpoint = Begin(*added);
  const absl::Status& refused = endpoint.evidence.refused_call;
  if (HasEnded(endpoint.visibility)) {
    const bool no_memory = endpoint.failure && endpoint.failure->ending == EndReason::kNoMemory;
    const absl::StatusCode code =
        no_memory ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInternal;
    return MakeStatus(refused.ok() ? code : refused.code(),
                      driver_.RootCause(endpoint, endpoint.cause).text);
  }
  Move(endpoint.visibility, VisibilityCue::kAnnounced);
  return id;
}

// What a fabric refuses at once is no path.
Endpoint& Rendezvous::Begin(Endpoint& first) {
  for (Endpoint* endpoint = &first;;) {
    Attempt& attempt = *endpoint->attempt;
    attempt.has_next = endpoint->place + 1u < fabrics_.size();
    endpoint->connect_deadline = DeadlineOf(attempt, driver_.now());
    driver_.Feed(*endpoint, sdp::AskConnect{});
    driver_.Flush();
    if (endpoint->phase != QueuePairPhase::kFailed || !attempt.has_next) return *endpoint;
    Endpoint* const next = Next(*endpoint);
    if (next == nullptr) return *endpoint;
    endpoint = next;
  }
}

bool Rendezvous::MayTryNext(const Endpoint& endpoint, fabric::Cause cause) {
  if (!endpoint.attempt || !endpoint.attempt->has_next) return false;
  if (endpoint.phase == QueuePairPhase::kAbandoned) return false;
  return cause == fabric::Cause::kUnreachable || cause == fabric::Cause::kRefused ||
         cause == fabric::Cause::kTimedOut;
}

// An endpoint on the next fabric takes over name and wishes. Where there is none to be had, the
// attempt has failed: nullptr.
Endpoint* Rendezvous::Next(Endpoint& endpoint) {
  Attempt attempt = *std::move(endpoint.attempt);
  endpoint.attempt.reset();
  const std::string failure =
      Explain(sdp::Outcome::kConnectFailed, "", endpoint.evidence, endpoint.peer).text;
  attempt.failures += std::string("; over ") + endpoint.fabric->name() + ": " + failure;
  const auto place = static_cast<uint8_t>(endpoint.place + 1);
  auto made = Make(attempt.options, true, attempt.local, endpoint.peer, place);
  if (!made.ok()) {
    endpoint.evidence.NoteRefusal(made.status());
    driver_.Feed(endpoint, sdp::ConnectFailed{});
    return nullptr;
  }
  driver_.WriteLog(failure + ": now over " + fabrics_[place]->name());
  (*made)->attempt = std::move(attempt);
  (*made)->visibility = endpoint.visibility;
  driver_.timers().ClearAll(endpoint.id);
  (void)endpoint.fabric->DestroyQueuePair(endpoint.queue_pair);
  return connections_.Replace(endpoint, *std::move(made));
}

}  // namespace esdp::provider
