#include "tests/sim/party.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <utility>

#include "tests/sim/content.h"

namespace esdp::simulation {
namespace {

constexpr size_t kOutstandingMax = 12;
constexpr Duration kRetry = std::chrono::microseconds(20);

// The number of one of the weights, drawn by them.
template <size_t N>
size_t DrawByWeight(Random& random, const std::array<uint32_t, N>& weights) {
  uint64_t left = random.Below(std::accumulate(weights.begin(), weights.end(), uint64_t{0}));
  for (size_t i = 0; i < N; ++i) {
    if (left < weights[i]) return i;
    left -= weights[i];
  }
  return 0;
}

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

// Sends that wait for the peer to read leave room for receives, the shutdown and the close: an
// application that does not would wait for itself. Now and then the queue is full all the same.
bool Party::HasSlotFor(bool is_send) const {
  return operations_.size() + (is_send ? 4 : 2) <= std::min<size_t>(depth_, kOutstandingMax);
}

OpArgs Party::DrawArgs() {
  OpArgs args = Args();
  if (random_.Chance(around_.plan.deadline_chance, 100)) {
    args.deadline = station_.context.Now() +
                    absl::Microseconds(random_.Below(random_.Chance(1, 2) ? 20 : 2000));
    if (around_.plan.socket.deadline_policy == DeadlinePolicy::kAbortConnection) link_->cut = true;
  }
  if (random_.Chance(1, 4)) args.complete_at = CompleteAt::kDelivered;
  if (random_.Chance(1, 4)) args.path = random_.Chance(1, 2) ? Path::kCopy : Path::kZeroCopy;
  return args;
}

// --- what it does --------------------------------------------------------------------------------

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

void Party::DoOne() {
  switch (static_cast<Act>(DrawByWeight(random_, around_.plan.weights))) {
    case Act::kSend:
      return Send();
    case Act::kReceive:
      return Receive(DrawSize(around_.plan, random_));
    case Act::kCancel:
      return CancelOne();
    case Act::kCancelAll:
      (void)socket_.CancelAll(static_cast<Direction>(random_.Below(3)));
      return;
    case Act::kSetOption:
      return SetOption();
    case Act::kRest:
      return;
  }
}

// Takes memory for the operation: one piece, or some.
bool Party::TakePieces(Operation& operation) {
  const bool may_expose_region = around_.plan.hostile == 0;
  const size_t pieces = random_.Chance(1, 4) ? random_.Between(2, 4) : 1;
  uint64_t left = operation.length;
  for (size_t i = 0; i < pieces; ++i) {
    const uint64_t length = i + 1 == pieces ? left : random_.Between(0, left);
    std::optional<Piece> piece = station_.Take(length, may_expose_region, random_);
    if (!piece) {
      GiveBack(operation);
      return false;
    }
    operation.pieces.push_back(*piece);
    left -= length;
  }
  return true;
}

void Party::GiveBack(Operation& operation) {
  for (const Piece& piece : operation.pieces) station_.Give(piece);
  operation.pieces.clear();
}

void Party::Send() {
  if (!HasSlotFor(true)) return;
  Operation operation;
  operation.type = EventType::kSend;
  operation.length = DrawSize(around_.plan, random_);
  const uint64_t content = random_.Next();
  const OpArgs args = DrawArgs();
  StreamChecker& stream = link_->streams[side_];
  absl::StatusOr<OpId> posted;
  const bool urgent = operation.length > 0 && random_.Chance(around_.plan.urgent_chance, 100);
  const SendFlags flags = urgent ? SendFlags::kUrgent : SendFlags::kNone;
  if (operation.length <= 4096 && random_.Chance(1, 5)) {
    operation.copy.resize(operation.length);
    FillContent(content, 0, operation.copy);
    posted = socket_.SendCopy(operation.copy, flags, args);
    std::fill(operation.copy.begin(), operation.copy.end(), std::byte{0xee});
    station_.bounced = true;
  } else {
    if (!TakePieces(operation)) return;
    uint64_t done = 0;
    std::vector<Slice> slices;
    for (const Piece& piece : operation.pieces) {
      FillContent(content, done, piece.bytes);
      done += piece.bytes.size();
      slices.push_back(piece.slice);
    }
    if (slices.size() == 1) {
      posted = socket_.Send(slices[0], flags, args);
    } else {
      operation.type = EventType::kSendV;
      posted = socket_.SendV(slices, flags, args);
    }
  }
  if (posted.ok()) operation.send_number = stream.SendPosted(content, operation.length);
  Launch(posted, std::move(operation), false);
}

void Party::Receive(uint64_t length) {
  if (!HasSlotFor(false)) return;
  Operation operation;
  operation.type = EventType::kRecv;
  operation.length = length;
  const bool wait_all =
      phase_ == Phase::kActing && random_.Chance(around_.plan.wait_all_chance, 100);
  const RecvFlags flags = wait_all ? RecvFlags::kWaitAll : RecvFlags::kNone;
  const OpArgs args = phase_ == Phase::kActing ? DrawArgs() : Args();
  absl::StatusOr<OpId> posted;
  if (length <= 4096 && random_.Chance(1, 5)) {
    operation.copy.resize(length);
    posted = socket_.RecvCopy(absl::MakeSpan(operation.copy), flags, args);
    station_.bounced = true;
  } else {
    if (!TakePieces(operation)) return;
    std::vector<Slice> slices;
    for (const Piece& piece : operation.pieces) slices.push_back(piece.slice);
    if (slices.size() == 1) {
      posted = socket_.Recv(slices[0], flags, args);
    } else {
      operation.type = EventType::kRecvV;
      posted = socket_.RecvV(slices, flags, args);
    }
  }
  Launch(posted, std::move(operation), wait_all);
}

void Party::Launch(const absl::StatusOr<OpId>& posted, Operation operation, bool wait_all) {
  if (!posted.ok()) {
    GiveBack(operation);
    return CheckRefusal(posted.status());
  }
  station_.completions.OnPosted(*posted, {.type = operation.type,
                                          .socket = socket_id_,
                                          .length = operation.length,
                                          .wait_all = wait_all});
  for (const Piece& piece : operation.pieces) {
    around_.memory.Lend(piece.bytes, operation.is_send());
  }
  operations_[*posted] = std::move(operation);
}

// What may be refused: for want of room, or because the end has come.
void Party::CheckRefusal(const absl::Status& status) {
  const ErrorKind kind = KindOf(status);
  if (kind == ErrorKind::kQueueFull || kind == ErrorKind::kSocketWindow) return;
  if (kind == ErrorKind::kMemory && around_.plan.starves()) return;  // of the bounce pool
  if (kind == ErrorKind::kShutDown && (shut_ || phase_ == Phase::kClosing)) return;
  if (kind != ErrorKind::kShutDown && kind != ErrorKind::kWrongState && link_ != nullptr &&
      link_->excused()) {
    failed_ = true;
    return;
  }
  around_.findings.Add(Describe() + ": a post is refused: " + status.ToString());
  failed_ = true;
}

void Party::CancelOne() {
  if (operations_.empty()) return;
  auto chosen = operations_.begin();
  std::advance(chosen, random_.Below(operations_.size()));
  if (around_.plan.leaves[static_cast<size_t>(Leave::kAbort)] > 0 && random_.Chance(1, 20)) {
    link_->cut = true;
    (void)socket_.Cancel(chosen->first, CancelMode::kAbortConnection);
    return;
  }
  (void)socket_.Cancel(chosen->first);
}

void Party::SetOption() {
  constexpr std::array<uint64_t, 5> kThresholds{0, 1, 1000, 65536, kNever};
  const OptionName name =
      random_.Chance(1, 2) ? OptionName::kZcopySendMin : OptionName::kZcopyRecvMin;
  const absl::Status set =
      socket_.SetOption({name, kThresholds[random_.Below(kThresholds.size())]});
  if (!set.ok()) CheckRefusal(set);
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
                                 [](const auto& entry) { return !entry.second.is_send(); });
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
