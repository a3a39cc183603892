#include "esdp/socket.h"

#include <utility>

#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/socket/socket_state.h"

namespace esdp {
namespace {

absl::Status EmptySocket() {
  return sockets::MakeError(ErrorKind::kBadHandle, "the socket handle is empty");
}

// A call of a handle; memory that is missing becomes its answer.
template <typename Call>
auto Use(const std::shared_ptr<sockets::SocketState>& state, Call call) -> decltype(call()) {
  if (state == nullptr) return EmptySocket();
  return sockets::OrNoMemory(call);
}

}  // namespace

const char* ToString(Transport transport) {
  switch (transport) {
    case Transport::kNone:
      return "none";
    case Transport::kQpip:
      return "qpip";
    case Transport::kSim:
      return "sim";
    case Transport::kLocal:
      return "local";
    case Transport::kVerbs:
      return "verbs";
  }
  return "unknown";
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    if (state_ != nullptr) state_->Drop();
    state_ = std::move(other.state_);
  }
  return *this;
}

Socket::~Socket() {
  if (state_ != nullptr) state_->Drop();
}

SocketId Socket::id() const { return state_ == nullptr ? SocketId::kNone : state_->id(); }

absl::Status Socket::Bind(const Address& address) {
  return Use(state_, [&] { return state_->Bind(address); });
}

absl::Status Socket::Listen(int backlog) {
  return Use(state_, [&] { return state_->Listen(backlog); });
}

absl::StatusOr<OpId> Socket::Connect(const Address& address, const OpArgs& args) {
  return Use(state_, [&] { return state_->Connect(address, args); });
}

absl::Status Socket::ListenOver(int descriptor) {
  return Use(state_, [&] { return state_->ListenOver(descriptor); });
}

absl::StatusOr<OpId> Socket::ConnectOver(int descriptor, const OpArgs& args) {
  return Use(state_, [&] { return state_->ConnectOver(descriptor, args); });
}

absl::StatusOr<OpId> Socket::Accept(int count, const OpArgs& args) {
  return Use(state_, [&] { return state_->Accept(count, args); });
}

// This and Recv are calls even in a program that is compiled as one with the library: tests count
// what they cost.
[[gnu::noinline]] absl::StatusOr<OpId> Socket::Send(const Slice& slice, SendFlags flags,
                                                    const OpArgs& args) {
  return Use(state_, [&] {
    return state_->stream().Post(EventType::kSend, absl::MakeConstSpan(&slice, 1),
                                 sockets::TransferFlags::Of(flags), args);
  });
}

absl::StatusOr<OpId> Socket::SendV(absl::Span<const Slice> slices, SendFlags flags,
                                   const OpArgs& args) {
  return Use(state_, [&] {
    return state_->stream().Post(EventType::kSendV, slices, sockets::TransferFlags::Of(flags),
                                 args);
  });
}

absl::StatusOr<size_t> Socket::SendBatch(absl::Span<const Slice> slices, SendFlags flags,
                                         const OpArgs& args, absl::Span<OpId> ops) {
  return Use(state_, [&] {
    return state_->stream().PostBatch(EventType::kSend, slices, sockets::TransferFlags::Of(flags),
                                      args, ops);
  });
}

absl::StatusOr<size_t> Socket::RecvBatch(absl::Span<const Slice> slices, RecvFlags flags,
                                         const OpArgs& args, absl::Span<OpId> ops) {
  return Use(state_, [&] {
    return state_->stream().PostBatch(EventType::kRecv, slices, sockets::TransferFlags::Of(flags),
                                      args, ops);
  });
}

absl::StatusOr<OpId> Socket::SendCopy(absl::Span<const std::byte> bytes, SendFlags flags,
                                      const OpArgs& args) {
  return Use(state_, [&] {
    return state_->stream().PostSendCopy({bytes.data(), bytes.size()},
                                         sockets::TransferFlags::Of(flags), args);
  });
}

[[gnu::noinline]] absl::StatusOr<OpId> Socket::Recv(const Slice& slice, RecvFlags flags,
                                                    const OpArgs& args) {
  return Use(state_, [&] {
    return state_->stream().Post(EventType::kRecv, absl::MakeConstSpan(&slice, 1),
                                 sockets::TransferFlags::Of(flags), args);
  });
}

absl::StatusOr<OpId> Socket::RecvV(absl::Span<const Slice> slices, RecvFlags flags,
                                   const OpArgs& args) {
  return Use(state_, [&] {
    return state_->stream().Post(EventType::kRecvV, slices, sockets::TransferFlags::Of(flags),
                                 args);
  });
}

absl::StatusOr<OpId> Socket::RecvCopy(absl::Span<std::byte> bytes, RecvFlags flags,
                                      const OpArgs& args) {
  return Use(state_, [&] {
    return state_->stream().PostRecvCopy({bytes.data(), bytes.size()},
                                         sockets::TransferFlags::Of(flags), args);
  });
}

absl::StatusOr<OpId> Socket::SendFile(const FilePlan& plan, const OpArgs& args) {
  return Use(state_, [&] { return state_->stream().SendFile(plan, args); });
}

absl::StatusOr<OpId> Socket::RecvFile(const FileSink& sink, const OpArgs& args) {
  return Use(state_, [&] { return state_->stream().RecvFile(sink, args); });
}

absl::StatusOr<OpId> Socket::AwaitUrgent(const OpArgs& args) {
  return Use(state_, [&] { return state_->stream().AwaitUrgent(args); });
}

absl::StatusOr<OpId> Socket::Poll(uint32_t mask, const OpArgs& args) {
  return Use(state_, [&] { return state_->Poll(mask, args); });
}

absl::StatusOr<OpId> Socket::Suspend(const OpArgs& args) {
  return Use(state_, [&] { return state_->stream().Suspend(args); });
}

absl::StatusOr<OpId> Socket::Shutdown(const OpArgs& args) {
  return Use(state_, [&] { return state_->stream().Shutdown(args); });
}

absl::StatusOr<OpId> Socket::Close(CloseMode mode, const OpArgs& args) {
  return Use(state_, [&] { return state_->Close(mode, args); });
}

absl::Status Socket::Cancel(OpId op, CancelMode mode) {
  return Use(state_, [&] { return state_->Cancel(op, mode); });
}

absl::StatusOr<int> Socket::CancelAll(Direction direction) {
  return Use(state_, [&]() -> absl::StatusOr<int> {
    const sockets::ContextCall call(&state_->context());
    if (!call.ok()) return call.status();
    return state_->CancelAll(direction);
  });
}

absl::Status Socket::SetOption(const Option& option) {
  return Use(state_, [&] { return state_->SetOption(option); });
}

absl::StatusOr<Option> Socket::GetOption(OptionName name) const {
  return Use(state_, [&] { return state_->GetOption(name); });
}

Transport Socket::transport() const {
  return state_ == nullptr ? Transport::kNone : state_->transport();
}
SocketStats Socket::Stats() const { return state_ == nullptr ? SocketStats{} : state_->Stats(); }
Address Socket::local() const { return state_ == nullptr ? Address() : state_->local(); }
Address Socket::peer() const { return state_ == nullptr ? Address() : state_->peer(); }

}  // namespace esdp
