#include "tools/esdp_perf/station.h"

#include "absl/types/span.h"

namespace esdp_perf {

absl::StatusOr<std::unique_ptr<Station>> Station::Open(const esdp::ContextOptions& context,
                                                       const esdp::QueueOptions& queue) {
  auto opened = esdp::Context::Open(context);
  if (!opened.ok()) return opened.status();
  return On(*std::move(opened), queue);
}

absl::StatusOr<std::unique_ptr<Station>> Station::On(esdp::Context context,
                                                     const esdp::QueueOptions& queue) {
  auto created = context.CreateQueue(queue);
  if (!created.ok()) return created.status();
  return std::unique_ptr<Station>(new Station(std::move(context), *std::move(created)));
}

std::span<std::byte> Station::NewMemory(size_t bytes) { return memory_.emplace_back(bytes); }

absl::StatusOr<esdp::Event> Station::Await() {
  esdp::Event event;
  const auto count = queue_.Dequeue(absl::MakeSpan(&event, 1));
  if (!count.ok()) return count.status();
  if (!event.ok()) return event.status();
  return event;
}

absl::StatusOr<esdp::Socket> Station::Listen(const esdp::Address& address,
                                             const esdp::SocketOptions& options) {
  auto listener = context_.CreateSocket(address.family(), esdp::SocketType::kStream, options);
  if (!listener.ok()) return listener.status();
  if (absl::Status status = listener->Bind(address); !status.ok()) return status;
  if (absl::Status status = listener->Listen(64); !status.ok()) return status;
  return listener;
}

absl::StatusOr<esdp::Socket> Station::Accept(esdp::Socket& listener, absl::Duration patience) {
  auto posted = listener.Accept(1, {.queue = queue_, .deadline = context_.Now() + patience});
  if (!posted.ok()) return posted.status();
  auto event = Await();
  if (!event.ok()) return event.status();
  return context_.TakeAccepted(event->accepted);
}

absl::StatusOr<esdp::Socket> Station::Connect(const esdp::Address& address,
                                              const esdp::SocketOptions& options) {
  auto socket = context_.CreateSocket(address.family(), esdp::SocketType::kStream, options);
  if (!socket.ok()) return socket.status();
  auto posted = socket->Connect(address, {queue_});
  if (!posted.ok()) return posted.status();
  if (auto event = Await(); !event.ok()) return event.status();
  return socket;
}

}  // namespace esdp_perf
