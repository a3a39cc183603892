#ifndef ESDP_BINDINGS_PYTHON_CORE_QUEUE_OBJECT_H_
#define ESDP_BINDINGS_PYTHON_CORE_QUEUE_OBJECT_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bindings/python/core/collected.h"
#include "bindings/python/core/errors.h"
#include "bindings/python/core/event_object.h"
#include "esdp/event_queue.h"
#include "esdp/socket.h"

namespace esdp::python {

class ContextObject;
class SocketObject;

// What an operation keeps alive until its terminal event.
struct Record {
  pybind11::object sink;    // the application's cookie, or the future that awaits it
  pybind11::object memory;  // a Slice, a Region, a list of these, or a memoryview
  std::weak_ptr<SocketObject> socket;
  OpId op = OpId::kNone;
  bool asked_to_end = false;
};

// What every post takes, as Python gives it.
struct PostArguments {
  pybind11::object cookie;
  std::optional<double> timeout;  // seconds; none: without end
  CompleteAt complete_at = CompleteAt::kReusable;
  Path path = Path::kByThreshold;
};

// esdp.EventQueue: the events, and the records of the operations that will have one. An operation's
// cookie, as the library knows it, is the number of its record.
//
// Bound to a loop (BindToLoop) a post makes a future instead of an OpId, and Deliver sets what has
// ended; nothing is made for an operation but that future.
//
// A call may let the interpreter lock go, to wait or because it runs Python code, and another
// thread may close the queue or its Context meanwhile. Each call is counted (Use), and what it uses
// goes with the last one. From the close on nothing can be posted.
//
//   Owns:     the queue and the records.
//   Threads:  with the interpreter lock held.
//   Blocks:   Get, without the lock; the destructor, at most a second, when operations are left.
//   Units:    events; seconds.
//   Errors:   exceptions.
class QueueObject : public std::enable_shared_from_this<QueueObject> {
 public:
  QueueObject(std::shared_ptr<ContextObject> context, EventQueue queue);
  ~QueueObject();
  QueueObject(const QueueObject&) = delete;
  QueueObject& operator=(const QueueObject&) = delete;

  // Waits for `min` events at least, and takes up to `max`. Signals are handled while it waits.
  pybind11::list Get(size_t min, std::optional<double> timeout, size_t max);
  pybind11::list GetNow(size_t max);

  void BindToLoop(pybind11::object loop, pybind11::object make_future);
  // Sets the futures of up to `max` operations that have ended; returns how many events there were.
  size_t Deliver(size_t max);
  // Asks the operation behind a future to end. False when it has ended.
  bool CancelFuture(pybind11::handle future);

  // `call(args)` posts. Gives the OpId, or the future of a queue that is bound to a loop.
  template <typename Call>
  pybind11::object Post(const std::shared_ptr<SocketObject>& socket, const PostArguments& arguments,
                        pybind11::object memory, const Call& call);

  EventQueue& handle() { return queue_; }
  ContextObject& context() { return *context_; }
  size_t outstanding() const { return records_.size() - free_.size(); }
  bool closed() const { return closed_; }
  void Wake();
  void Resize(size_t depth);
  // BusyError while operations name it. Ends every get.
  void Close();
  // Every operation has had its end: lets go of what they kept.
  void OnContextClosed();

  // For the collector of cycles, which has found that nobody will take an event any more: ends what
  // is outstanding, as the destructor does, and lets go.
  int Visit(const Visitor& visit) const;
  void Finalize() noexcept;
  void Clear() noexcept { Finalize(); }

 private:
  // One call that runs. The last one to leave a queue that is closed lets go of everything.
  class Use {
   public:
    explicit Use(QueueObject& queue) : queue_(queue) { ++queue_.uses_; }
    ~Use() {
      if (--queue_.uses_ == 0 && queue_.closed_) queue_.LetGo();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    QueueObject& queue_;
  };

  void CheckOpen() const;
  void LetGo() noexcept;
  void DropReferences() noexcept;
  uint64_t Keep(Record record);
  Record Release(uint64_t cookie);
  OpArgs ArgumentsFor(const PostArguments& arguments);
  // A queue that is bound to a loop grows when it is full.
  bool Grow(const absl::Status& refused);
  pybind11::object SinkFor(const PostArguments& arguments) const;
  std::shared_ptr<Offer> OfferOf(const Event& event) const;
  pybind11::list ToList(const std::vector<Event>& events, size_t count);
  void Resolve(const Event& event, bool loop_closed);
  absl::StatusOr<size_t> WaitFor(std::vector<Event>& events, size_t min,
                                 std::optional<double> timeout);

  std::shared_ptr<ContextObject> context_;
  EventQueue queue_;
  std::vector<Record> records_;
  std::vector<uint32_t> free_;
  pybind11::object loop_, make_future_;
  int uses_ = 0;
  bool closed_ = false;
  bool let_go_ = false;
};

template <typename Call>
pybind11::object QueueObject::Post(const std::shared_ptr<SocketObject>& socket,
                                   const PostArguments& arguments, pybind11::object memory,
                                   const Call& call) {
  const Use use(*this);
  OpArgs args = ArgumentsFor(arguments);
  pybind11::object sink = SinkFor(arguments);
  CheckOpen();  // from here until it is posted no other thread comes in between
  args.cookie = Keep({std::move(sink), std::move(memory), socket, OpId::kNone, false});
  absl::StatusOr<OpId> op = call(args);
  while (!op.ok() && Grow(op.status())) op = call(args);
  if (!op.ok()) {
    (void)Release(args.cookie);
    Raise(op.status());
  }
  Record& record = records_[args.cookie - 1];
  record.op = *op;
  if (make_future_) return record.sink;
  return pybind11::cast(OperationName{*op, socket});
}

void DefineQueue(pybind11::module_& module);

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_QUEUE_OBJECT_H_
