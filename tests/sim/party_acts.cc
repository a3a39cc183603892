// What a party does while it acts.

#include <algorithm>
#include <array>
#include <utility>

#include "tests/sim/checkers/content.h"
#include "tests/sim/party.h"

namespace esdp::simulation {
namespace {

constexpr size_t kOutstandingMax = 12;

}  // namespace

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
    case Act::kAwaitUrgent:
      return AwaitUrgent();
    case Act::kSetMode:
      return SetMode();
    case Act::kSuspend:
      return Suspend();
  }
}

// Takes memory for the operation: one piece, or some.
bool Party::TakePieces(Operation& operation) {
  const bool may_expose_region = !around_.plan.lies();
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
  operation.length = random_.Chance(around_.plan.small_send_chance, 100)
                         ? random_.Between(1, 200)
                         : DrawSize(around_.plan, random_);
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
  if (posted.ok()) {
    operation.send_number = stream.SendPosted(content, operation.length, urgent);
  }
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

// One may wait to the end of the stream, so that it leaves as much room as a send.
void Party::AwaitUrgent() {
  if (!HasSlotFor(true)) return;
  Operation operation;
  operation.type = EventType::kUrgent;
  Launch(socket_.AwaitUrgent(DrawArgs()), std::move(operation), false);
}

// Where something may be missing for another queue pair, or time, the connection may end with it.
void Party::Suspend() {
  if (!HasSlotFor(true)) return;
  Operation operation;
  operation.type = EventType::kSuspend;
  OpArgs args = Args();
  if (random_.Chance(1, 8)) {
    args.deadline = station_.context.Now() + absl::Microseconds(random_.Below(500));
    link_->cut = true;
  }
  if (around_.plan.starves()) link_->disturbed = true;
  const absl::StatusOr<OpId> posted = socket_.Suspend(args);
  if (KindOf(posted.status()) == ErrorKind::kBusy) return;
  Launch(posted, std::move(operation), false);
}

void Party::SetMode() {
  constexpr std::array kSend{DeliveryMode::kAutomatic, DeliveryMode::kBuffered,
                             DeliveryMode::kCombined, DeliveryMode::kPipelined};
  constexpr std::array kReceive{DeliveryMode::kAutomatic, DeliveryMode::kBuffered};
  const bool sends = random_.Chance(2, 3);
  const DeliveryMode mode =
      sends ? kSend[random_.Below(kSend.size())] : kReceive[random_.Below(kReceive.size())];
  const absl::Status set = socket_.SetOption(
      {sends ? OptionName::kSendMode : OptionName::kReceiveMode, static_cast<uint64_t>(mode)});
  const bool over = KindOf(set) == ErrorKind::kWrongState && link_->excused();
  if (!set.ok() && !over) CheckRefusal(set);
}

void Party::SetOption() {
  constexpr std::array<uint64_t, 5> kThresholds{0, 1, 1000, 65536, kNever};
  const OptionName name =
      random_.Chance(1, 2) ? OptionName::kZcopySendMin : OptionName::kZcopyRecvMin;
  const absl::Status set =
      socket_.SetOption({name, kThresholds[random_.Below(kThresholds.size())]});
  if (!set.ok()) CheckRefusal(set);
}

}  // namespace esdp::simulation
