#include "tools/esdp_get/connection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace esdp_get {

namespace wire = esdp_files::wire;

namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kBufferBytes = 72 * 1024;  // an answer and a small file
constexpr absl::Duration kClosePatience = absl::Seconds(5);

absl::Status Misbehaves(const std::string& what) {
  return absl::DataLossError("the server does not speak as esdp_serve does: " + what);
}

}  // namespace

absl::Status StatusOf(wire::Status status, const std::string& text) {
  switch (status) {
    case wire::OK:
      return absl::OkStatus();
    case wire::NOT_FOUND:
      return absl::NotFoundError(text);
    case wire::PERMISSION_DENIED:
      return absl::PermissionDeniedError(text);
    case wire::INVALID:
      return absl::InvalidArgumentError(text);
    case wire::UNIMPLEMENTED:
      return absl::UnimplementedError(text);
    case wire::UNAVAILABLE:
      return absl::UnavailableError(text);
    case wire::CHANGED:
      return absl::AbortedError(text);
    case wire::NO_SPACE:
      return absl::ResourceExhaustedError(text);
    case wire::CANCELLED:
      return absl::CancelledError(text);
    case wire::EXISTS:
      return absl::AlreadyExistsError(text);
    default:
      return absl::DataLossError(text);
  }
}

absl::Status StatusOf(const wire::Answer& answer) {
  return StatusOf(answer.status(), answer.text());
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& fabric,
                                                             const esdp::Address& server,
                                                             uint32_t weight) {
  auto connection = std::make_unique<Connection>();
  if (absl::Status status = connection->Connect(fabric, server); !status.ok()) return status;
  if (absl::Status status = connection->Greet(weight); !status.ok()) return status;
  return connection;
}

Connection::~Connection() {
  const esdp::OpArgs args{.queue = queue_, .deadline = context_.Now() + kClosePatience};
  const auto op = socket_.Close(esdp::CloseMode::kAbort, args);
  if (op.ok()) Await(*op).IgnoreError();
}

absl::Status Connection::Connect(const std::string& fabric, const esdp::Address& server) {
  auto context = esdp::Context::Open({.fabric = fabric});
  if (!context.ok()) return context.status();
  context_ = *std::move(context);
  auto queue = context_.CreateQueue({});
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  auto socket = context_.CreateSocket(server.family());
  if (!socket.ok()) return socket.status();
  socket_ = *std::move(socket);
  buffer_.resize(kBufferBytes);
  const auto op = socket_.Connect(server, Args());
  if (!op.ok()) return op.status();
  const auto event = Await(*op);
  return event.ok() ? event->status() : event.status();
}

absl::Status Connection::Greet(uint32_t weight) {
  wire::Request request;
  request.mutable_hello()->set_version(kVersion);
  request.mutable_hello()->set_weight(weight);
  const auto answer = Get(std::move(request));
  if (!answer.ok()) return answer.status();
  if (answer->status() != wire::OK) return StatusOf(*answer);
  if (answer->version() != kVersion) return Misbehaves("it speaks another version");
  constexpr uint32_t kMost = 1024;
  requests_max_ = std::clamp(answer->requests_max(), 1u, kMost);
  features_ = answer->features();
  return absl::OkStatus();
}

absl::StatusOr<esdp::Event> Connection::Await(esdp::OpId op) {
  while (true) {
    if (const auto found = ended_.find(static_cast<uint64_t>(op)); found != ended_.end()) {
      const esdp::Event event = found->second;
      ended_.erase(found);
      return event;
    }
    esdp::Event event;
    const auto count =
        queue_.Dequeue(absl::MakeSpan(&event, 1), {.deadline = context_.Now() + patience_});
    if (absl::IsDeadlineExceeded(count.status())) {
      return absl::UnavailableError("the server says nothing");
    }
    if (!count.ok()) return count.status();
    const bool wanted =
        event.op == op || event.op == last_send_ || event.type != esdp::EventType::kSend;
    if (wanted) ended_[static_cast<uint64_t>(event.op)] = event;
  }
}

absl::Status Connection::Send(const wire::Request& request) {
  const std::string frame = esdp_files::ToFrame(request);
  if (frame.empty()) return absl::InvalidArgumentError("the request is too long");
  while (true) {
    const auto op = socket_.SendCopy(
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(frame.data()), frame.size()),
        esdp::SendFlags::kNone, Args());
    if (op.ok()) {
      ended_.erase(static_cast<uint64_t>(last_send_));
      last_send_ = *op;
      return absl::OkStatus();
    }
    // No room for its copy, before those have gone that were sent.
    if (!absl::IsResourceExhausted(op.status()) || last_send_ == esdp::OpId::kNone) {
      return op.status();
    }
    const auto event = Await(std::exchange(last_send_, esdp::OpId::kNone));
    if (!event.ok()) return event.status();
    if (!event->ok()) return event->status();
  }
}

absl::Status Connection::Ask(wire::Request request) {
  request.set_id(next_id_++);
  absl::Status status = Send(request);
  asked_.push_back(std::move(request));
  return status;
}

absl::Status Connection::Listen() {
  if (fill_ != esdp::OpId::kNone) return absl::OkStatus();
  const auto op = socket_.RecvCopy(absl::MakeSpan(buffer_), esdp::RecvFlags::kNone, Args());
  if (op.ok()) fill_ = *op;
  return op.status();
}

absl::Status Connection::Fill() {
  if (absl::Status status = Listen(); !status.ok()) return status;
  const auto event = Await(std::exchange(fill_, esdp::OpId::kNone));
  if (!event.ok()) return event.status();
  if (!event->ok()) return event->status();
  if (event->bytes == 0) return absl::UnavailableError("the server has ended the connection");
  reader_.Add(std::span(buffer_).first(event->bytes));
  return absl::OkStatus();
}

absl::StatusOr<wire::Answer> Connection::NextAnswer(bool another_follows) {
  auto answer = asked_.empty() ? ReadAnswer(std::nullopt) : ReadAnswer(asked_.front().id());
  if (!answer.ok()) return answer;
  if (!another_follows || answer->status() != wire::OK) asked_.pop_front();
  return answer;
}

absl::StatusOr<wire::Answer> Connection::SecondAnswer(uint64_t id) {
  patience_ = absl::InfiniteDuration();
  auto answer = ReadAnswer(id);
  patience_ = kPatience;
  return answer;
}

absl::StatusOr<wire::Answer> Connection::ReadAnswer(std::optional<uint64_t> id) {
  wire::Answer answer;
  while (true) {
    if (const auto frame = reader_.Next()) {
      if (!answer.ParseFromArray(frame->data(), static_cast<int>(frame->size()))) {
        return Misbehaves("a frame is no answer");
      }
      break;
    }
    if (reader_.bad()) return Misbehaves("a frame is empty, or longer than 65536 bytes");
    if (absl::Status status = Fill(); !status.ok()) return status;
  }
  const bool expected = id && answer.id() == *id;
  // What a server says to no request at all is why it ends the connection.
  if (!expected && answer.id() == 0 && answer.status() != wire::OK) return StatusOf(answer);
  if (!expected) return Misbehaves("an answer to another request");
  return answer;
}

absl::StatusOr<wire::Answer> Connection::Get(wire::Request request) {
  if (absl::Status status = Ask(std::move(request)); !status.ok()) return status;
  return NextAnswer();
}

absl::Status Connection::Resync() {
  std::deque<wire::Request> again = std::exchange(asked_, {});
  wire::Request request;
  request.mutable_resync();
  const auto answer = Get(std::move(request));
  if (!answer.ok()) return answer.status();
  while (!again.empty()) {
    if (absl::Status status = Send(again.front()); !status.ok()) return status;
    asked_.push_back(std::move(again.front()));
    again.pop_front();
  }
  return absl::OkStatus();
}

absl::Status Connection::ReadRaw(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    if (reader_.left() == 0) {
      if (absl::Status status = Fill(); !status.ok()) return status;
    }
    const std::string_view some = reader_.TakeRaw(std::min(reader_.left(), bytes.size()));
    std::copy_n(reinterpret_cast<const std::byte*>(some.data()), some.size(), bytes.begin());
    bytes = bytes.subspan(some.size());
  }
  return absl::OkStatus();
}

}  // namespace esdp_get
