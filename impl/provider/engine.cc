#include "impl/provider/engine.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "impl/base/status.h"

namespace esdp::provider {
namespace {

Fabrics InOrder(const std::vector<std::unique_ptr<fabric::Fabric>>& owned) {
  Fabrics fabrics;
  fabrics.reserve(owned.size());
  for (const auto& each : owned) fabrics.push_back(each.get());
  return fabrics;
}

}  // namespace

Engine::Engine(std::vector<std::unique_ptr<fabric::Fabric>> fabrics, Observer& observer,
               Driver::Log log, const PeerBounds& bounds, WireTap* tap)
    : owned_(std::move(fabrics)),
      fabrics_(InOrder(owned_)),
      log_(std::move(log)),
      driver_(observer, log_, establishment_, tap),
      connections_(bounds.moving, bounds.spare_connections),
      establishment_(fabrics_, driver_, connections_),
      rendezvous_(fabrics_, driver_, connections_, observer, bounds),
      requests_(driver_, connections_, rendezvous_, establishment_, observer),
      residue_(bounds.spare_connections) {
  driver_.BoundReceiveGrowth(bounds.receive_growth);
}

// --- moving --------------------------------------------------------------------------------------

// What fails for want of memory has failed for one connection; the others go on.
bool Engine::Round() try {
  Begin();
  bool moved = false;
  const auto places = static_cast<uint8_t>(fabrics_.size());
  for (uint8_t place = 0; place < places; ++place) moved |= Poll(place);
  ++rounds_;
  if (driver_.timers().MayBeDue(driver_.now())) moved |= FireTimers();
  driver_.Flush();
  if (HasAnythingToReap()) moved |= Reap();
  return moved;
} catch (const std::bad_alloc&) {
  driver_.WriteLog("no memory");
  return true;
}

// Where others are, one without a connection may wait a little: it costs a system call to ask.
bool Engine::Poll(uint8_t place) {
  const bool unused =
      fabrics_.size() > 1 && !connections_.Uses(place) && !rendezvous_.AwaitsOneThatIsThere(place);
  if (unused && rounds_ % kRoundsForAnUnused != 0) return false;
  const bool events = PollEvents(place);
  return PollCompletions(place) || events;
}

std::vector<int> Engine::fds() const {
  std::vector<int> fds;
  for (const fabric::Fabric* fabric : fabrics_) {
    if (fabric->fd() >= 0) fds.push_back(fabric->fd());
  }
  return fds;
}

bool Engine::ExpectWaits(bool expected) {
  bool silent = false;
  for (fabric::Fabric* fabric : fabrics_) silent |= fabric->ExpectWaits(expected);
  return silent;
}

bool Engine::PollEvents(uint8_t place) {
  int events = 0;
  while (events < kEventsPerRound && fabrics_[place]->PollRendezvous(event_)) {
    ++events;
    try {
      rendezvous_.OnEvent(place, event_);
    } catch (const std::bad_alloc&) {
      rendezvous_.GiveUp(place, event_);
    }
  }
  return events > 0;
}

bool Engine::PollCompletions(uint8_t place) {
  const size_t count = fabrics_[place]->Poll(absl::MakeSpan(completions_));
  for (size_t i = 0; i < count; ++i) {
    const fabric::Completion& completion = completions_[i];
    if (Session* session = connections_.Find(place, completion.queue_pair)) {
      driver_.FeedCompletion(*session, completion);
    }
    if (completion.lent != nullptr) fabrics_[place]->ReturnLent(completion.queue_pair);
  }
  return count > 0;
}

bool Engine::FireTimers() {
  int fired = 0;
  while (fired < kTimersPerRound) {
    const std::optional<Timers::Due> due = driver_.timers().PopDue(driver_.now());
    if (!due) break;
    ++fired;
    if (const auto* operation = std::get_if<sdp::OperationId>(&*due)) {
      requests_.Expire(*operation);
      continue;
    }
    if (const auto* alarm = std::get_if<Timers::Alarm>(&*due)) {
      if (alarm->key == Rendezvous::kRejectAlarm) {
        rendezvous_.RejectDue();
      } else if (alarm->key == kResidueAlarm) {
        GiveBack();
      } else {
        requests_.Ring(alarm->key);
      }
      continue;
    }
    const auto& timer = std::get<Timers::CoreTimer>(*due);
    Session* session = connections_.Find(timer.connection);
    if (session != nullptr && !HasEnded(session->visibility)) {
      driver_.Feed(*session, sdp::TimerFired{timer.timer});
    }
  }
  return fired > 0;
}

// True if there is something new to poll: the flushed work of the queue pairs that were destroyed.
bool Engine::Reap() {
  std::vector<Session*>& ended = driver_.ended();
  const bool any = !ended.empty();
  residue_.NoteMost(connections_.size());
  for (Session* session : ended) {
    rendezvous_.Ended(*session);
    session->transport.DestroyQueuePair();
    closed_.Add({session->id, CountersOf(*session)});
    connections_.Remove(*session);
  }
  ended.clear();
  connections_.FreeReleased();
  if (any && residue_.IsTooMuch(connections_.size())) MindResidue();
  return any;
}

void Engine::MindResidue() try {
  if (residue_is_due_) return;
  driver_.timers().SetAlarm(kResidueAlarm, AddSaturating(driver_.now(), Residue::kAfter));
  residue_is_due_ = true;
} catch (const std::bad_alloc&) {  // the next one that ends tries it again
}

// By now others may have come in their place. Without memory the tables stay as they are.
void Engine::GiveBack() {
  residue_is_due_ = false;
  const size_t connections = connections_.size();
  if (!residue_.IsTooMuch(connections)) return;
  residue_.OnGivenBack(connections);
  try {
    driver_.ShrinkTo(connections);
    connections_.Shrink();
  } catch (const std::bad_alloc&) {
  }
  Residue::ReturnFreeMemory();
}

Time Engine::NextDeadline() const {
  Time next = driver_.NextDeadline();
  for (const fabric::Fabric* fabric : fabrics_) next = std::min(next, fabric->NextDeadline());
  return next;
}

// --- memory --------------------------------------------------------------------------------------

absl::StatusOr<std::shared_ptr<MemoryRegion>> Engine::Register(std::span<std::byte> memory,
                                                               bool local_write, Exposure exposure,
                                                               int file) {
  // Before the first key that a Send must not invalidate: connections from now on do not offer it.
  if (exposure == Exposure::kRegionKey) rendezvous_.ForbidRemoteInvalidate();
  return Count(MemoryRegion::Register(fabrics_, memory, local_write, exposure, file));
}

absl::StatusOr<std::shared_ptr<MemoryRegion>> Engine::RegisterDmaBuf(const fabric::DmaBuf& buffer,
                                                                     std::span<std::byte> addresses,
                                                                     Exposure exposure) {
  if (exposure == Exposure::kRegionKey) rendezvous_.ForbidRemoteInvalidate();
  return Count(MemoryRegion::RegisterDmaBuf(fabrics_, buffer, addresses, exposure));
}

absl::StatusOr<std::shared_ptr<MemoryRegion>> Engine::Count(
    absl::StatusOr<std::shared_ptr<MemoryRegion>> region) {
  if (region.ok()) {
    registered_bytes_ += (*region)->length();
    return region;
  }
  if (region.status().code() != absl::StatusCode::kResourceExhausted) return region;
  return MakeStatus(absl::StatusCode::kResourceExhausted,
                    std::string(FromAbsl(region.status().message())) + "; registered here are " +
                        std::to_string(registered_bytes_) +
                        " bytes: close regions that are no longer used, or raise the limit");
}

absl::Status Engine::Deregister(MemoryRegion& region) {
  if (!region.registered()) return absl::NotFoundError("the region has been deregistered already");
  ESDP_RETURN_IF_ERROR(region.Deregister(fabrics_));
  registered_bytes_ -= region.length();
  return absl::OkStatus();
}

uint64_t Engine::UnreadBytes(ConnectionId connection) {
  const Session* session = connections_.Find(connection);
  return session == nullptr ? 0 : session->core.unread_bytes();
}

absl::StatusOr<ConnectionCounters> Engine::Counters(ConnectionId connection) {
  if (const Session* session = connections_.Find(connection)) return CountersOf(*session);
  if (const ClosedConnection* closed = closed_.Find(connection)) return closed->counters;
  return absl::NotFoundError("no such connection, or it ended long ago");
}

// --- the end -------------------------------------------------------------------------------------

void Engine::AbortAll() {
  connections_.ForEach([&](Session& session) {
    if (!HasEnded(session.visibility)) requests_.Close(session, true);
  });
  Finish();
}

void Engine::DestroyAll() {
  connections_.ForEach([&](Session& session) {
    if (HasEnded(session.visibility)) return;
    session.transport.DestroyQueuePair();
    session.transport.failure().cause = fabric::Cause::kLocalDisconnect;
    driver_.FeedLoss(session);
  });
  Finish();
}

}  // namespace esdp::provider
