#include "tools/esdp_copy/sender.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "tools/esdp_copy/channel.h"
#include "tools/esdp_copy/file.h"
#include "tools/esdp_copy/progress_bar.h"

namespace esdp_copy {
namespace {

constexpr uint64_t kAnswerCookie = kDepth;   // below: the number of a piece's buffer
constexpr uint64_t kOutCookie = kDepth + 1;  // the request, and at the end the checksum

Outcome GoneForGood(const absl::Status& status) {
  return {false, false, std::string(status.message())};
}

// What happens to a connection may be over when somebody tries again; what the caller did wrong is
// not.
Outcome Lost(const absl::Status& status) {
  return {false, !absl::IsInvalidArgument(status) && !absl::IsFailedPrecondition(status),
          std::string(status.message())};
}

class Sender {
 public:
  Sender(const Options& options, std::string name, File file, uint64_t size, Channel channel)
      : options_(options),
        name_(std::move(name)),
        file_(std::move(file)),
        size_(size),
        channel_(std::move(channel)) {}

  Outcome Run() {
    if (absl::Status status = Connect(); !status.ok()) return Lost(status);
    if (absl::Status status = Ask(); !status.ok()) return Lost(status);
    if (answer_.state != Answer::State::kGoOn) return Refused();
    offset_ = std::min(answer_.offset, size_);
    if (absl::Status status = file_.AddTo(digest_, offset_); !status.ok()) {
      return GoneForGood(status);
    }
    for (size_t i = 0; i < kDepth; ++i) free_.push_back(i);
    return Stream();
  }

 private:
  absl::Status Connect() {
    auto socket = channel_.context().CreateSocket(options_.server.family());
    if (!socket.ok()) return socket.status();
    socket_ = *std::move(socket);
    return channel_.Await(socket_.Connect(options_.server, {channel_.queue()}));
  }

  // The request out, the first answer in.
  absl::Status Ask() {
    if (absl::Status status = AwaitAnswer(); !status.ok()) return status;
    Encode(Request{name_, size_, options_.resume}, channel_.out());
    const auto op =
        socket_.Send(channel_.OutSlice(), esdp::SendFlags::kNone, {channel_.queue(), kOutCookie});
    if (!op.ok()) return op.status();
    while (!answered_ || !out_is_free_) {
      if (absl::Status status = TakeEvent(); !status.ok()) return status;
    }
    answered_ = false;
    return AwaitAnswer();
  }

  absl::Status AwaitAnswer() {
    return socket_
        .Recv(channel_.InSlice(), esdp::RecvFlags::kWaitAll, {channel_.queue(), kAnswerCookie})
        .status();
  }

  Outcome Stream() {
    ProgressBar bar(name_, offset_, size_,
                    !options_.quiet && (options_.progress || isatty(STDERR_FILENO) != 0),
                    channel_.context().Now());
    while (!answered_) {
      while (posted_.ok() && !free_.empty() && offset_ < size_) {
        if (absl::Status status = SendPiece(); !status.ok()) return GoneForGood(status);
      }
      if (posted_.ok() && offset_ == size_ && !digest_sent_) SendDigest();
      if (absl::Status status = TakeEvent(); !status.ok()) return Lost(status);
      bar.Update(offset_, channel_.context().Now());
    }
    bar.Finish(offset_, channel_.context().Now());
    if (answer_.state != Answer::State::kDone) return Refused();
    channel_.Close(socket_, esdp::CloseMode::kGraceful);
    return {true, false, ""};
  }

  // Fails only if the file does. What the socket refuses ends the posting: its events tell why.
  absl::Status SendPiece() {
    const size_t buffer = free_.back();
    const size_t length = std::min<uint64_t>(size_ - offset_, kChunkBytes);
    if (absl::Status status = file_.Read(offset_, channel_.chunk(buffer), length); !status.ok()) {
      return status;
    }
    free_.pop_back();
    digest_.Add(channel_.chunk(buffer), length);
    Post(channel_.ChunkSlice(buffer, length), buffer);
    offset_ += length;
    return absl::OkStatus();
  }

  void SendDigest() {
    const Sum sum = digest_.Finish();
    std::copy(sum.begin(), sum.end(), channel_.out().begin());
    Post(channel_.OutSlice(sum.size()), kOutCookie);
    digest_sent_ = true;
  }

  void Post(const esdp::Slice& slice, uint64_t cookie) {
    const auto op = socket_.Send(slice, esdp::SendFlags::kNone, {channel_.queue(), cookie});
    if (!op.ok() && posted_.ok()) posted_ = op.status();
  }

  absl::Status TakeEvent() {
    const auto event = channel_.Next();
    if (!event.ok()) return event.status();
    if (!event->ok()) return event->status();
    if (event->type == esdp::EventType::kSend) {
      if (event->cookie < kDepth) free_.push_back(event->cookie);
      out_is_free_ |= event->cookie == kOutCookie;
    }
    if (event->type != esdp::EventType::kRecv) return absl::OkStatus();
    const auto answer = DecodeAnswer(channel_.in());
    if (event->bytes != kRecordBytes || !answer) {
      return absl::DataLossError("the server does not speak as esdp_copy does");
    }
    answer_ = *answer;
    answered_ = true;
    return absl::OkStatus();
  }

  Outcome Refused() const {
    std::string text = "the server says: " + answer_.text;
    if (answer_.again) {
      text += "; " + std::to_string(answer_.offset) + " of " + std::to_string(size_) +
              " bytes are kept there";
    }
    return {false, answer_.again, text};
  }

  const Options& options_;
  std::string name_;
  File file_;
  uint64_t size_;
  Channel channel_;
  esdp::Socket socket_;
  Digest digest_;
  std::vector<uint64_t> free_;  // buffers
  bool out_is_free_ = false;    // the request has gone
  uint64_t offset_ = 0;         // of the next piece
  bool digest_sent_ = false;
  absl::Status posted_;
  bool answered_ = false;
  Answer answer_;
};

}  // namespace

Outcome SendFile(const Options& options, const std::string& path) {
  auto file = File::OpenToRead(path);
  if (!file.ok()) return GoneForGood(file.status());
  const auto size = file->Size();
  if (!size.ok()) return GoneForGood(size.status());
  auto channel = Channel::Open(options.fabric);
  if (!channel.ok()) return GoneForGood(channel.status());
  const std::string name = std::filesystem::path(path).filename();
  return Sender(options, name, *std::move(file), *size, *std::move(channel)).Run();
}

}  // namespace esdp_copy
