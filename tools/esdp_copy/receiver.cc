#include "tools/esdp_copy/receiver.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "tools/esdp_copy/channel.h"
#include "tools/esdp_copy/file.h"
#include "tools/esdp_files/file_digest.h"

namespace esdp_copy {
namespace {

// One file, from one client.
class Session {
 public:
  Session(const std::string& folder, Channel& channel, esdp::Socket socket)
      : folder_(folder), channel_(channel), socket_(std::move(socket)) {}

  // OK when the file has arrived whole. Afterwards nothing of it is in the channel any more.
  absl::Status Run() {
    absl::Status status = Take();
    channel_.Close(socket_, status.ok() ? esdp::CloseMode::kGraceful : esdp::CloseMode::kAbort);
    return status;
  }

  const Request& request() const { return request_; }
  uint64_t arrived() const { return offset_; }

 private:
  absl::Status Take() {
    if (absl::Status status = TakeRequest(); !status.ok()) return status;
    absl::Status status = Begin();
    if (!status.ok()) return Refuse(status);
    if (status = Tell({.state = Answer::State::kGoOn, .offset = offset_, .text = {}});
        !status.ok()) {
      return status;
    }
    for (int i = 0; i < kSpansOut; ++i) PostNext();
    while (offset_ < request_.size) {
      if (status = TakeSpan(); !status.ok()) return status;
    }
    return Finish();
  }

  std::string Path() const { return folder_ + "/" + request_.name; }
  std::string PartPath() const { return Path() + ".part"; }

  absl::Status TakeRequest() {
    const auto op = socket_.Recv(channel_.InSlice(), esdp::RecvFlags::kWaitAll, {channel_.queue()});
    if (absl::Status status = channel_.Await(op); !status.ok()) return status;
    const auto request = DecodeRequest(channel_.in());
    if (!request) return Refuse(absl::InvalidArgumentError("no request, or a name with a path"));
    request_ = *request;
    return absl::OkStatus();
  }

  // Opens what an earlier run has left, or anew, and takes room for the rest.
  absl::Status Begin() {
    auto file = File::OpenToWrite(PartPath());
    if (!file.ok()) return file.status();
    file_.emplace(*std::move(file));
    digest_.emplace([this](uint64_t offset, std::byte* bytes, size_t length) {
      return file_->Read(offset, bytes, length);
    });
    const auto size = file_->Size();
    if (!size.ok()) return size.status();
    if (request_.resume && *size <= request_.size) offset_ = *size;
    if (absl::Status status = file_->Truncate(offset_); !status.ok()) return status;
    digest_->Allow(offset_);
    posted_ = offset_;
    absl::Status room = file_->Reserve(offset_, request_.size - offset_);
    if (!room.ok()) file_->Truncate(offset_).IgnoreError();  // gives back what it took
    return room;
  }

  // A receive for the next span; behind the last, for the checksum. What goes wrong is told by the
  // events.
  void PostNext() {
    if (posted_ < request_.size) {
      const uint64_t length = std::min(request_.size - posted_, kSpanBytes);
      // Room was taken for the whole file; a full disk is to be told to the client.
      const esdp::FileSink span = {.fd = file_->descriptor(),
                                   .offset = posted_,
                                   .length = length,
                                   .reserve = false,
                                   .on_short = esdp::OnShortFile::kStop};
      if (Keep(socket_.RecvFile(span, {channel_.queue()}))) posted_ += length;
    } else if (!digest_posted_) {
      digest_posted_ = Keep(socket_.Recv(channel_.InSlice(esdp_files::Sum().size()),
                                         esdp::RecvFlags::kWaitAll, {channel_.queue()}));
    }
  }

  bool Keep(const absl::StatusOr<esdp::OpId>& op) {
    if (!op.ok() && post_status_.ok()) post_status_ = op.status();
    return op.ok();
  }

  // The event of the next receive, of this kind.
  absl::StatusOr<esdp::Event> AwaitReceive(esdp::EventType type) {
    for (;;) {
      auto event = channel_.Next();
      if (!event.ok()) return event.status();
      if (event->socket == socket_.id() && event->type == type) return event;
    }
  }

  absl::Status TakeSpan() {
    if (!post_status_.ok()) return post_status_;
    const auto event = AwaitReceive(esdp::EventType::kRecvFile);
    if (!event.ok()) return event.status();
    offset_ = std::max(offset_, event->file_offset);
    digest_->Allow(offset_);
    if (event->ok()) {
      PostNext();
      return absl::OkStatus();
    }
    if ((event->flags & esdp::kEof) != 0) return Early();
    const bool of_file =
        event->kind == esdp::ErrorKind::kFile || event->kind == esdp::ErrorKind::kNoSpace;
    return of_file ? Refuse(file_->Failed(event->sys_errno, "cannot be written")) : event->status();
  }

  static absl::Status Early() { return absl::AbortedError("the client ended before the file did"); }

  // Of all that has come, however long that takes.
  absl::StatusOr<esdp_files::Sum> Digest() {
    for (;;) {
      const absl::StatusOr<bool> done = digest_->WaitFor(request_.size, kPatience);
      if (!done.ok()) return done.status();
      if (*done) return digest_->Finish();
    }
  }

  absl::Status Finish() {
    if (!post_status_.ok()) return post_status_;
    const auto event = AwaitReceive(esdp::EventType::kRecv);
    if (!event.ok() || !event->ok()) return event.ok() ? event->status() : event.status();
    const absl::StatusOr<esdp_files::Sum> sum = Digest();
    if (!sum.ok()) return Refuse(sum.status());
    if (event->bytes != sum->size()) return Early();
    if (!std::equal(sum->begin(), sum->end(), channel_.in().begin())) {
      return KeepNothing(absl::DataLossError("the SHA-256 differs: nothing is kept"));
    }
    // What could not be brought to disk may be lost by now, though it can still be read.
    if (absl::Status status = file_->Sync(); !status.ok()) return KeepNothing(status);
    std::error_code error;
    std::filesystem::rename(PartPath(), Path(), error);
    if (error) return Refuse(absl::ErrnoToStatus(error.value(), Path()));
    return Tell({.state = Answer::State::kDone, .offset = offset_, .text = {}});
  }

  absl::Status KeepNothing(const absl::Status& reason) {
    offset_ = 0;
    file_->Truncate(0).IgnoreError();
    return Refuse(reason);
  }

  // Tells the client why it ends, and gives that back.
  absl::Status Refuse(const absl::Status& reason) {
    Tell({Answer::State::kFailed, WantsRoom(reason), offset_, std::string(reason.message())})
        .IgnoreError();
    return reason;
  }

  // Waits until the client's side has the answer: what follows may be the end of the connection.
  absl::Status Tell(const Answer& answer) {
    Encode(answer, channel_.out());
    const auto op =
        socket_.Send(channel_.OutSlice(), esdp::SendFlags::kNone,
                     {.queue = channel_.queue(), .complete_at = esdp::CompleteAt::kDelivered});
    return channel_.Await(op);
  }

  const std::string& folder_;
  Channel& channel_;
  esdp::Socket socket_;
  Request request_;
  std::optional<File> file_;
  std::optional<esdp_files::FileDigest> digest_;
  uint64_t offset_ = 0;  // bytes that are in the file
  uint64_t posted_ = 0;  // bytes that receives are posted for
  bool digest_posted_ = false;
  absl::Status post_status_;
};

void Report(const Session& session, const absl::Status& status) {
  const char* const name = session.request().name.c_str();
  if (status.ok()) {
    std::printf("%s: %ju bytes\n", name, static_cast<uintmax_t>(session.arrived()));
  } else {
    std::fprintf(stderr, "esdp_copy: %s: %s; %ju bytes are kept\n",
                 name[0] == '\0' ? "client" : name, std::string(status.message()).c_str(),
                 static_cast<uintmax_t>(session.arrived()));
  }
  std::fflush(stdout);
}

}  // namespace

absl::Status Serve(const Options& options) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of write
  if (!std::filesystem::is_directory(options.folder)) {
    return absl::NotFoundError(options.folder + ": no such folder");
  }
  const auto address = esdp::Address::Parse(options.listen);
  if (!address.ok()) return address.status();
  auto channel = Channel::Open(options.fabric);
  if (!channel.ok()) return channel.status();
  auto listener = channel->context().CreateSocket(address->family());
  if (!listener.ok()) return listener.status();
  if (absl::Status status = listener->Bind(*address); !status.ok()) return status;
  constexpr int kBacklog = 16;
  if (absl::Status status = listener->Listen(kBacklog); !status.ok()) return status;
  std::printf("listening on %s\n", listener->local().ToString().c_str());
  std::fflush(stdout);
  const auto accepts = listener->Accept(0, {channel->queue()});
  if (!accepts.ok()) return accepts.status();
  for (int served = 0; options.sessions == 0 || served < options.sessions; ++served) {
    const auto arrived = channel->NextArrived();
    if (!arrived.ok()) return arrived.status();
    auto socket = channel->context().TakeAccepted(*arrived);
    if (!socket.ok()) continue;  // it was gone before it was taken
    Session session(options.folder, *channel, *std::move(socket));
    Report(session, session.Run());
  }
  return channel->context().Close(channel->context().Now() + kClosePatience);
}

}  // namespace esdp_copy
