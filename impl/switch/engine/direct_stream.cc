#include "impl/switch/engine/direct_stream.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "esdp/status.h"
#include "impl/switch/engine/engine.h"
#include "impl/switch/engine/inside.h"

namespace esdp::switching {
namespace {

// Counts a call.
class Counted {
 public:
  Counted(std::atomic<int>& count, bool counts) : count_(count), counts_(counts ? 1 : 0) {
    if (counts_ > 0) count_.fetch_add(1);
  }
  ~Counted() {
    if (counts_ > 0) count_.fetch_sub(1);
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>& count_;
  const int counts_;
};

Moved Failed(int error) { return {.bytes = -1, .error = error}; }

// The pieces of a message as a Stream takes them, few of them without an allocation.
template <typename Byte>
class Pieces {
 public:
  explicit Pieces(const msghdr& message) {
    const std::span pieces(message.msg_iov, message.msg_iovlen);
    if (pieces.size() > few_.size()) many_.resize(pieces.size());
    const std::span<absl::Span<Byte>> made = pieces.size() > few_.size()
                                                 ? std::span<absl::Span<Byte>>(many_)
                                                 : std::span(few_).first(pieces.size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      valid_ = valid_ && (pieces[i].iov_base != nullptr || pieces[i].iov_len == 0);
      made[i] = absl::MakeSpan(static_cast<Byte*>(pieces[i].iov_base), pieces[i].iov_len);
      bytes_ += pieces[i].iov_len;
    }
    made_ = {made.data(), made.size()};
  }
  bool valid() const { return valid_; }
  size_t bytes() const { return bytes_; }
  absl::Span<const absl::Span<Byte>> get() const { return made_; }

 private:
  std::array<absl::Span<Byte>, 8> few_;
  std::vector<absl::Span<Byte>> many_;
  absl::Span<const absl::Span<Byte>> made_;
  size_t bytes_ = 0;
  bool valid_ = true;
};

// What a call ends with that has moved nothing, and leaves the connection as it is; 0: it has failed.
int ErrnoOfWait(const absl::Status& status) {
  switch (KindOf(status)) {
    case ErrorKind::kWouldBlock:
    case ErrorKind::kDeadlineExceeded:
      return EAGAIN;
    case ErrorKind::kSignal:
      return EINTR;
    case ErrorKind::kMemory:
      return ENOBUFS;
    default:
      return 0;
  }
}

constexpr size_t kMostPieces = 1024;  // IOV_MAX
// A move costs as much as a connection does. What it spares of each call is what it spares of so many
// bytes.
constexpr uint64_t kMovesAfter = 64 * 1024;
constexpr uint64_t kWorthOfCall = 1024;

}  // namespace

DirectStream::DirectStream(Context& context, Stream stream, Descriptor hidden, uint32_t place,
                           const OpArgs& on_shutdown, const std::optional<OpArgs>& on_move)
    : context_(context),
      stream_(std::move(stream)),
      place_(place),
      on_shutdown_(on_shutdown),
      on_move_(on_move),
      may_move_(on_move.has_value()),
      hidden_(std::move(hidden)) {
  stream_.SetEdges(false);
}

void DirectStream::Count(std::atomic<uint64_t>& direction, size_t bytes) {
  direction.fetch_add(bytes, std::memory_order_relaxed);
  if (!may_move_.load(std::memory_order_relaxed)) return;
  const uint64_t worth = bytes + kWorthOfCall;
  if (worth_of_move_.fetch_add(worth, std::memory_order_relaxed) + worth < kMovesAfter) return;
  if (may_move_.exchange(false)) (void)stream_.socket().Suspend(*on_move_);
}

absl::Time DirectStream::DeadlineOf(absl::Duration time) const {
  return time > absl::ZeroDuration() ? context_.After(time) : absl::InfiniteFuture();
}

void DirectStream::SetTimes(absl::Duration receive, absl::Duration send) {
  receive_ns_.store(absl::ToInt64Nanoseconds(receive), std::memory_order_relaxed);
  send_ns_.store(absl::ToInt64Nanoseconds(send), std::memory_order_relaxed);
}

void DirectStream::TellStatus() {
  Status().Change(place_, [&](StatusRecord& record, StatusHeader& all) {
    all.sdp_sent += sent() - record.sdp_sent;
    all.sdp_received += received() - record.sdp_received;
    record.sdp_sent = sent();
    record.sdp_received = received();
  });
}

// --- receiving -----------------------------------------------------------------------------------

Moved DirectStream::Receive(msghdr& message, int flags, bool waits) {
  const Inside call;
  if (!call.entered()) return Failed(EAGAIN);
  if ((flags & MSG_ERRQUEUE) != 0) return Failed(EAGAIN);
  if ((flags & MSG_OOB) != 0) return ReceiveUrgent(message, flags);
  if (message.msg_iovlen > kMostPieces) return Failed(EMSGSIZE);
  const Pieces<std::byte> pieces(message);
  const bool discards = (flags & MSG_TRUNC) != 0;
  if (!pieces.valid() && !discards) return Failed(EFAULT);
  message.msg_flags = 0;
  message.msg_controllen = 0;
  message.msg_namelen = 0;
  if (pieces.bytes() == 0) return {};
  ReadArgs args = {.peek = (flags & MSG_PEEK) != 0, .wait = waits && (flags & MSG_DONTWAIT) == 0};
  if (args.wait) {
    if ((flags & MSG_WAITALL) != 0 && !args.peek) args.min = pieces.bytes();
    args.deadline = DeadlineOf(absl::Nanoseconds(receive_ns_.load(std::memory_order_relaxed)));
  }
  const Counted waiting(readers_waiting_, args.wait);
  if (args.wait && closed_) return Failed(Moved::kNotDirect);
  if (input_shut_) args.wait = false;
  const absl::StatusOr<size_t> read =
      discards ? Discard(pieces.bytes(), args) : stream_.ReadV(pieces.get(), args);
  if (!read.ok() && closed_) return Failed(Moved::kNotDirect);
  if (!read.ok() && input_shut_) return {};
  if (!read.ok()) return FailedReceive(read.status());
  if (!args.peek) Count(received_, *read);
  return {.bytes = static_cast<ssize_t>(*read)};
}

bool DirectStream::SendReadersAway() {
  if (readers_waiting_ == 0) return false;
  (void)stream_.socket().CancelAll(Direction::kReceive);
  return true;
}

absl::StatusOr<size_t> DirectStream::Discard(size_t bytes, ReadArgs args) {
  std::array<std::byte, 16384> scratch;
  const size_t least = args.min;
  const bool waits = args.wait;
  size_t done = 0;
  while (done < bytes) {
    const size_t now = std::min(bytes - done, scratch.size());
    args.wait = waits && (done == 0 || done < least);
    args.min = std::clamp<size_t>(least - std::min(least, done), 1, now);
    const absl::StatusOr<size_t> read = stream_.Read(absl::MakeSpan(scratch).first(now), args);
    if (!read.ok() && done == 0) return read.status();
    done += read.value_or(0);
    if (read.value_or(0) < now || args.peek) break;
  }
  return done;
}

// A reset is told once, and the end from there on.
Moved DirectStream::FailedReceive(const absl::Status& status) {
  if (const int error = ErrnoOfWait(status); error != 0) return Failed(error);
  if (KindOf(status) == ErrorKind::kShutDown) return {};
  if (failure_told_.exchange(true)) return {};
  return Failed(ECONNRESET);
}

// No length is none: the byte is taken, and told as cut off.
Moved DirectStream::ReceiveUrgent(msghdr& message, int flags) {
  const std::span pieces(message.msg_iov, message.msg_iovlen);
  const auto piece = std::find_if(pieces.begin(), pieces.end(),
                                  [](const iovec& each) { return each.iov_len > 0; });
  const absl::StatusOr<std::byte> read = stream_.ReadUrgent((flags & MSG_PEEK) != 0);
  message.msg_controllen = 0;
  message.msg_namelen = 0;
  if (!read.ok()) {
    if (KindOf(read.status()) != ErrorKind::kWouldBlock) return Failed(EINVAL);
    const bool comes = !input_shut_.load(std::memory_order_relaxed) && !peer_ended();
    return comes ? Failed(EAGAIN) : Moved{};
  }
  message.msg_flags = MSG_OOB;
  if ((flags & MSG_PEEK) == 0) received_.fetch_add(1, std::memory_order_relaxed);
  if (piece == pieces.end()) {
    message.msg_flags |= MSG_TRUNC;
    return {};
  }
  if ((flags & MSG_TRUNC) == 0) {
    if (piece->iov_base == nullptr) return Failed(EFAULT);
    *static_cast<std::byte*>(piece->iov_base) = *read;
  }
  return {.bytes = 1};
}

// A byte may come between the look and the read, which then ends before it.
Moved DirectStream::ReceiveToMark(void* to, size_t room, bool& urgent) {
  const Inside call;
  if (!call.entered()) return Failed(EAGAIN);
  bool looked = false;
  for (;;) {
    urgent = stream_.AtUrgentMark().value_or(false);
    const ReadArgs args = {.wait = false, .until_mark = !urgent};
    const auto memory = absl::MakeSpan(static_cast<std::byte*>(to), urgent ? 1 : room);
    const absl::StatusOr<size_t> read = stream_.Read(memory, args);
    if (read.ok()) {
      Count(received_, *read);
      return {.bytes = static_cast<ssize_t>(*read)};
    }
    if (!std::exchange(looked, true)) continue;
    return input_shut_ ? Moved{} : FailedReceive(read.status());
  }
}

Moved DirectStream::AtMark() {
  const Inside call;
  if (!call.entered()) return {};
  return {.bytes = stream_.AtUrgentMark().value_or(false) ? 1 : 0};
}

void DirectStream::SetUrgentInLine(bool in_line) {
  if (urgent_in_line_.exchange(in_line) == in_line) return;
  StreamOptions options = stream_.options();
  options.urgent = in_line ? UrgentBytes::kInLine : UrgentBytes::kApart;
  (void)stream_.SetOptions(options);
}

Moved DirectStream::Unread() {
  if (stream_.readiness().urgent) (void)AtMark();  // what is before it counts
  return {.bytes = static_cast<ssize_t>(stream_.readiness().bytes)};
}

// --- sending -------------------------------------------------------------------------------------

Moved DirectStream::Send(const msghdr& message, int flags, bool waits) {
  const Inside call;
  if (!call.entered()) return Failed(EAGAIN);
  if (message.msg_controllen != 0) return Failed(EINVAL);
  if (message.msg_iovlen > kMostPieces) return Failed(EMSGSIZE);
  const Pieces<const std::byte> pieces(message);
  if (!pieces.valid()) return Failed(EFAULT);
  if (output_shut_.load(std::memory_order_relaxed)) {
    return FailedSend(absl::FailedPreconditionError("shut"), flags);
  }
  if (pieces.bytes() == 0) return {};
  WriteArgs args = {.wait = waits && (flags & MSG_DONTWAIT) == 0, .urgent = (flags & MSG_OOB) != 0};
  if (args.wait) {
    args.deadline = DeadlineOf(absl::Nanoseconds(send_ns_.load(std::memory_order_relaxed)));
  }
  const absl::StatusOr<size_t> written = stream_.WriteV(pieces.get(), args);
  if (!written.ok()) return FailedSend(written.status(), flags);
  Count(sent_, *written);
  return {.bytes = static_cast<ssize_t>(*written)};
}

Moved DirectStream::FailedSend(const absl::Status& status, int flags) {
  if (const int error = ErrnoOfWait(status); error != 0) return Failed(error);
  const bool shut = output_shut_.load(std::memory_order_relaxed);
  if (!shut && !failure_told_.exchange(true)) return Failed(ECONNRESET);
  if ((flags & MSG_NOSIGNAL) == 0) (void)pthread_kill(pthread_self(), SIGPIPE);
  return Failed(EPIPE);
}

int DirectStream::Shutdown(int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return EINVAL;
  if (how != SHUT_WR) input_shut_ = true;
  if (how == SHUT_RD || output_shut_.exchange(true)) return 0;
  const bool posted = stream_.socket().Shutdown(on_shutdown_).ok();
  (void)stream_.ShutdownWrite();  // what is shown
  return posted ? 0 : ENOTCONN;
}

// --- what the number shows -----------------------------------------------------------------------

void DirectStream::Show(Descriptor shown) {
  const std::lock_guard lock(mutex_);
  if (!hidden_.valid() || !stream_.ShowIn(shown.get(), hidden_.get()).ok()) return;
  (void)shown.Release();
  (void)hidden_.Release();
}

DirectStream::Ends DirectStream::StopShowing() {
  const std::lock_guard lock(mutex_);
  if (hidden_.valid()) return {.hidden = std::move(hidden_)};
  if (const auto ends = stream_.StopShowing(); ends.has_value()) {
    return {.hidden = Descriptor(ends->second), .shown = Descriptor(ends->first)};
  }
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) return {};
  return {.hidden = Descriptor(pair[1]), .fresh = Descriptor(pair[0])};
}

// The hidden end stays: who is sent away from a read, and looks under the number before that is
// closed, is to meet no end there.
void DirectStream::CloseShown() {
  const std::lock_guard lock(mutex_);
  const auto ends = stream_.StopShowing();
  if (!ends.has_value()) return;
  hidden_ = Descriptor(ends->second);
  Descriptor(ends->first).Reset();
}

int DirectStream::ReadinessDescriptor() {
  stream_.SetEdges(true);
  return stream_.fd().value_or(-1);
}

// --- by id ---------------------------------------------------------------------------------------

std::shared_ptr<DirectStream> DirectStreams::Find(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second;
}

void DirectStreams::Add(uint64_t id, std::shared_ptr<DirectStream> stream) {
  const std::lock_guard lock(mutex_);
  streams_.emplace(id, std::move(stream));
  count_ = streams_.size();
}

std::shared_ptr<DirectStream> DirectStreams::Take(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(id);
  if (found == streams_.end()) return nullptr;
  std::shared_ptr<DirectStream> taken = std::move(found->second);
  streams_.erase(found);
  count_ = streams_.size();
  return taken;
}

}  // namespace esdp::switching
