#include "impl/provider/session/requests.h"

#include <algorithm>
#include <new>
#include <optional>

#include "impl/base/status.h"
#include "impl/provider/regions.h"

namespace esdp::provider {
namespace {

constexpr uint64_t kPieceBytesMax = uint64_t{1} << 30;

sdp::Path ToCore(Path path) { return static_cast<sdp::Path>(path); }
sdp::CompleteAt ToCore(CompleteAt when) { return static_cast<sdp::CompleteAt>(when); }
sdp::ModeWish ToCore(ModeWish wish) { return static_cast<sdp::ModeWish>(wish); }
sdp::CancelMode ToCore(CancelMode mode) { return static_cast<sdp::CancelMode>(mode); }

static_assert(static_cast<int>(sdp::Path::kZeroCopy) == static_cast<int>(Path::kZeroCopy));
static_assert(static_cast<int>(sdp::CompleteAt::kDelivered) ==
              static_cast<int>(CompleteAt::kDelivered));
static_assert(static_cast<int>(sdp::CancelMode::kEndShort) ==
              static_cast<int>(CancelMode::kEndShort));
static_assert(static_cast<int>(sdp::CancelMode::kAbortConnection) ==
              static_cast<int>(CancelMode::kAbortConnection));

// What is wrong with the memory of a transfer; the front end has checked all of it.
const char* FaultOf(const Transfer& transfer) {
  if (transfer.awaits_urgent) return nullptr;
  if (transfer.pieces.empty()) return "a transfer without a piece";
  for (const Piece& piece : transfer.pieces) {
    if (piece.region == nullptr || !piece.region->Contains(piece.offset, piece.length)) {
      return "a transfer outside its registered region";
    }
    if (!transfer.is_send && !piece.region->local_write())
      return "a receive into a read-only region";
  }
  return nullptr;
}

}  // namespace

void Requests::Execute(const Request& request) {
  try {
    Carry(request);
  } catch (const std::bad_alloc&) {
    if (request.kind == Request::Kind::kAlarm) return Ring(request.tag);  // early, but not never
    Session* session = connections_.Find(request.connection);
    if (session != nullptr) driver_.Condemn(*session);
  }
}

void Requests::Carry(const Request& request) {
  if (request.kind == Request::Kind::kAlarm) {
    return driver_.timers().SetAlarm(request.tag, request.at);
  }
  Session* session = connections_.Find(request.connection);
  if (session != nullptr && HasEnded(session->visibility)) session = nullptr;
  if (session != nullptr) rendezvous_.ReleaseBacklogSlot(*session);
  if (request.kind == Request::Kind::kTransfer) return Begin(request, session);
  if (session == nullptr) return;
  switch (request.kind) {
    case Request::Kind::kTransfer:
    case Request::Kind::kTaken:
    case Request::Kind::kAlarm:
      return;
    case Request::Kind::kCancel:
      return Cancel(request, *session);
    case Request::Kind::kModes:
      if (session->attempt) {  // another fabric may take it over
        session->attempt->options.send_mode = request.send_mode;
        session->attempt->options.receive_mode = request.receive_mode;
      }
      return driver_.Feed(*session,
                          sdp::AskMode{ToCore(request.send_mode), ToCore(request.receive_mode)});
    case Request::Kind::kReadiness:
      if (session->attempt) session->attempt->options.watch_readiness = true;
      return driver_.Feed(*session, sdp::WatchReadiness{});
    case Request::Kind::kShutdown:
      return Shutdown(*session);
    case Request::Kind::kSuspend:
      return Suspend(*session, request);
    case Request::Kind::kCancelSuspend:
      return CancelSuspend(*session, request);
    case Request::Kind::kClose:
      return Close(*session, false);
    case Request::Kind::kAbort:
      return Close(*session, true);
  }
}

bool Requests::TrySendImmediate(ConnectionId connection, ImmediateSend& send) {
  Session* session = connections_.Find(connection);
  if (session == nullptr || HasEnded(session->visibility) || send.length > kPieceBytesMax)
    return false;
  sdp::Input input{std::in_place_type<sdp::AskSend>};
  auto& ask = *std::get_if<sdp::AskSend>(&input);
  ask.piece.length = static_cast<uint32_t>(send.length);
  ask.path = sdp::Path::kCopy;
  ask.sends = static_cast<uint32_t>(send.parts.size());
  if (!session->core.MaySendImmediate(ask)) return false;
  rendezvous_.ReleaseBacklogSlot(*session);
  const std::optional<uint64_t> sent = driver_.SendImmediate(*session, input, send.parts);
  if (!sent.has_value()) return false;
  send.stream_offset = *sent;
  observer_.OnImmediateSent(send);
  return true;
}

void Requests::Begin(const Request& request, Session* session) {
  Transfer& transfer = *request.transfer;
  if (session == nullptr) {
    TransferResult late;
    late.ending = EndReason::kTooLate;
    return observer_.OnTransferFinished(request.connection, transfer, late);
  }
  if (const char* fault = FaultOf(transfer)) {
    return Refuse(request.connection, transfer, {EndReason::kInternal, fault});
  }
  std::optional<sdp::OperationId> operation;
  try {
    operation =
        driver_.operations().Insert({Operation::Kind::kTransfer, request.connection, &transfer});
  } catch (const std::bad_alloc&) {
    return Refuse(request.connection, transfer, {EndReason::kNoMemory, "no memory"});
  }
  if (!operation) {
    return Refuse(request.connection, transfer,
                  {EndReason::kInternal, "too many operations at once"});
  }
  transfer.provider_slot = static_cast<uint32_t>(*operation);
  for (const Piece& piece : transfer.pieces) piece.region->AddOperation();
  if (transfer.deadline != kTimeInfinite)
    driver_.timers().SetDeadline(*operation, transfer.deadline);
  if (transfer.awaits_urgent) return driver_.Feed(*session, sdp::AskUrgent{*operation});
  AskPieces(*session, transfer, *operation);
}

// One input for each part of a piece that lies in one chunk. The operation may end with any of
// them, and then its memory is the front end's again.
void Requests::AskPieces(Session& session, Transfer& transfer, sdp::OperationId operation) {
  const Piece first = transfer.pieces[0];
  if (transfer.pieces.size() == 1 && first.length <= kPieceBytesMax &&
      first.region->ContiguousFrom(first.offset, first.length) == first.length) {
    const auto length = static_cast<uint32_t>(first.length);
    return AskPiece(session, transfer, *first.region, {operation, length, 0}, false);
  }
  uint64_t left = 0;
  for (const Piece& piece : transfer.pieces) left += piece.length;
  if (left == 0) {
    return AskPiece(session, transfer, *transfer.pieces[0].region, {operation, 0, 0}, false);
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < transfer.pieces.size(); ++i) {
    const Piece piece = transfer.pieces[i];
    for (uint64_t inside = 0; inside < piece.length;) {
      const uint64_t most = std::min(piece.length - inside, kPieceBytesMax);
      const uint64_t length = piece.region->ContiguousFrom(piece.offset + inside, most);
      inside += length;
      left -= length;
      AskPiece(session, transfer, *piece.region, {operation, static_cast<uint32_t>(length), offset},
               left > 0);
      offset += length;
      if (left == 0 || driver_.operations().Find(operation) == nullptr) return;
    }
  }
}

void Requests::AskPiece(Session& session, const Transfer& transfer, const MemoryRegion& region,
                        const sdp::OperationRange& piece, bool more) {
  const bool exposable = region.exposure() != Exposure::kNone;
  if (transfer.is_send) {
    sdp::Input input{std::in_place_type<sdp::AskSend>};
    *std::get_if<sdp::AskSend>(&input) = {.piece = piece,
                                          .more = more,
                                          .exposable = exposable,
                                          .copyable = region.reachable(),
                                          .path = ToCore(transfer.path),
                                          .complete_at = ToCore(transfer.complete_at),
                                          .zcopy_min = transfer.zcopy_min,
                                          .adaptive = transfer.adaptive,
                                          .urgent = transfer.urgent};
    driver_.Feed(session, input);
  } else {
    sdp::Input input{std::in_place_type<sdp::AskReceive>};
    *std::get_if<sdp::AskReceive>(&input) = {.piece = piece,
                                             .more = more,
                                             .wait_all = transfer.wait_all,
                                             .placeable = exposable,
                                             .shown = transfer.shown,
                                             .until_advert = transfer.until_advert,
                                             .path = ToCore(transfer.path),
                                             .zcopy_min = transfer.zcopy_min};
    driver_.Feed(session, input);
  }
}

void Requests::Cancel(const Request& request, Session& session) {
  if (request.transfer->tag.load(std::memory_order_relaxed) != request.tag) return;
  const sdp::OperationId operation{request.transfer->provider_slot};
  const Operation* found = driver_.operations().Find(operation);
  if (found == nullptr || found->transfer != request.transfer || found->connection != session.id)
    return;
  driver_.Feed(session,
               sdp::AskCancel{operation, ToCore(request.cancel_mode), sdp::Outcome::kCancelled});
}

void Requests::Expire(sdp::OperationId operation) {
  const Operation* found = driver_.operations().Find(operation);
  if (found == nullptr || found->transfer == nullptr) return;
  Session* session = connections_.Find(found->connection);
  if (session == nullptr || HasEnded(session->visibility)) return;
  driver_.Feed(*session, sdp::AskCancel{operation, ToCore(found->transfer->at_deadline),
                                        sdp::Outcome::kDeadlineExceeded});
}

void Requests::Shutdown(Session& session) {
  const auto operation = driver_.operations().Insert({Operation::Kind::kShutdown, session.id});
  if (operation) driver_.Feed(session, sdp::AskShutdown{*operation});
}

void Requests::Suspend(Session& session, const Request& request) {
  const absl::StatusOr<uint16_t> port = rendezvous_.ListenForReturn(session);
  if (!port.ok()) {
    return observer_.OnResumed(
        session.id, {EndReason::kFabricFailed, "no port for the peer to come back to: " +
                                                   std::string(FromAbsl(port.status().message()))});
  }
  const auto operation = driver_.operations().Insert({Operation::Kind::kSuspend, session.id});
  if (operation) {
    session.move = {*operation, request.tag};
    return driver_.Feed(session, sdp::AskSuspend{*operation, *port, request.at});
  }
  set_up_.StopReturn(session);
  observer_.OnResumed(session.id, {EndReason::kInternal, "too many operations at once"});
}

void Requests::CancelSuspend(Session& session, const Request& request) {
  if (!session.move || session.move->tag != request.tag) return;
  driver_.Feed(session, sdp::AskCancel{session.move->operation, ToCore(request.cancel_mode),
                                       sdp::Outcome::kCancelled});
}

void Requests::Close(Session& session, bool abort) {
  std::optional<sdp::OperationId> operation;
  try {
    operation = driver_.operations().Insert({Operation::Kind::kClose, session.id});
  } catch (const std::bad_alloc&) {
    return driver_.Condemn(session);
  }
  if (operation) driver_.Feed(session, sdp::AskClose{*operation, abort});
}

void Requests::Refuse(ConnectionId connection, Transfer& transfer, const Failure& failure) {
  TransferResult result;
  result.ending = failure.ending;
  result.failure = &failure;
  observer_.OnTransferFinished(connection, transfer, result);
}

}  // namespace esdp::provider
