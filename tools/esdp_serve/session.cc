#include "tools/esdp_serve/session.h"

#include <memory>
#include <span>
#include <utility>

namespace esdp_serve {

namespace wire = esdp_files::wire;

namespace {

constexpr absl::Duration kHelloWithin = absl::Seconds(5);
constexpr absl::Duration kRequestWithin = absl::Seconds(300);
constexpr absl::Duration kGoneWithin = absl::Seconds(10);  // a client that was told to go
// What a request counts for: most answers are much shorter, but it costs the file system's time.
constexpr uint64_t kRequestBytes = 64 * 1024;

}  // namespace

Session::Session(uint32_t id, esdp::Socket socket, bool welcome, Services& services)
    : channel_(id, std::move(socket), services),
      services_(services),
      welcome_(welcome),
      heard_(services.context.Now()) {
  MaybeReceive();
}

void Session::OnEvent(const esdp::Event& event) {
  if (event.type == esdp::EventType::kClose) return channel_.OnClosed();
  if (event.type == esdp::EventType::kShutdown) return;
  const bool received =
      event.type == esdp::EventType::kRecv || event.type == esdp::EventType::kRecvFile;
  if (received && upload_ && upload_->has_posted()) {
    if (!ends_) heard_ = services_.context.Now();
    upload_->OnReceived(event);
  } else if (received) {
    OnReceived(event);
  } else if (event.type == esdp::EventType::kSendFile) {
    if (download_) download_->OnSent(event);
    OnDownloadMoved();
  } else {
    services_.metrics.sent_zero_copy_bytes += event.bytes_zero_copy;
    channel_.Release(Channel::SlotOf(event));
    if (!event.ok()) Abort();
  }
  Advance();
}

void Session::OnReceived(const esdp::Event& event) {
  receiving_ = false;
  if (!ends_) heard_ = services_.context.Now();
  peer_ended_ = event.eof();
  if (!event.ok() || (ends_ && peer_ended_)) return Abort();
  if (!ends_) queue_.Add(std::span(received_).first(event.bytes));
  if (download_ && !queue_.empty() && queue_.front_is_cancelled()) download_->OnCancel();
}

void Session::MaybeReceive() {
  if (receiving_ || peer_ended_ || channel_.closing()) return;
  if (!queue_.WantsMore() && !ends_) return;
  receiving_ = true;
  channel_.Receive(received_);
}

// Asks for a slot when there is something for one.
void Session::Advance() {
  if (channel_.closing()) return;
  MaybeReceive();
  if (ends_) return;
  if (download_) {
    const uint64_t bytes = download_->wanted();
    if (bytes > 0) channel_.Want(bytes);
  } else if (upload_) {
    if (upload_->over()) channel_.Want(kRequestBytes);
  } else if (replying_) {
    return;
  } else if (!queue_.empty() || !queue_.fault().empty()) {
    channel_.Want(kRequestBytes);
  } else if (stops_ || peer_ended_) {
    BeginToEnd();
  }
}

// A connection that is closed is lost to its client with all that has not been read: so it is the
// client that closes it.
void Session::BeginToEnd() {
  ends_ = true;
  heard_ = services_.context.Now();
  if (peer_ended_) return channel_.Close(esdp::CloseMode::kGraceful);
  channel_.Shutdown();
  MaybeReceive();
}

void Session::OnSlot(uint32_t slot) {
  channel_.TakeSlot();
  if (channel_.closing() || ends_) return channel_.Release(slot);
  if (download_) {
    download_->OnSlot(slot, queue_.front_is_cancelled());
    OnDownloadMoved();
  } else if (upload_) {
    return EndPut(slot);
  } else if (!queue_.empty() && !replying_) {
    Begin(slot);
  } else if (!queue_.fault().empty()) {
    services_.metrics.clients_misbehaved += 1;
    Refuse(slot, absl::InvalidArgumentError(queue_.fault()));
    return BeginToEnd();
  } else {
    channel_.Release(slot);
  }
  Advance();
}

void Session::Begin(uint32_t slot) {
  const bool hello = queue_.front().has_hello();
  if (hello) channel_.AskShares(queue_.front().hello().weight());
  if (!welcome_) {
    services_.metrics.clients_refused += 1;
    Refuse(slot, absl::UnavailableError("the server has as many clients as it may"));
    return BeginToEnd();
  }
  if (queue_.front_is_cancelled() || (stops_ && !hello)) {
    Refuse(slot, stops_ ? absl::UnavailableError("the server is about to end")
                        : absl::CancelledError("as asked"));
    return queue_.Pop();
  }
  if (queue_.front().has_put() || queue_.front().has_make_folder()) return BeginToWrite(slot);
  if (ReplyFromCache(slot)) return;
  replying_ = true;
  auto reply = std::make_shared<Reply>();
  const std::span<std::byte> block = services_.slots.block(slot);
  const wire::Request& request = queue_.front();  // stays where it is until it is answered
  channel_.Run([this, reply, block, &request] { *reply = ReplyTo(request, services_.root, block); },
               [this, reply, slot] { OnReply(slot, std::move(*reply)); });
}

bool Session::ReplyFromCache(uint32_t slot) {
  if (!queue_.front().has_get() || queue_.front().get().whole_sha256()) return false;
  const std::string& name = queue_.front().get().name();
  const FileCache::File* const cached = services_.files.Find(name, services_.context.Now());
  if (cached == nullptr) return false;
  auto reply =
      ReplyAtOnce(queue_.front(), cached->file.get(), cached->about, services_.slots.block(slot));
  if (!reply) return services_.files.Remove(name), false;
  services_.metrics.cached_files += 1;
  OnReply(slot, *std::move(reply));
  return true;
}

void Session::OnReply(uint32_t slot, Reply reply) {
  replying_ = false;
  heard_ = services_.context.Now();
  Count(reply);
  const esdp::Slice slice = services_.slots.BlockSlice(slot, 0, reply.bytes);
  channel_.Send(slot, {&slice, 1});
  if (reply.opened != nullptr) {
    download_.emplace(std::move(reply.opened), channel_, [this] {
      OnDownloadMoved();
      Advance();
    });
  } else if (reply.tail_failed) {
    queue_.AwaitResync();
  } else {
    if (reply.small.valid()) {
      services_.files.Add(queue_.front().get().name(), std::move(reply.small), reply.small_about,
                          heard_);
    }
    queue_.Pop();
  }
  Advance();
}

void Session::OnDownloadMoved() {
  if (!download_ || download_->state() == Download::State::kFlows) return;
  const bool failed = download_->state() == Download::State::kFailed;
  download_.reset();
  heard_ = services_.context.Now();
  failed ? queue_.AwaitResync() : queue_.Pop();
}

void Session::Refuse(uint32_t slot, const absl::Status& status) {
  Say(slot, Refusal(queue_.empty() ? 0 : queue_.front().id(), status));
}

void Session::Say(uint32_t slot, const wire::Answer& answer) {
  Reply reply;
  reply.bytes = PutAnswer(answer, services_.slots.block(slot));
  reply.status = answer.status();
  Count(reply);
  const esdp::Slice slice = services_.slots.BlockSlice(slot, 0, reply.bytes);
  channel_.Send(slot, {&slice, 1});
}

void Session::BeginToWrite(uint32_t slot) {
  if (services_.options.read_only) {
    Refuse(slot, absl::PermissionDeniedError("the server only lets read"));
    return queue_.Pop();
  }
  replying_ = true;
  queue_.front().has_put() ? BeginPut(slot) : BeginMakeFolder(slot);
}

void Session::BeginMakeFolder(uint32_t slot) {
  auto status = std::make_shared<absl::Status>();
  const wire::MakeFolder& wanted = queue_.front().make_folder();
  channel_.Run([this, status, &wanted] { *status = MakeFolder(wanted, services_.root); },
               [this, status, slot] {
                 replying_ = false;
                 heard_ = services_.context.Now();
                 wire::Answer answer;
                 answer.set_id(queue_.front().id());
                 answer.set_kind(wire::FOLDER);
                 status->ok() ? Say(slot, answer) : Refuse(slot, *status);
                 queue_.Pop();
                 Advance();
               });
}

void Session::BeginPut(uint32_t slot) {
  auto file = std::make_shared<absl::StatusOr<PutFile>>(absl::UnknownError(""));
  const wire::Put& put = queue_.front().put();
  channel_.Run([this, file, &put] { *file = PutFile::Open(put, services_.root); },
               [this, file, slot] { OnPutOpened(slot, std::move(*file)); });
}

void Session::OnPutOpened(uint32_t slot, absl::StatusOr<PutFile> file) {
  replying_ = false;
  heard_ = services_.context.Now();
  if (!file.ok()) {
    Refuse(slot, file.status());
    queue_.Pop();
    return Advance();
  }
  wire::Answer answer;
  answer.set_id(queue_.front().id());
  answer.set_offset(file->offset());
  answer.set_size(file->size());
  Say(slot, answer);
  upload_.emplace(std::make_unique<PutFile>(*std::move(file)), queue_.front().put(), channel_,
                  [this] { Advance(); });
  upload_->Start();
  Advance();
}

// A Put that failed ends the connection: what of it is still to come has no place.
void Session::EndPut(uint32_t slot) {
  if (!upload_->over()) return channel_.Release(slot);
  const absl::Status status = upload_->status();
  wire::Answer answer;
  answer.set_id(queue_.front().id());
  answer.set_kind(wire::FILE);
  if (!status.ok()) {
    services_.metrics.failed_files += 1;
    Refuse(slot, status);
    return BeginToEnd();
  }
  services_.files.Clear();  // names that lead to it by links too
  Say(slot, answer);
  upload_.reset();
  queue_.Pop();
  Advance();
}

void Session::Count(const Reply& reply) {
  Metrics& metrics = services_.metrics;
  metrics.requests += 1;
  metrics.answers[static_cast<size_t>(reply.status)] += 1;
  metrics.sent_bytes += reply.file_bytes;
  if (reply.tail_failed) metrics.failed_files += 1;
}

void Session::OnTick(absl::Time now) {
  if (channel_.closing()) return;
  // An upload waits for its client.
  const bool idle =
      upload_ || (!download_ && !replying_ && queue_.empty() && !channel_.holds_slots());
  const absl::Duration patience = ends_              ? kGoneWithin
                                  : queue_.greeted() ? kRequestWithin
                                                     : kHelloWithin;
  if ((!idle && !ends_) || now - heard_ < patience) return;
  if (!ends_) services_.metrics.clients_late += 1;
  Abort();
}

void Session::Stop() {
  stops_ = true;
  Advance();
}

}  // namespace esdp_serve
