#include "impl/sockets/context/context_state.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "impl/sockets/context/fork_epoch.h"
#include "impl/sockets/convert.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/queue/event_queue_state.h"
#include "impl/sockets/queue/event_text.h"
#include "impl/sockets/socket/socket_state.h"

namespace esdp::sockets {
namespace {

constexpr Duration kStopWait = std::chrono::milliseconds(500);

// SocketIds of one Context never mean a socket of another: each begins somewhere else.
uint64_t SocketsBegin() {
  static std::atomic<uint64_t> contexts{0};
  return contexts.fetch_add(1, std::memory_order_relaxed) << 40;
}
constexpr auto kPause = std::chrono::milliseconds(1);

}  // namespace

absl::StatusOr<std::shared_ptr<ContextState>> ContextState::Open(const ContextOptions& options,
                                                                 std::vector<Transport> transports,
                                                                 const MakeShard& make_shard,
                                                                 std::shared_ptr<LogLimit> log) {
  if (absl::Status status = SocketState::CheckOptions({.send_mode = options.send_mode,
                                                       .receive_mode = options.receive_mode,
                                                       .cancel_grace = options.cancel_grace});
      !status.ok()) {
    return status;
  }
  if (options.take_accepted_within <= absl::ZeroDuration()) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "take_accepted_within must be longer than 0; InfiniteDuration is for ever");
  }
  std::shared_ptr<ContextState> state(new ContextState(options));
  state->transports_ = std::move(transports);
  provider::ShardOptions wanted;
  wanted.progress = options.progress == Progress::kManual ? provider::Progress::kManual
                                                          : provider::Progress::kThread;
  wanted.thread_cpu = options.progress_cpu;
  wanted.spin = ToDuration(options.progress_spin);
  wanted.bounds = {.half_open = options.half_open_max,
                   .moving = options.moves_at_once_max,
                   .receive_growth = options.limits.receive_growth_max,
                   .connections = options.limits.connections_max,
                   .connections_of_address = options.limits.connections_per_address_max,
                   .accept_rate = options.limits.accept_rate,
                   .accept_burst = options.limits.accept_burst,
                   .spare_connections = options.limits.spare_connections_max};
  if (log->has_sink()) wanted.log = [log](const std::string& line) { log->Log(line); };
  state->log_ = std::move(log);
  auto shard = make_shard(*state, wanted);
  if (!shard.ok()) return Adopt(shard.status());
  state->shard_ = *std::move(shard);
  state->StartLog();
  state->virtual_time_ = state->shard_->virtual_time();
  state->manual_ = options.progress == Progress::kManual || state->virtual_time_;
  if (state->manual_) state->files_.threads.SetThreads(0);
  return state;
}

ContextState::ContextState(const ContextOptions& options)
    : options_(options),
      fork_epoch_(ForkEpoch()),
      last_socket_(SocketsBegin()),
      operations_(options.operations_max),
      untaken_(ToDuration(options.take_accepted_within)),
      bounce_pool_(options.bounce_pool_bytes),
      files_(options.limits.file_pool_max, options.limits.file_threads) {}

ContextState::~ContextState() = default;

absl::Status ContextState::Usable() const {
  if (is_of_parent()) {
    return MakeError(ErrorKind::kAfterFork, "the Context was opened before fork()");
  }
  if (stopped()) return MakeError(ErrorKind::kBadHandle, "the Context has been closed");
  return absl::OkStatus();
}

// Counted first: Stop sees this call, or this call sees that the Context has stopped.
ContextCall::ContextCall(const ContextState* context) : context_(context) {
  if (context_ == nullptr) {
    status_ = MakeError(ErrorKind::kBadHandle, "the Context handle is empty");
    return;
  }
  context_->calls_.fetch_add(1);
  if (ForkEpoch() == context_->fork_epoch_ && !context_->stopped()) [[likely]]
    return;
  status_ = context_->Usable();
}

ContextCall::~ContextCall() {
  if (context_ != nullptr) context_->calls_.fetch_sub(1);
}

// --- time ----------------------------------------------------------------------------------------

absl::Time ContextState::Now() const {
  if (!virtual_time_) return clock_.WallNow();
  const ContextCall call(this);
  if (!call.ok()) return clock_.WallNow();
  return absl::UnixEpoch() + absl::Nanoseconds(shard_->Now().time_since_epoch().count());
}

Time ContextState::ToShardTime(absl::Time deadline) const {
  if (deadline == absl::InfiniteFuture()) return kTimeInfinite;
  return AddSaturating(shard_->Now(), std::max(ToDuration(deadline - Now()), Duration(0)));
}

bool ContextState::Pause(Time deadline) {
  const ContextCall call(this);
  if (!call.ok() || shard_->Now() >= deadline) return false;
  if (!manual_) {
    // An end in between is seen after kPause at the latest.
    std::unique_lock lock(pause_mutex_);
    pausing_.fetch_add(1, std::memory_order_relaxed);
    ended_.wait_for(lock, kPause);
    pausing_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  if (shard_->Poll()) return true;
  if (virtual_time_) return shard_->Advance(deadline);
  (void)shard_->WaitForWork(std::min(deadline, AddSaturating(shard_->Now(), kPause)));
  return true;
}

// --- operations ----------------------------------------------------------------------------------

absl::StatusOr<Operation*> ContextState::NewOperation(EventType type, SocketId socket,
                                                      const OpArgs& args) {
  const std::shared_ptr<QueueState>& queue = QueueAccess::StateOf(args.queue);
  if (queue == nullptr || queue->closed() || &queue->context() != this) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "the event queue is empty, closed or of another Context");
  }
  if (!queue->Reserve()) {
    return MakeError(ErrorKind::kQueueFull, "every slot of the event queue is taken or promised");
  }
  Operation* operation = nullptr;
  try {
    operation = operations_.New(type, socket, queue,
                                [this](uint32_t capacity) { shard_->ReserveOperations(capacity); });
  } catch (const std::bad_alloc&) {
    queue->Unreserve();
    return NoMemory();
  }
  if (operation == nullptr) {
    queue->Unreserve();
    return OrNoMemory([&] {
      return MakeError(ErrorKind::kMemory, std::to_string(options_.operations_max) +
                                               " operations are outstanding, the Context's "
                                               "limit: dequeue events, or raise operations_max");
    });
  }
  operation->cookie = args.cookie;
  return operation;
}

void ContextState::Discard(Operation& operation) {
  operation.queue->Unreserve();
  if (operation.bounce.has_value()) {
    bounce_pool_.Give(*operation.bounce, operation.owner->bounce_share());
  }
  const std::shared_ptr<StreamState> owner = std::move(operation.owner);
  const std::shared_ptr<FileOperation> file = operations_.TakeFile(operation);
  operations_.Free(operation);
  if (owner != nullptr) owner->OnTransferGone();
}

void ContextState::Finish(Operation& operation, Event& event) {
  event.type = operation.type;
  event.flags |= kTerminal;
  event.cookie = operation.cookie;
  event.op = operation.id;
  event.socket = operation.socket;
  if (operation.has_alarm) {
    provider::Request request;
    request.kind = provider::Request::Kind::kAlarm;
    request.tag = static_cast<uint64_t>(operation.id);
    request.at = kTimeInfinite;
    shard_->Submit(request);
  }
  if (operation.bounce.has_value()) {
    bounce_pool_.Give(*operation.bounce, operation.owner->bounce_share());
  }
  const std::shared_ptr<StreamState> owner = std::move(operation.owner);
  const std::shared_ptr<FileOperation> file = operations_.TakeFile(operation);
  // Before the event: what it used is the application's with it.
  const std::shared_ptr<QueueState> queue = operations_.Free(operation);
  queue->Deliver(event);
  if (owner != nullptr) owner->OnTransferGone();
  if (pausing_.load(std::memory_order_relaxed) > 0) ended_.notify_all();
}

void ContextState::SetCause(SocketId socket, const absl::Status& status, Event& event) const try {
  const std::shared_ptr<SocketState> found = Find(socket);
  SetText(event, CauseOf(status), found == nullptr ? Address() : found->peer());
} catch (const std::bad_alloc&) {  // the kind has a text of its own
}

void ContextState::Finish(Operation& operation, const absl::Status& status, Event event) {
  event.code = status.code();
  event.kind = KindOf(status);
  if (event.sys_errno == 0) event.sys_errno = DetailOf(status).sys_errno;
  if (!status.ok()) SetCause(operation.socket, status, event);
  if (event.kind == ErrorKind::kCancelled || event.kind == ErrorKind::kDeadlineExceeded) {
    event.flags |= kCancelled;
  }
  if (event.kind == ErrorKind::kPeerReset) event.flags |= kPeerReset;
  Finish(operation, event);
}

// It may be over by now, so it has been marked with has_alarm while it was the caller's.
void ContextState::SetAlarm(OpId op, absl::Time deadline) { SetAlarmAt(op, ToShardTime(deadline)); }

void ContextState::SetAlarmAt(OpId op, Time deadline) {
  if (deadline == kTimeInfinite) return;
  provider::Request request;
  request.kind = provider::Request::Kind::kAlarm;
  request.tag = static_cast<uint64_t>(op);
  request.at = deadline;
  shard_->Submit(request);
}

// --- memory --------------------------------------------------------------------------------------

bool ContextState::is_of_parent() const { return ForkEpoch() != fork_epoch_; }

void ContextState::CountRegion(int count, int64_t bytes) {
  regions_.fetch_add(count, std::memory_order_relaxed);
  region_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

ContextStats ContextState::Stats() const {
  ContextStats stats;
  stats.regions = static_cast<uint32_t>(regions_.load(std::memory_order_relaxed));
  stats.region_bytes = static_cast<uint64_t>(region_bytes_.load(std::memory_order_relaxed));
  stats.operations = operations_.live();
  stats.operations_posted = operations_.posted();
  stats.bounce_bytes = bounce_pool_.in_use();
  stats.file_bytes_cached = files_.counts.cached.load(std::memory_order_relaxed);
  stats.file_bytes_read = files_.counts.read.load(std::memory_order_relaxed);
  stats.file_bytes_written = files_.counts.written.load(std::memory_order_relaxed);
  stats.accepts_given_up = accepts_given_up_.load(std::memory_order_relaxed);
  stats.ended_before_accept = ended_before_accept_.load(std::memory_order_relaxed);
  const auto rejected = [this](provider::Rejection reason) {
    return rejected_[static_cast<size_t>(reason)].load(std::memory_order_relaxed);
  };
  stats.rejected_backlog = rejected(provider::Rejection::kBacklog);
  stats.rejected_half_open = rejected(provider::Rejection::kHalfOpen);
  stats.rejected_connections = rejected(provider::Rejection::kConnections);
  stats.rejected_address = rejected(provider::Rejection::kAddress);
  stats.rejected_rate = rejected(provider::Rejection::kRate);
  const std::lock_guard lock(mutex_);
  stats.sockets = static_cast<uint32_t>(sockets_.size());
  stats.queues = static_cast<uint32_t>(queues_.size());
  return stats;
}

// --- the end -------------------------------------------------------------------------------------

void ContextState::Stop() {
  if (!Usable().ok()) {
    // After a fork the shard is the parent's: leave everything as it is.
    if (!stopped() && shard_ != nullptr) {
      (void)shard_.release();
      files_.threads.Forget();
    }
    return;
  }
  if (stopping_.exchange(true)) return;
  try {
    for (const auto& socket : Sockets()) socket->Abort();
  } catch (const std::bad_alloc&) {  // the end of the shard aborts them
  }
  const Time deadline = AddSaturating(shard_->Now(), kStopWait);
  while (operations_.live() > 0 && Pause(deadline)) {
  }
  left_regions_.Reap(*this);
  stopped_.store(true);
  AwaitCalls();
  log_->Freeze();
  // What the shard reports while it ends comes back here and needs it still.
  std::default_delete<provider::Shard>()(shard_.get());
  (void)shard_.release();
  log_->Stop();
  FinishLeftovers();
  untaken_.Clear();
  const std::lock_guard lock(mutex_);
  sockets_.clear();
  connections_.clear();
  listeners_.clear();
}

// A thread that waits for events leaves when it is woken; a wake may be lost to another thread.
void ContextState::AwaitCalls() {
  while (calls_.load() > 0) {
    {
      const std::lock_guard lock(mutex_);
      for (QueueState* queue : queues_) queue->Interrupt();
    }
    shard_->Wake();
    std::unique_lock lock(pause_mutex_);
    ended_.wait_for(lock, kPause);
  }
}

void ContextState::FinishLeftovers() {
  const absl::Status status = MakeError(ErrorKind::kLocalAbort, "the Context has been closed");
  while (Operation* left = operations_.Oldest()) {
    left->has_alarm = false;
    left->owner.reset();  // every socket ends here at once
    Finish(*left, status);
  }
}

}  // namespace esdp::sockets
