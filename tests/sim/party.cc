#include "tests/sim/party.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace esdp::simulation {
namespace {

constexpr Duration kRetry = std::chrono::microseconds(20);

}  // namespace

Party::Party(const Surroundings& around, Station& station, Socket socket, size_t side,
             uint64_t seed)
    : around_(around),
      station_(station),
      depth_(around.plan.queue_depth),
      socket_(std::move(socket)),
      socket_id_(socket_.id()),
      side_(side),
      random_(seed) {
  absl::StatusOr<EventQueue> created = station.context.CreateQueue({.depth = depth_});
  if (created.ok()) {
    queue_ = *std::move(created);
  } else {
    around_.findings.Add("no queue: " + created.status().ToString());
  }
}

Party::~Party() {
  const QueueStats queued = queue_.Stats();
  if (queued.reserved == 0 && queued.waiting == 0) return;
  around_.findings.Add(Describe() + ": " + std::to_string(queued.reserved) +
                       " slots stay reserved and " + std::to_string(queued.waiting) +
                       " events wait");
}

std::vector<Event> Party::TakeEvents() {
  if (queue_.Stats().waiting == 0) return {};
  std::vector<Event> events(16);
  const absl::StatusOr<size_t> taken = queue_.TryDequeue(absl::MakeSpan(events));
  events.resize(taken.ok() ? *taken : 0);
  return events;
}

void Party::Begin(Link& link, Time now) {
  link_ = &link;
  phase_ = Phase::kActing;
  acts_left_ = static_cast<uint32_t>(random_.Between(0, around_.plan.acts_max));
  next_ = DrawRest(now, around_.plan.rest_max);
}

bool Party::Connect(const Address& address) {
  const absl::StatusOr<OpId> posted = socket_.Connect(address, Args());
  if (posted.ok()) {
    Post(EventType::kConnect, posted);
    return true;
  }
  if (!around_.plan.starves()) CheckRefusal(posted.status());
  phase_ = Phase::kDone;
  socket_ = {};
  return false;
}

Time Party::DrawRest(Time now, Duration most) {
  return now +
         Duration(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most.count()) + 1)));
}

OpArgs Party::Args() { return {.queue = queue_}; }

void Party::Move(Time now) {
  if (now < next_) return;
  next_ = now + kRetry;
  switch (phase_) {
    case Phase::kConnecting:
    case Phase::kDone:
    case Phase::kClosing:
      next_ = kTimeInfinite;
      return;
    case Phase::kActing:
      if (failed_ || acts_left_ == 0) return LeaveActing();
      --acts_left_;
      DoOne();
      next_ = DrawRest(now, around_.plan.rest_max);
      return;
    case Phase::kReading:
      next_ = DrawRest(now, around_.plan.read_rest_max) + kRetry;
      return ReadOn();
  }
}

// --- how it leaves -------------------------------------------------------------------------------

void Party::LeaveActing() {
  if (aborts_next_) return Close(CloseMode::kAbort);
  switch (static_cast<Leave>(DrawByWeight(random_, around_.plan.leaves))) {
    case Leave::kPolite:
      phase_ = Phase::kReading;
      return ReadOn();
    case Leave::kClose:
      link_->cut = true;
      return Close(CloseMode::kGraceful);
    case Leave::kAbort:
      link_->cut = true;
      // Half of them behind a DisConn, so that there is an AbortConn to send.
      if (!shut_ && random_.Chance(1, 2)) {
        aborts_next_ = true;
        return ShutDown();
      }
      return Close(CloseMode::kAbort);
    case Leave::kDrop:
      link_->cut = true;
      phase_ = Phase::kClosing;
      next_ = kTimeInfinite;
      dropped_ = true;
      NoteStats();
      socket_ = {};
      if (operations_.empty()) End();
      return;
  }
}

void Party::ReadOn() {
  if (failed_) return Close(CloseMode::kAbort);
  if (!shut_) return ShutDown();
  if (end_seen_ && shut_done_ && operations_.empty()) return Close(CloseMode::kGraceful);
  const bool reads = std::any_of(operations_.begin(), operations_.end(),
                                 [](const auto& entry) { return entry.second.is_receive(); });
  if (!end_seen_ && !reads)
    Receive(random_.Between(1, std::max<uint64_t>(around_.plan.size_max, 1)));
}

void Party::ShutDown() {
  const absl::StatusOr<OpId> posted = socket_.Shutdown(Args());
  if (!posted.ok()) return CheckRefusal(posted.status());
  shut_ = true;
  Post(EventType::kShutdown, posted);
}

void Party::Close(CloseMode mode) {
  const absl::StatusOr<OpId> posted = socket_.Close(mode, Args());
  if (!posted.ok()) {
    if (KindOf(posted.status()) != ErrorKind::kQueueFull) {
      around_.findings.Add(Describe() + ": Close is refused: " + posted.status().ToString());
    }
    return;  // tried again at the next move, when events have been taken
  }
  Post(EventType::kClose, posted);
  phase_ = Phase::kClosing;
  next_ = kTimeInfinite;
}

void Party::Abort() {
  if (phase_ == Phase::kDone || dropped_) return;
  if (link_ != nullptr) link_->cut = true;
  if (phase_ == Phase::kClosing) {  // its event is on the way, and ends all
    socket_ = {};
    return;
  }
  const bool has_operations = phase_ == Phase::kConnecting || !operations_.empty();
  NoteStats();
  dropped_ = true;
  phase_ = Phase::kClosing;
  next_ = kTimeInfinite;
  socket_ = {};
  if (!has_operations) End();
}

void Party::End() {
  phase_ = Phase::kDone;
  next_ = kTimeInfinite;
  if (link_ != nullptr) link_->ended[side_] = true;
  if (!operations_.empty()) {
    around_.findings.Add(Describe() + ": the end came before that of its operations");
  }
}

void Party::NoteStats() {
  const SocketStats stats = socket_.Stats();
  if (stats.expose_failures > 0) around_.marks.Hit("an exposure that failed");
  if (stats.credit_stalls > 0) around_.marks.Hit("a payload that waited for credits");
  if (stats.send_sm_received > 0) around_.marks.Hit("an advert given back");
  if (stats.source_adverts_lost > 0) around_.marks.Hit("an advert lost to a SinkAvail");
}

OpId Party::Post(EventType type, const absl::StatusOr<OpId>& posted) {
  station_.completions.OnPosted(*posted, {.type = type, .socket = socket_id_});
  return *posted;
}

std::string Party::Describe() const {
  constexpr std::array kPhases{"connecting", "acting", "reading", "closing", "done"};
  std::string text = "socket " + std::to_string(static_cast<uint64_t>(socket_id_)) + " (" +
                     (side_ == 0 ? "connecting" : "accepting") + " side, " +
                     kPhases[static_cast<size_t>(phase_)];
  for (const auto& [op, operation] : operations_) {
    text +=
        std::string(", ") + ToString(operation.type) + " of " + std::to_string(operation.length);
  }
  return text + (shut_ && !shut_done_ ? ", shutting down)" : ")");
}

}  // namespace esdp::simulation
