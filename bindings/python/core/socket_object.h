#ifndef ESDP_BINDINGS_PYTHON_CORE_SOCKET_OBJECT_H_
#define ESDP_BINDINGS_PYTHON_CORE_SOCKET_OBJECT_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>

#include "bindings/python/core/file_arguments.h"
#include "bindings/python/core/queue_object.h"
#include "esdp/socket.h"

namespace esdp::python {

class ContextObject;

// esdp.Socket: a stream, or a listener. Every post gives what QueueObject::Post gives.
//
//   Owns:     the handle. One that goes without a close is aborted, with a ResourceWarning.
//   Threads:  with the interpreter lock held, also while an operation is posted: a post is short.
//   Blocks:   never.
//   Units:    bytes; seconds.
//   Errors:   exceptions.
class SocketObject : public std::enable_shared_from_this<SocketObject> {
 public:
  SocketObject(std::shared_ptr<ContextObject> context, Socket socket);
  ~SocketObject();
  SocketObject(const SocketObject&) = delete;
  SocketObject& operator=(const SocketObject&) = delete;

  void Bind(pybind11::handle address);
  void Listen(int backlog);
  pybind11::object Connect(pybind11::handle address, QueueObject& queue,
                           const PostArguments& arguments);
  pybind11::object Accept(int count, QueueObject& queue, const PostArguments& arguments);

  pybind11::object Send(pybind11::handle data, bool urgent, QueueObject& queue,
                        const PostArguments& arguments);
  pybind11::object Receive(pybind11::handle target, bool wait_all, QueueObject& queue,
                           const PostArguments& arguments);
  // Lists of registered memory.
  pybind11::object SendV(const pybind11::sequence& data, bool urgent, QueueObject& queue,
                         const PostArguments& arguments);
  pybind11::object ReceiveV(const pybind11::sequence& targets, bool wait_all, QueueObject& queue,
                            const PostArguments& arguments);
  pybind11::object SendFile(const SendFileArguments& file, QueueObject& queue,
                            const PostArguments& arguments);
  pybind11::object ReceiveFile(const ReceiveFileArguments& file, QueueObject& queue,
                               const PostArguments& arguments);
  pybind11::object AwaitUrgent(QueueObject& queue, const PostArguments& arguments);
  pybind11::object Suspend(QueueObject& queue, const PostArguments& arguments);
  pybind11::object Shutdown(QueueObject& queue, const PostArguments& arguments);
  pybind11::object Close(CloseMode mode, QueueObject& queue, const PostArguments& arguments);
  // Ends by itself, with no event for the application. Nothing when it was closed before.
  void CloseAlone(CloseMode mode);

  // False when it is unknown or has ended.
  bool Cancel(OpId op, bool abort);
  int CancelAll(Direction direction);

  void SetOption(const std::string& name, pybind11::handle value);
  pybind11::object GetOption(const std::string& name) const;
  // Hands its connection on: the object is as closed then.
  Socket Take();
  const std::shared_ptr<ContextObject>& context() const { return context_; }
  Socket& handle() { return socket_; }
  const Socket& handle() const { return socket_; }
  bool closed() const { return closed_; }

 private:
  std::shared_ptr<ContextObject> context_;
  Socket socket_;
  bool closed_ = false;
};

void DefineSocket(pybind11::module_& module);

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_SOCKET_OBJECT_H_
