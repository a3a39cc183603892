#include "impl/sockets/errors.h"

#include <cerrno>
#include <charconv>
#include <cstring>

#include "absl/strings/cord.h"
#include "absl/types/optional.h"
#include "impl/base/made_once.h"
#include "impl/base/status.h"

namespace esdp {
namespace sockets {
namespace {

constexpr char kDetailType[] = "esdp.Detail";

struct Row {
  ErrorKind kind;
  absl::StatusCode code;
  int32_t sys_errno;
  const char* name;
  const char* advice;  // empty where the text alone says it
};

using absl::StatusCode;

constexpr Row kRows[] = {
    {ErrorKind::kNone, StatusCode::kOk, 0, "none", ""},
    {ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument, EINVAL, "invalid argument", ""},
    {ErrorKind::kBadHandle, StatusCode::kNotFound, EBADF, "bad handle",
     "use a handle that is open"},
    {ErrorKind::kBadRange, StatusCode::kOutOfRange, EFAULT, "bad range",
     "take a slice inside the region"},
    {ErrorKind::kWrongState, StatusCode::kFailedPrecondition, ENOTCONN, "wrong state", ""},
    {ErrorKind::kShutDown, StatusCode::kFailedPrecondition, EPIPE, "shut down",
     "open a new socket to go on"},
    {ErrorKind::kBusy, StatusCode::kFailedPrecondition, EBUSY, "busy",
     "wait for the events of the operations that use it, or cancel them"},
    {ErrorKind::kAfterFork, StatusCode::kFailedPrecondition, EPERM, "used after fork",
     "open a Context in the child"},
    {ErrorKind::kUnsupported, StatusCode::kUnimplemented, EOPNOTSUPP, "unsupported", ""},
    {ErrorKind::kQueueFull, StatusCode::kResourceExhausted, EAGAIN, "queue full",
     "dequeue events and post again, or make the queue deeper"},
    {ErrorKind::kSocketWindow, StatusCode::kResourceExhausted, EAGAIN, "socket window full",
     "dequeue events and post again, or enlarge bounce_pool_bytes"},
    {ErrorKind::kWouldBlock, StatusCode::kResourceExhausted, EAGAIN, "would block",
     "call again once it is ready, or let the call wait"},
    {ErrorKind::kMemory, StatusCode::kResourceExhausted, ENOMEM, "out of memory", ""},
    {ErrorKind::kCancelled, StatusCode::kCancelled, ECANCELED, "cancelled",
     "somebody asked for it"},
    {ErrorKind::kSignal, StatusCode::kCancelled, EINTR, "interrupted by a signal", "call again"},
    {ErrorKind::kDeadlineExceeded, StatusCode::kDeadlineExceeded, ETIMEDOUT, "deadline exceeded",
     "allow more time, or look at what the peer does"},
    {ErrorKind::kLocalAbort, StatusCode::kAborted, ECONNABORTED, "aborted by this side",
     "open a new socket to go on"},
    {ErrorKind::kAddressInUse, StatusCode::kAlreadyExists, EADDRINUSE, "address in use",
     "choose another port, or 0 for any free one"},
    {ErrorKind::kRefused, StatusCode::kUnavailable, ECONNREFUSED, "connection refused",
     "check that the server listens at this address"},
    {ErrorKind::kRejected, StatusCode::kUnavailable, ECONNREFUSED, "connection rejected",
     "the server is there but takes no connection now: check its log"},
    {ErrorKind::kUnreachable, StatusCode::kUnavailable, EHOSTUNREACH, "unreachable",
     "check the address and the route"},
    {ErrorKind::kHandshakeRefused, StatusCode::kDataLoss, EPROTO, "handshake refused",
     "check that the peer speaks SDP version 2"},
    {ErrorKind::kPeerReset, StatusCode::kAborted, ECONNRESET, "reset by the peer",
     "connect again if the peer is still there"},
    {ErrorKind::kPeerSilent, StatusCode::kUnavailable, ETIMEDOUT, "peer silent",
     "check the peer and the network"},
    {ErrorKind::kPeerProtocol, StatusCode::kDataLoss, EPROTO, "protocol error of the peer",
     "the connection has ended; check the peer's implementation"},
    {ErrorKind::kRemoteAccess, StatusCode::kPermissionDenied, EACCES, "remote access refused",
     "the connection has ended; no memory was touched"},
    {ErrorKind::kFabric, StatusCode::kUnavailable, ENODEV, "fabric failed",
     "open a new socket, or a new Context if that fails too"},
    {ErrorKind::kInternal, StatusCode::kInternal, EIO, "internal fault", "please report this"},
    {ErrorKind::kFile, StatusCode::kDataLoss, EIO, "the file failed",
     "check the file and its medium; Event::file_offset tells where"},
    {ErrorKind::kNoSpace, StatusCode::kResourceExhausted, ENOSPC, "no space for the file",
     "free some, and go on behind Event::file_offset"},
};

const Row& RowOf(ErrorKind kind) {
  const auto index = static_cast<size_t>(kind);
  return kRows[index < std::size(kRows) ? index : std::size(kRows) - 1];
}

constexpr bool RowsAreInOrder() {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (static_cast<size_t>(kRows[i].kind) != i) return false;
  }
  return std::size(kRows) == static_cast<size_t>(ErrorKind::kNoSpace) + 1;
}
static_assert(RowsAreInOrder());

absl::Status WithText(ErrorKind kind, std::string_view text) {
  const Row& row = RowOf(kind);
  std::string whole(text.empty() ? row.name : text);
  if (row.advice[0] != '\0') whole += std::string(": ") + row.advice;
  absl::Status status(row.code, whole);
  // In digits: whoever prints the status prints this too.
  status.SetPayload(kDetailType, absl::Cord(std::to_string(static_cast<int>(kind)) + " " +
                                            std::to_string(row.sys_errno)));
  return status;
}

// Made before memory ends.
constinit MadeOnce<const absl::Status> no_memory;

}  // namespace

absl::Status MakeError(ErrorKind kind, std::string_view text) {
  return OrNoMemory([&] { return WithText(kind, text); });
}

absl::Status NoMemory() {
  return no_memory.Get([] {
    return std::make_unique<const absl::Status>(
        WithText(ErrorKind::kMemory, "the system has no memory left"));
  });
}

absl::Status ClosedHandle() {
  return MakeError(ErrorKind::kShutDown, "Close was called on this socket");
}

std::string CauseOf(const absl::Status& status) {
  std::string text(FromAbsl(status.message()));
  const std::string advice = std::string(": ") + RowOf(DetailOf(status).kind).advice;
  if (text.ends_with(advice)) text.resize(text.size() - advice.size());
  return text;
}

absl::StatusCode CodeOf(ErrorKind kind) { return RowOf(kind).code; }
int32_t ErrnoOf(ErrorKind kind) { return RowOf(kind).sys_errno; }

ErrorKind KindOfEnding(provider::EndReason ending) {
  switch (ending) {
    case provider::EndReason::kOk:
      return ErrorKind::kNone;
    case provider::EndReason::kCancelled:
      return ErrorKind::kCancelled;
    case provider::EndReason::kDeadlineExceeded:
    case provider::EndReason::kConnectTimedOut:
      return ErrorKind::kDeadlineExceeded;
    case provider::EndReason::kShutDown:
      return ErrorKind::kShutDown;
    case provider::EndReason::kTooLate:  // the front end says what it knows
    case provider::EndReason::kLocalAbort:
      return ErrorKind::kLocalAbort;
    case provider::EndReason::kRefused:
      return ErrorKind::kRefused;
    case provider::EndReason::kRejected:
      return ErrorKind::kRejected;
    case provider::EndReason::kUnreachable:
      return ErrorKind::kUnreachable;
    case provider::EndReason::kHandshakeRefused:
      return ErrorKind::kHandshakeRefused;
    case provider::EndReason::kPeerReset:
      return ErrorKind::kPeerReset;
    case provider::EndReason::kPeerSilent:
      return ErrorKind::kPeerSilent;
    case provider::EndReason::kPeerProtocol:
      return ErrorKind::kPeerProtocol;
    case provider::EndReason::kRemoteAccess:
      return ErrorKind::kRemoteAccess;
    case provider::EndReason::kUnsupported:
      return ErrorKind::kUnsupported;
    case provider::EndReason::kFabricFailed:
      return ErrorKind::kFabric;
    case provider::EndReason::kNoMemory:
      return ErrorKind::kMemory;
    case provider::EndReason::kInternal:
      return ErrorKind::kInternal;
  }
  return ErrorKind::kInternal;
}

absl::Status StatusOf(const provider::Failure& failure) {
  const ErrorKind kind = KindOfEnding(failure.ending);
  return kind == ErrorKind::kNone ? absl::OkStatus() : MakeError(kind, failure.text);
}

absl::Status Adopt(const absl::Status& status) {
  if (status.ok() || DetailOf(status).kind != ErrorKind::kNone) return status;
  const auto kind = [&] {
    switch (status.code()) {
      case StatusCode::kInvalidArgument:
        return ErrorKind::kInvalidArgument;
      case StatusCode::kNotFound:
        return ErrorKind::kBadHandle;
      case StatusCode::kOutOfRange:
        return ErrorKind::kBadRange;
      case StatusCode::kAlreadyExists:
        return ErrorKind::kAddressInUse;
      case StatusCode::kResourceExhausted:
        return ErrorKind::kMemory;
      case StatusCode::kFailedPrecondition:
        return ErrorKind::kBusy;
      case StatusCode::kUnimplemented:
        return ErrorKind::kUnsupported;
      case StatusCode::kPermissionDenied:
        return ErrorKind::kRemoteAccess;
      case StatusCode::kUnavailable:
        return ErrorKind::kFabric;
      default:
        return ErrorKind::kInternal;
    }
  }();
  return MakeError(kind, FromAbsl(status.message()));
}

}  // namespace sockets

ErrorDetail DetailOf(const absl::Status& status) {
  const auto payload = status.GetPayload(sockets::kDetailType);
  if (!payload.has_value()) return {};
  const std::string digits(*payload);
  const char* const end = digits.data() + digits.size();
  uint16_t kind = 0;
  int32_t sys_errno = 0;
  const auto [blank, no_kind] = std::from_chars(digits.data(), end, kind);
  if (no_kind != std::errc() || blank == end || *blank != ' ') return {};
  const auto [rest, no_errno] = std::from_chars(blank + 1, end, sys_errno);
  if (no_errno != std::errc() || rest != end) return {};
  return {static_cast<ErrorKind>(kind), sys_errno};
}

const char* ToString(ErrorKind kind) { return sockets::RowOf(kind).name; }

}  // namespace esdp
