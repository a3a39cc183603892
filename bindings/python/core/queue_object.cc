#include "bindings/python/core/queue_object.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "bindings/python/core/context_object.h"
#include "bindings/python/core/names.h"
#include "bindings/python/core/patience.h"
#include "bindings/python/core/socket_object.h"
#include "bindings/python/core/unlocked.h"

namespace py = pybind11;

namespace esdp::python {
namespace {

// What the library gives a queue that is destroyed with operations, and a little less.
constexpr absl::Duration kAbandoned = absl::Milliseconds(900);
constexpr size_t kDepthMax = size_t{1} << 20;

// What an await gives for an operation that went well.
py::object ResultOf(const EventObject& ended) {
  switch (ended.event.type) {
    case EventType::kSend:
    case EventType::kRecv:
    case EventType::kSendV:
    case EventType::kRecvV:
    case EventType::kSendFile:
    case EventType::kRecvFile:
      return py::int_(ended.event.bytes);
    case EventType::kAccept:
    case EventType::kUrgent:
      return py::cast(ended);
    default:
      return py::none();
  }
}

void SetFuture(const Record& record, EventObject ended) {
  if (record.asked_to_end) {
    record.sink.attr("_end_cancelled")(py::cast(std::move(ended)));
  } else if (ended.event.ok()) {
    record.sink.attr("set_result")(ResultOf(ended));
  } else {
    record.sink.attr("_end_failed")(py::cast(std::move(ended)));
  }
}

}  // namespace

QueueObject::QueueObject(std::shared_ptr<ContextObject> context, EventQueue queue)
    : context_(std::move(context)), queue_(std::move(queue)) {}

QueueObject::~QueueObject() { Finalize(); }

int QueueObject::Visit(const Visitor& visit) const {
  for (const Record& record : records_) {
    if (const int end = visit(record.sink); end != 0) return end;
    if (const int end = visit(record.memory); end != 0) return end;
  }
  if (const int end = visit(loop_); end != 0) return end;
  return visit(make_future_);
}

void QueueObject::Finalize() noexcept {
  if (uses_ > 0 || std::exchange(closed_, true)) return;
  let_go_ = true;
  Quietly([this] {
    if (!context_->closed()) {
      WarnUnclosed("EventQueue with " + std::to_string(outstanding()) + " operations outstanding");
    }
    const absl::Time begun = absl::Now();
    {
      const Unlocked unlocked;
      queue_ = EventQueue();
    }
    // The library gave up waiting for operations: their memory may be in use, and is never let go.
    if (absl::Now() - begun > kAbandoned) {
      (void)std::make_unique<std::vector<Record>>(std::move(records_)).release();
    }
  });
  DropReferences();
}

// --- records -------------------------------------------------------------------------------------

uint64_t QueueObject::Keep(Record record) {
  if (free_.empty()) {
    records_.push_back(std::move(record));
    return records_.size();
  }
  const uint32_t number = free_.back();
  free_.pop_back();
  records_[number] = std::move(record);
  return uint64_t{number} + 1;
}

Record QueueObject::Release(uint64_t cookie) {
  const auto number = static_cast<uint32_t>(cookie - 1);
  Record record = std::exchange(records_[number], Record());
  free_.push_back(number);
  return record;
}

OpArgs QueueObject::ArgumentsFor(const PostArguments& arguments) {
  OpArgs args{queue_};
  args.complete_at = arguments.complete_at;
  args.path = arguments.path;
  if (arguments.timeout.has_value()) {
    args.deadline = DeadlineAfter(context_->handle().Now(), arguments.timeout);
  }
  return args;
}

py::object QueueObject::SinkFor(const PostArguments& arguments) const {
  return make_future_ ? make_future_() : arguments.cookie;
}

bool QueueObject::Grow(const absl::Status& refused) {
  if (!make_future_ || KindOf(refused) != ErrorKind::kQueueFull) return false;
  const size_t depth = queue_.Stats().depth;
  return depth < kDepthMax && queue_.Resize(std::min(2 * depth, kDepthMax)).ok();
}

// --- events --------------------------------------------------------------------------------------

absl::StatusOr<size_t> QueueObject::WaitFor(std::vector<Event>& events, size_t min,
                                            std::optional<double> timeout) {
  Patience patience(*context_, timeout);
  for (;;) {
    const absl::Time until = patience.NextDeadline();
    absl::StatusOr<size_t> taken = size_t{0};
    {
      const Unlocked unlocked;
      taken = queue_.Dequeue(absl::MakeSpan(events), {.min_events = min, .deadline = until});
    }
    HandleSignals();
    if (taken.ok()) return taken;
    CheckOpen();
    if (!patience.GoesOn(taken.status())) return taken;
  }
}

py::list QueueObject::Get(size_t min, std::optional<double> timeout, size_t max) {
  if (min == 0) return GetNow(max);
  const Use use(*this);
  CheckOpen();
  std::vector<Event> events(std::max(min, max));
  const size_t count = Value(WaitFor(events, min, timeout));
  return ToList(events, count);
}

py::list QueueObject::GetNow(size_t max) {
  const Use use(*this);
  CheckOpen();
  std::vector<Event> events(max);
  const size_t count = Value(queue_.TryDequeue(absl::MakeSpan(events)));
  return ToList(events, count);
}

std::shared_ptr<Offer> QueueObject::OfferOf(const Event& event) const {
  if (event.accepted == SocketId::kNone) return nullptr;
  return std::make_shared<Offer>(context_, event.accepted);
}

py::list QueueObject::ToList(const std::vector<Event>& events, size_t count) {
  context_->log().HandOver();
  py::list list(count);
  for (size_t i = 0; i < count; ++i) {
    const Event& event = events[i];
    EventObject object{event, {}, {}, OfferOf(event)};
    if (event.terminal()) {
      Record record = Release(event.cookie);
      object.cookie = std::move(record.sink);
      object.socket = std::move(record.socket);
    } else {
      object.cookie = records_[event.cookie - 1].sink;
      object.socket = records_[event.cookie - 1].socket;
    }
    list[i] = py::cast(std::move(object));
  }
  return list;
}

// --- a loop's ------------------------------------------------------------------------------------

void QueueObject::BindToLoop(py::object loop, py::object make_future) {
  loop_ = std::move(loop);
  make_future_ = std::move(make_future);
}

size_t QueueObject::Deliver(size_t max) {
  const Use use(*this);
  CheckOpen();
  std::vector<Event> events(max);
  const size_t count = Value(queue_.TryDequeue(absl::MakeSpan(events)));
  if (count == 0) return 0;
  context_->log().HandOver();
  const bool loop_closed = loop_ && loop_.attr("is_closed")().cast<bool>();
  for (size_t i = 0; i < count; ++i) Resolve(events[i], loop_closed);
  return count;
}

// A closed loop runs nothing any more: its futures are dropped as they are.
void QueueObject::Resolve(const Event& event, bool loop_closed) {
  if (!event.terminal()) return;
  Record record = Release(event.cookie);
  record.memory = py::object();
  if (!make_future_ || loop_closed) return;
  try {
    SetFuture(record, {event, py::none(), std::move(record.socket), OfferOf(event)});
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("the future of an operation");
  }
}

bool QueueObject::CancelFuture(py::handle future) {
  const Use use(*this);
  const auto found = std::ranges::find_if(
      records_, [&](const Record& record) { return record.sink.ptr() == future.ptr(); });
  if (!make_future_ || found == records_.end()) return false;
  found->asked_to_end = true;
  if (const auto socket = found->socket.lock()) (void)socket->Cancel(found->op, false);
  return true;
}

// --- the end -------------------------------------------------------------------------------------

void QueueObject::Wake() { queue_.Wake(); }

void QueueObject::Resize(size_t depth) { Check(queue_.Resize(depth)); }

void QueueObject::CheckOpen() const {
  if (closed_) RaiseKind(ErrorKind::kBadHandle, EBADF, "the event queue has been closed");
}

// Nothing is posted while the interpreter lock is held, so that a queue which no operation names
// stays so. Threads that wait in it still use the handle.
void QueueObject::Close() {
  if (closed_) return;
  const Use use(*this);
  if (const uint32_t reserved = queue_.Stats().reserved; reserved > 0) {
    RaiseKind(ErrorKind::kBusy, EBUSY,
              std::to_string(reserved) + " operations name the event queue");
  }
  closed_ = true;
  for (int waiting = uses_; waiting > 0; --waiting) queue_.Wake();
}

void QueueObject::OnContextClosed() {
  if (closed_) return;
  const Use use(*this);
  closed_ = true;
}

// No call is inside, and none gets past CheckOpen any more.
void QueueObject::LetGo() noexcept {
  if (std::exchange(let_go_, true)) return;
  Quietly([this] {
    std::vector<Event> events(64);
    for (;;) {
      const auto taken = queue_.TryDequeue(absl::MakeSpan(events));
      if (!taken.ok() || *taken == 0) break;
      const bool loop_closed = !loop_ || loop_.attr("is_closed")().cast<bool>();
      for (size_t i = 0; i < *taken; ++i) Resolve(events[i], loop_closed);
    }
  });
  (void)queue_.Close();
  DropReferences();
}

// Their ends run Python code, which finds them gone.
void QueueObject::DropReferences() noexcept {
  free_.clear();
  const std::vector<Record> ended = std::exchange(records_, {});
  const py::object loop = std::exchange(loop_, {});
  const py::object make_future = std::exchange(make_future_, {});
}

}  // namespace esdp::python
