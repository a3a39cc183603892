#include "impl/sockets/listener/listener_state.h"

#include <functional>
#include <new>
#include <utility>

#include "impl/base/undo.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/convert.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/queue/event_queue_state.h"
#include "impl/sockets/socket/socket_state.h"

namespace esdp::sockets {

ListenerState::ListenerState(SocketState& socket, ContextState& context)
    : socket_(socket), context_(context), polls_(context) {}

SocketId ListenerState::id() const { return socket_.id(); }

absl::Status ListenerState::Listen(const Address& address, int backlog,
                                   const provider::ConnectionOptions& accepted) {
  const auto tell = [&](const Named& named) {
    return context_.shard().Listen(ToProvider(address), backlog, accepted, named);
  };
  return Begin(address, std::cref(tell));
}

absl::Status ListenerState::ListenOver(int descriptor,
                                       const provider::ConnectionOptions& accepted) {
  const auto tell = [&](const Named& named) {
    return context_.shard().ListenOver(descriptor, accepted, named);
  };
  of_one_ = true;
  absl::Status begun = Begin(Address(), std::cref(tell));
  if (!begun.ok()) of_one_ = false;
  return begun;
}

absl::Status ListenerState::Begin(const Address& address, const Tell& tell) {
  {
    const std::lock_guard lock(mutex_);
    local_ = address;
  }
  provider::Shard& shard = context_.shard();
  const std::shared_ptr<ListenerState> self(socket_.shared_from_this(), this);
  const auto name = OrNoMemory(
      [&] { return tell([&](provider::ListenerId given) { context_.Bind(given, self); }); });
  if (!name.ok()) return Adopt(name.status());
  const auto where = shard.ListenerAddress(*name);
  fabric_ = shard.FabricOf(*name);
  {
    const std::lock_guard lock(mutex_);
    name_ = *name;
    if (where.ok()) local_ = FromProvider(*where);
  }
  if (!closed_) return absl::OkStatus();
  Close();  // that of the socket came too early to find the name
  return ClosedHandle();
}

absl::StatusOr<OpId> ListenerState::Accept(int count, const OpArgs& args) {
  absl::StatusOr<Operation*> operation = context_.NewOperation(EventType::kAccept, id(), args);
  if (!operation.ok()) return operation.status();
  const OpId op = (*operation)->id;
  (*operation)->accepts_left = count;
  (*operation)->has_alarm = args.deadline != absl::InfiniteFuture();
  {
    std::unique_lock lock(mutex_);
    if (closed_ || !failed_.ok()) {
      const absl::Status why = closed_ ? ClosedHandle() : failed_;
      lock.unlock();
      context_.Discard(**operation);
      return why;
    }
    if (!Append(accepts_, *operation)) {
      lock.unlock();
      context_.Discard(**operation);
      return NoMemory();
    }
    if (count != 1) (*operation)->queue->AddOpenEnded(1);
  }
  context_.SetAlarm(op, args.deadline);
  Match();
  return op;
}

void ListenerState::FinishAccept(OpId op, const absl::Status& status) {
  Operation* operation = nullptr;
  {
    const std::lock_guard lock(mutex_);
    operation = TakeNamed(accepts_, op);
  }
  if (operation == nullptr) return;
  if (operation->accepts_left != 1) operation->queue->AddOpenEnded(-1);
  context_.Finish(*operation, status);
  TellPolls();
}

Operation* ListenerState::TakeAccept() {
  const std::lock_guard lock(mutex_);
  if (accepts_.empty()) return nullptr;
  Operation* const first = accepts_.front();
  accepts_.pop_front();
  return first;
}

void ListenerState::Close() {
  provider::ListenerId name;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    name = std::exchange(name_, provider::ListenerId::kNone);
  }
  context_.Unbind(name);
  (void)OrNoMemory([&] { return context_.shard().StopListening(name); });
  FinishAccepts(MakeError(ErrorKind::kShutDown, "the listener was closed"));
  decltype(arrived_) arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(arrived_);
  }
  polls_.Close();
  for (const auto& [id, socket] : arrived) socket->Drop();
  for (const auto& [id, untaken] : context_.untaken().TakeAllOf(this->id())) untaken.socket->Drop();
}

void ListenerState::FinishAccepts(const absl::Status& status) {
  while (Operation* operation = TakeAccept()) {
    if (operation->accepts_left != 1) operation->queue->AddOpenEnded(-1);
    context_.Finish(*operation, status);
  }
}

absl::StatusOr<OpId> ListenerState::Poll(uint32_t mask, const OpArgs& args) {
  absl::StatusOr<OpId> op = polls_.Add(id(), mask, args);
  if (op.ok()) TellPolls();
  return op;
}

// An Accept would not wait where one has failed.
uint32_t ListenerState::PollBits() const {
  const std::lock_guard lock(mutex_);
  if (!failed_.ok()) return kPollReadable | kPollFailed;
  return !arrived_.empty() && accepts_.empty() ? uint32_t{kPollReadable} : 0;
}

void ListenerState::TellPolls() {
  polls_.Tell([this] { return PollBits(); });
}

void ListenerState::OnFailed(const provider::Failure& failure) { Fail(StatusOf(failure)); }

void ListenerState::Fail(const absl::Status& why) {
  {
    const std::lock_guard lock(mutex_);
    failed_ = why;
  }
  FinishAccepts(why);
  TellPolls();
}

Address ListenerState::local() const {
  const std::lock_guard lock(mutex_);
  return local_;
}

uint64_t ListenerState::ended_before_accept() const {
  const std::lock_guard lock(mutex_);
  return ended_before_accept_;
}

void ListenerState::OnIncoming(provider::ConnectionId connection, const Address& local,
                               const Address& peer, uint8_t fabric) {
  const auto accepted = std::make_shared<SocketState>(
      context_.shared_from_this(), context_.NewSocketId(), peer.family(), socket_.OptionsInForce());
  context_.Add(accepted);
  Undo undo([&] { context_.Remove(accepted->id()); });
  context_.Bind(connection, accepted->stream().Self());
  undo.Cancel();
  accepted->BecomeAccepted(connection, local, peer, fabric, id());
  bool unwanted = false;
  {
    const std::lock_guard lock(mutex_);
    unwanted = closed_;
    if (!unwanted) arrived_.emplace(accepted->id(), accepted);
  }
  if (unwanted) return accepted->Drop();
  Match();
}

void ListenerState::OnIncomingEnded(SocketId accepted, const provider::Failure& cause) {
  std::shared_ptr<SocketState> ended;  // dropped after the lock
  {
    const std::lock_guard lock(mutex_);
    const auto found = arrived_.find(accepted);
    if (found == arrived_.end()) return;
    ended = std::move(found->second);
    arrived_.erase(found);
    ++ended_before_accept_;
  }
  (void)context_.untaken().Take(accepted);  // it may have waited for a slot in the queue
  context_.CountEndedBeforeAccept();
  if (!of_one_) return;
  Fail(cause.ending != provider::EndReason::kOk
           ? StatusOf(cause)
           : MakeError(ErrorKind::kShutDown, "the connection had ended before it was accepted"));
}

// What cannot be announced for want of memory is ended, so that its peer hears of it.
void ListenerState::Match() {
  for (;;) {
    std::shared_ptr<SocketState> lost;
    try {
      MatchAll();
      return TellPolls();
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(mutex_);
      if (arrived_.empty()) return;
      lost = std::move(arrived_.begin()->second);
      arrived_.erase(arrived_.begin());
    }
    (void)context_.untaken().Take(lost->id());
    lost->Drop();
    if (of_one_) Fail(NoMemory());
  }
}

bool ListenerState::ReserveForFirst(Operation** last) {
  Operation* const operation = accepts_.front();
  QueueState& queue = *operation->queue;
  if (operation->accepts_left == 1) {
    *last = operation;
    accepts_.pop_front();
  } else if (queue.ReserveUpTo(1) == 0) {
    queue.SetStarved();
    if (queue.ReserveUpTo(1) == 0) return false;  // Dequeue matches again
  }
  if (operation->accepts_left > 1 && --operation->accepts_left == 1) queue.AddOpenEnded(-1);
  return true;
}

void ListenerState::MatchAll() {
  for (;;) {
    Operation* last = nullptr;
    Event event;
    std::shared_ptr<QueueState> queue;
    {
      const std::lock_guard lock(mutex_);
      if (arrived_.empty() || accepts_.empty()) return;
      Operation* const operation = accepts_.front();
      queue = operation->queue;
      context_.untaken().Add(arrived_.begin()->second, id());
      if (!ReserveForFirst(&last)) return;
      const std::shared_ptr<SocketState> accepted = std::move(arrived_.begin()->second);
      arrived_.erase(arrived_.begin());
      event.type = EventType::kAccept;
      event.flags = kMore;
      event.cookie = operation->cookie;
      event.op = operation->id;
      event.socket = id();
      event.accepted = accepted->id();
      event.accepted_peer = accepted->peer();
      // Under the lock, so that no other thread delivers the operation's last event before it.
      if (last == nullptr) queue->Deliver(event);
    }
    if (last != nullptr) {
      event.flags = 0;
      context_.Finish(*last, event);
    }
  }
}

}  // namespace esdp::sockets
