#include <algorithm>
#include <cerrno>
#include <utility>

#include "impl/exs/carried_receive.h"
#include "impl/exs/carried_send.h"
#include "impl/exs/convert.h"
#include "impl/exs/library.h"
#include "impl/exs/socket.h"

// Transfers that the library carries out in pieces, and what waits behind them.

namespace esdp::exs {
namespace {

// What is registered at a time for the operations below, of each direction of a socket; one that is
// carried out has its own.
constexpr uint64_t kPinnedMax = 4 * Carried::kPinnedMax;

}  // namespace

Line* ExsSocket::Before(Lane lane) {
  if (lane == Lane::kOther) return nullptr;
  Line& line = LineOf(lane == Lane::kReceivingNow ? Way::kReceiving : Way::kSending);
  return line.carried != nullptr ? &line : nullptr;
}

bool ExsSocket::NotNow(Lane lane, const Line* before) const {
  if (lane == Lane::kReceivingNow) return before != nullptr || ahead_.size() > 0;
  return lane == Lane::kSendingNow && before != nullptr;
}

// A close ends what is being received in pieces; its event has to come behind that one's.
bool ExsSocket::ClosesByHelper(Lane lane) {
  return lane == Lane::kLast && LineOf(Way::kReceiving).carried != nullptr;
}

// With the lock.
int ExsSocket::CloseByHelper(Operation& operation, const PostBelow& below) {
  const absl::StatusOr<OpId> posted = Library::Current()->helper().Post(
      [&](const OpArgs& args) { return below(socket_, args); },
      [&operation](const Event& event) {
        const std::shared_ptr<Queue> queue = operation.queue->shared_from_this();
        queue->Deliver(Conclude(*queue, operation, event));
        queue->Announce();
      });
  return posted.ok() ? 0 : ErrnoOf(posted.status());
}

int ExsSocket::PostTransfer(Queue& queue, const Operation& filled, Transfer transfer) {
  Operation& operation = Prepare(queue, filled);
  int error = EBADF;
  {
    const std::lock_guard lock(mutex_);
    if (!closing_) {
      Add(operation);
      error = 0;
      if (Line& line = LineOf(transfer.way); line.carried != nullptr) {
        line.held.push_back({&operation, nullptr, std::move(transfer)});
      } else {
        error = StartTransfer(operation, std::move(transfer));
      }
      if (error != 0) Unlink(operation);
    }
  }
  if (error != 0) queue.Recycle(operation);
  if (error == 0 && !filled.inner) calls_.readiness().Refresh(false);
  return error;
}

// With the lock.
int ExsSocket::StartTransfer(Operation& operation, Transfer transfer) {
  int error = 0;
  if (PostWhole(operation, transfer, &error)) return error;
  return Carry(operation, std::move(transfer));
}

// With the lock.
int ExsSocket::Carry(Operation& operation, Transfer transfer) {
  const Way way = transfer.way;
  const Carried::Place place = {*Library::Current(), socket_, register_failures_, ahead_};
  Carried::Done done = [this, &operation, way](const CarriedEnd& ended) {
    const std::shared_ptr<ExsSocket> self = operation.socket;  // stays until this has ended
    OnCarriedEnded(operation, way, ended);
  };
  std::shared_ptr<Carried> carried;
  if (way == Way::kSending) {
    carried = std::make_shared<CarriedSend>(place, std::move(transfer), std::move(done));
  } else {
    carried = std::make_shared<CarriedReceive>(place, std::move(transfer), std::move(done));
  }
  const int error = carried->Begin();
  if (error != 0) return error;
  LineOf(way).carried = std::move(carried);
  LineOf(way).of = &operation;
  return 0;
}

// With the lock.
int ExsSocket::StartBelow(Operation& operation, const PostBelow& below) {
  const absl::StatusOr<OpId> posted = below(socket_, operation.queue->Args(operation));
  if (!posted.ok()) return ErrnoOf(posted.status());
  operation.op = *posted;
  return 0;
}

// With the lock.
int ExsSocket::Start(Held held) {
  Operation& operation = *held.operation;
  if (held.below == nullptr) return StartTransfer(operation, std::move(held.transfer));
  if (operation.type == EXS_EVT_CLOSE && ClosesByHelper(Lane::kLast)) {
    return CloseByHelper(operation, held.below);
  }
  return StartBelow(operation, held.below);
}

void ExsSocket::OnCarriedEnded(Operation& operation, Way way, const CarriedEnd& ended) {
  std::vector<Told> over;
  const auto end = [&](Operation& each, const exs_event_t& event) {
    Unlink(each);
    over.emplace_back(each, event);
  };
  std::shared_ptr<Carried> last;
  {
    const std::lock_guard lock(mutex_);
    Line& line = LineOf(way);
    last = std::move(line.carried);
    line.of = nullptr;
    const int error = closing_ && ended.ours ? ECANCELED : ended.error;
    end(operation, Finished(operation, error, ended.bytes, ended.flags));
    while (!line.held.empty() && line.carried == nullptr) {
      Held next = std::move(line.held.front());
      line.held.pop_front();
      Operation& started = *next.operation;
      const bool drops = aborts_ && way == Way::kSending && started.type != EXS_EVT_CLOSE;
      int failed = drops ? ECANCELED : Start(std::move(next));
      if (closing_ && (failed == EPIPE || failed == ECONNABORTED)) failed = ECANCELED;
      if (failed != 0) end(started, Finished(started, failed, 0, 0));
    }
    if (LineOf(Way::kSending).carried == nullptr && abandoned_.has_value()) {
      Library::Current()->CloseInBackground(socket_, *std::exchange(abandoned_, std::nullopt));
    }
  }
  for (const Told& each : over) each.Announce();
}

void ExsSocket::StopSending() {
  const std::lock_guard lock(mutex_);
  aborts_ = true;
  if (const auto& carried = LineOf(Way::kSending).carried; carried != nullptr) carried->Stop(true);
}

// --- in one piece --------------------------------------------------------------------------------

// With the lock.
void ExsSocket::ReturnPins(Operation& operation) {
  const uint64_t bytes = std::exchange(operation.pinned, 0);
  if (bytes == 0) return;
  const bool receives = operation.type == EXS_EVT_RECV || operation.type == EXS_EVT_RECVMSG;
  LineOf(receives ? Way::kReceiving : Way::kSending).pinned -= bytes;
  Library::Current()->pins().Return(bytes);
}

namespace {

// As much of a receive as may end it, where that is less than all.
void Shorten(std::vector<Part>& parts) {
  uint64_t left = Carried::kPinnedMax;
  size_t kept = 0;
  for (; kept < parts.size() && left > 0; ++kept) {
    Part& part = parts[kept];
    if (part.base == nullptr) continue;
    part.length = std::min(part.length, left);
    left -= part.length;
  }
  parts.resize(kept);
}

SendFlags FlagsOfSend(const Transfer& transfer) {
  return transfer.urgent ? SendFlags::kUrgent : SendFlags::kNone;
}

RecvFlags FlagsOfReceive(const Transfer& transfer) {
  return transfer.wait_all ? RecvFlags::kWaitAll : RecvFlags::kNone;
}

absl::StatusOr<OpId> PostSlices(Socket& socket, const Transfer& transfer,
                                const std::vector<Slice>& slices, const OpArgs& args) {
  if (transfer.way == Way::kSending) {
    const SendFlags flags = FlagsOfSend(transfer);
    return slices.size() == 1 ? socket.Send(slices[0], flags, args)
                              : socket.SendV(slices, flags, args);
  }
  const RecvFlags flags = FlagsOfReceive(transfer);
  return slices.size() == 1 ? socket.Recv(slices[0], flags, args)
                            : socket.RecvV(slices, flags, args);
}

absl::StatusOr<OpId> PostCopied(Socket& socket, const Transfer& transfer, const OpArgs& args) {
  const Part& part = transfer.parts[0];
  const absl::Span<std::byte> bytes(part.base + part.offset, part.length);
  if (transfer.way == Way::kSending) return socket.SendCopy(bytes, FlagsOfSend(transfer), args);
  return socket.RecvCopy(bytes, FlagsOfReceive(transfer), args);
}

}  // namespace

// With the lock. False: it has to be carried out in pieces.
bool ExsSocket::PostWhole(Operation& operation, Transfer& transfer, int* error) {
  const bool receives = transfer.way == Way::kReceiving;
  const auto has_bytes = [](const Part& part) { return part.length > 0; };
  const bool empty = std::ranges::none_of(transfer.parts, has_bytes);
  if (receives && (transfer.peeks || empty || ahead_.size() > 0)) return false;
  if (receives && !transfer.wait_all) Shorten(transfer.parts);
  uint64_t wanted = 0;
  for (const Part& part : transfer.parts) {
    if (part.file.valid()) return false;
    if (part.base != nullptr) wanted += part.length;
  }
  const auto post_copied = [&](Socket& below, const OpArgs& args) {
    return PostCopied(below, transfer, args);
  };
  const bool single = transfer.parts.size() == 1 && wanted > 0;
  if (receives && single && transfer.copies) {
    *error = StartBelow(operation, post_copied);
    return true;
  }
  const uint64_t room = kPinnedMax - LineOf(transfer.way).pinned;
  if (wanted > std::min(Carried::kPinnedMax, room)) return false;
  if (single && wanted < kDefaultThreshold) {
    *error = StartBelow(operation, post_copied);
    if (*error != EAGAIN) return true;
  }
  std::vector<Region> regions;  // until it is posted; then the slices keep them
  std::vector<Slice> slices;
  if (!Pin(operation, transfer, &regions, &slices)) {
    register_failures_.fetch_add(1, std::memory_order_relaxed);
    transfer.copies = true;
    if (!single || transfer.way == Way::kSending) return false;
    *error = StartBelow(operation, post_copied);
    return true;
  }
  *error = StartBelow(operation, [&](Socket& below, const OpArgs& args) {
    return PostSlices(below, transfer, slices, args);
  });
  return true;
}

// With the lock: what nobody registered, for the time of the operation.
bool ExsSocket::Pin(Operation& operation, const Transfer& transfer, std::vector<Region>* regions,
                    std::vector<Slice>* slices) {
  Library& library = *Library::Current();
  for (const Part& part : transfer.parts) {
    slices->push_back(part.slice);
    if (part.base == nullptr) continue;
    absl::StatusOr<Region> made = library.pins().Take(library.context(), transfer.way,
                                                      absl::MakeSpan(part.base, part.length));
    if (!made.ok()) {
      ReturnPins(operation);
      return false;
    }
    operation.pinned += part.length;
    LineOf(transfer.way).pinned += part.length;
    slices->back() = made->slice();
    regions->push_back(*std::move(made));
  }
  return true;
}

}  // namespace esdp::exs
