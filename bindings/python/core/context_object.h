#ifndef ESDP_BINDINGS_PYTHON_CORE_CONTEXT_OBJECT_H_
#define ESDP_BINDINGS_PYTHON_CORE_CONTEXT_OBJECT_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bindings/python/core/log_lines.h"
#include "bindings/python/core/queue_object.h"
#include "bindings/python/core/region_object.h"
#include "bindings/python/core/socket_object.h"
#include "esdp/context.h"
#include "esdp/stream.h"

namespace esdp::python {

// esdp.Context. What is made through it keeps it alive and is known to it, so that closing it
// closes them: sockets first, then queues, then regions, whose memory is let go last.
//
//   Owns:     the fabric. Its children hold it; it does not hold them.
//   Threads:  with the interpreter lock held.
//   Blocks:   Open, Register, Allocate, Progress and Close, without the lock; the destructor, at
//             most a second.
//   Units:    bytes; seconds.
//   Errors:   exceptions.
class ContextObject : public std::enable_shared_from_this<ContextObject> {
 public:
  static std::shared_ptr<ContextObject> Open(const pybind11::kwargs& arguments);
  // Use Open.
  explicit ContextObject(bool virtual_time) : virtual_time_(virtual_time) {}
  ~ContextObject();
  ContextObject(const ContextObject&) = delete;
  ContextObject& operator=(const ContextObject&) = delete;

  std::shared_ptr<RegionObject> Register(pybind11::handle memory, std::optional<bool> writable,
                                         std::string_view exposure);
  // `buffer`: a descriptor, or whatever has one.
  std::shared_ptr<RegionObject> RegisterDmaBuf(pybind11::handle buffer, uint64_t offset,
                                               uint64_t length, std::string_view exposure);
  std::shared_ptr<RegionObject> Allocate(size_t bytes, std::string_view exposure,
                                         std::string_view shareable);
  std::shared_ptr<QueueObject> CreateQueue(const pybind11::kwargs& arguments);
  std::shared_ptr<SocketObject> CreateSocket(std::string_view family,
                                             const pybind11::kwargs& arguments);
  std::shared_ptr<SocketObject> TakeAccepted(const EventObject& event);
  int MoveFor(double seconds);

  // Lets a socket end with no event for the application.
  void CloseAlone(Socket& socket, CloseMode mode);
  // The same for a stream, whose memory stays until it has.
  void CloseLater(std::shared_ptr<Stream> stream);
  // Nothing when it is closed already. TimeoutError when something had to be aborted.
  void Close(double timeout);
  // Every Context that is open, when the interpreter ends. Never throws.
  static void CloseAll() noexcept;

  Context& handle() { return context_; }
  LogLines& log() { return *log_; }
  bool closed() const { return closed_; }
  bool virtual_time() const { return virtual_time_; }

 private:
  template <typename T>
  std::shared_ptr<T> Remember(std::vector<std::weak_ptr<T>>& children, std::shared_ptr<T> child);
  absl::Status End(double timeout);
  // False where there is nothing to close.
  bool PostClose(Socket& socket, CloseMode mode, uint64_t cookie);

  const bool virtual_time_;
  std::shared_ptr<LogLines> log_ = std::make_shared<LogLines>();
  std::shared_ptr<ContextObject> world_;  // it must outlive this one
  Context context_;
  EventQueue closing_;  // of sockets that end by themselves
  std::unordered_map<uint64_t, std::shared_ptr<Stream>> ending_;  // by the cookies there
  uint64_t last_cookie_ = 0;
  std::vector<std::weak_ptr<QueueObject>> queues_;
  std::vector<std::weak_ptr<RegionObject>> regions_;
  bool closed_ = true;  // until it is open
  bool ended_ = false;  // closed, and everything with it
};

void DefineContext(pybind11::module_& module);

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_CONTEXT_OBJECT_H_
