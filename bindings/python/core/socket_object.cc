#include "bindings/python/core/socket_object.h"

#include <cerrno>
#include <utility>

#include "bindings/python/core/context_object.h"
#include "bindings/python/core/errors.h"
#include "bindings/python/core/names.h"
#include "bindings/python/core/options.h"
#include "bindings/python/core/region_object.h"

namespace py = pybind11;

namespace esdp::python {
namespace {

SendFlags FlagsOf(bool urgent) { return urgent ? SendFlags::kUrgent : SendFlags::kNone; }
RecvFlags ReceiveFlagsOf(bool wait_all) {
  return wait_all ? RecvFlags::kWaitAll : RecvFlags::kNone;
}

}  // namespace

SocketObject::SocketObject(std::shared_ptr<ContextObject> context, Socket socket)
    : context_(std::move(context)), socket_(std::move(socket)) {}

SocketObject::~SocketObject() {
  if (!closed_ && !context_->closed()) WarnUnclosed("Socket");
}

void SocketObject::Bind(py::handle address) { Check(socket_.Bind(AddressFrom(address))); }

void SocketObject::Listen(int backlog) { Check(socket_.Listen(backlog)); }

py::object SocketObject::Connect(py::handle address, QueueObject& queue,
                                 const PostArguments& arguments) {
  const Address peer = AddressFrom(address);
  return queue.Post(shared_from_this(), arguments, {},
                    [&](const OpArgs& args) { return socket_.Connect(peer, args); });
}

py::object SocketObject::Accept(int count, QueueObject& queue, const PostArguments& arguments) {
  return queue.Post(shared_from_this(), arguments, {},
                    [&](const OpArgs& args) { return socket_.Accept(count, args); });
}

py::object SocketObject::Send(py::handle data, bool urgent, QueueObject& queue,
                              const PostArguments& arguments) {
  Named named = Named::ToSend(data);
  const SendFlags flags = FlagsOf(urgent);
  if (!named.registered) {
    return queue.Post(shared_from_this(), arguments, {}, [&](const OpArgs& args) {
      return socket_.SendCopy(named.memory.span(), flags, args);
    });
  }
  return queue.Post(shared_from_this(), arguments, std::move(named.keep),
                    [&](const OpArgs& args) { return socket_.Send(named.slice, flags, args); });
}

py::object SocketObject::Receive(py::handle target, bool wait_all, QueueObject& queue,
                                 const PostArguments& arguments) {
  Named named = Named::ToReceive(target);
  const RecvFlags flags = ReceiveFlagsOf(wait_all);
  return queue.Post(shared_from_this(), arguments, std::move(named.keep), [&](const OpArgs& args) {
    return named.registered ? socket_.Recv(named.slice, flags, args)
                            : socket_.RecvCopy(named.memory.span(), flags, args);
  });
}

py::object SocketObject::SendV(const py::sequence& data, bool urgent, QueueObject& queue,
                               const PostArguments& arguments) {
  NamedList named = NamedList::Of(data, Named::ToSend);
  return queue.Post(shared_from_this(), arguments, std::move(named.keep), [&](const OpArgs& args) {
    return socket_.SendV(named.slices, FlagsOf(urgent), args);
  });
}

py::object SocketObject::ReceiveV(const py::sequence& targets, bool wait_all, QueueObject& queue,
                                  const PostArguments& arguments) {
  NamedList named = NamedList::Of(targets, Named::ToReceive);
  return queue.Post(shared_from_this(), arguments, std::move(named.keep), [&](const OpArgs& args) {
    return socket_.RecvV(named.slices, ReceiveFlagsOf(wait_all), args);
  });
}

py::object SocketObject::SendFile(const SendFileArguments& file, QueueObject& queue,
                                  const PostArguments& arguments) {
  return queue.Post(shared_from_this(), arguments, file.keep,
                    [&](const OpArgs& args) { return socket_.SendFile(file.Plan(), args); });
}

py::object SocketObject::ReceiveFile(const ReceiveFileArguments& file, QueueObject& queue,
                                     const PostArguments& arguments) {
  return queue.Post(shared_from_this(), arguments, file.keep,
                    [&](const OpArgs& args) { return socket_.RecvFile(file.sink, args); });
}

py::object SocketObject::AwaitUrgent(QueueObject& queue, const PostArguments& arguments) {
  return queue.Post(shared_from_this(), arguments, {},
                    [&](const OpArgs& args) { return socket_.AwaitUrgent(args); });
}

py::object SocketObject::Suspend(QueueObject& queue, const PostArguments& arguments) {
  return queue.Post(shared_from_this(), arguments, {},
                    [&](const OpArgs& args) { return socket_.Suspend(args); });
}

py::object SocketObject::Shutdown(QueueObject& queue, const PostArguments& arguments) {
  return queue.Post(shared_from_this(), arguments, {},
                    [&](const OpArgs& args) { return socket_.Shutdown(args); });
}

py::object SocketObject::Close(CloseMode mode, QueueObject& queue, const PostArguments& arguments) {
  py::object name = queue.Post(shared_from_this(), arguments, {},
                               [&](const OpArgs& args) { return socket_.Close(mode, args); });
  closed_ = true;
  return name;
}

void SocketObject::CloseAlone(CloseMode mode) {
  if (std::exchange(closed_, true) || context_->closed()) return;
  context_->CloseAlone(socket_, mode);
}

bool SocketObject::Cancel(OpId op, bool abort) {
  const absl::Status asked =
      socket_.Cancel(op, abort ? CancelMode::kAbortConnection : CancelMode::kIfNotStarted);
  if (KindOf(asked) == ErrorKind::kBadHandle) return false;
  Check(asked);
  return true;
}

int SocketObject::CancelAll(Direction direction) { return Value(socket_.CancelAll(direction)); }

Socket SocketObject::Take() {
  if (std::exchange(closed_, true)) {
    RaiseKind(ErrorKind::kBadHandle, EBADF, "the socket has been closed");
  }
  return std::move(socket_);
}

void SocketObject::SetOption(const std::string& name, py::handle value) {
  Check(socket_.SetOption(OptionFrom(name, value)));
}

py::object SocketObject::GetOption(const std::string& name) const {
  return ValueOf(Value(socket_.GetOption(OptionNameFrom(name))));
}

}  // namespace esdp::python
