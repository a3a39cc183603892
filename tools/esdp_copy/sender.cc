#include "tools/esdp_copy/sender.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "tools/esdp_copy/channel.h"
#include "tools/esdp_copy/file.h"
#include "tools/esdp_copy/progress_bar.h"
#include "tools/esdp_files/file_digest.h"

namespace esdp_copy {
namespace {

constexpr uint64_t kOutCookie = 1;  // of the request, and at the end of the checksum
constexpr absl::Duration kDraw = absl::Milliseconds(100);

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
        digest_([this](uint64_t offset, std::byte* bytes, size_t length) {
          return file_.Read(offset, bytes, length);
        }),
        channel_(std::move(channel)) {}

  Outcome Run() {
    if (absl::Status status = Connect(); !status.ok()) return Lost(status);
    if (absl::Status status = Ask(); !status.ok()) return Lost(status);
    if (answer_.state != Answer::State::kGoOn) return Refused();
    offset_ = std::min(answer_.offset, size_);
    digest_.Allow(offset_);
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
    return socket_.Recv(channel_.InSlice(), esdp::RecvFlags::kWaitAll, {channel_.queue()}).status();
  }

  Outcome Stream() {
    ProgressBar bar(name_, offset_, size_,
                    !options_.quiet && (options_.progress || isatty(STDERR_FILENO) != 0),
                    channel_.context().Now());
    while (!answered_) {
      while (posted_.ok() && lost_.ok() && spans_ < kSpansOut && offset_ < size_) SendSpan();
      if (absl::Status status = TakeEvents(); !status.ok()) return Lost(status);
      if (!file_status_.ok()) return GoneForGood(file_status_);
      const absl::StatusOr<bool> summed = digest_.WaitFor(size_, absl::ZeroDuration());
      if (!summed.ok()) return GoneForGood(summed.status());
      if (posted_.ok() && *summed && offset_ == size_ && !digest_sent_) SendDigest();
      bar.Update(std::min(offset_, digest_.done()), channel_.context().Now());
    }
    bar.Finish(offset_, channel_.context().Now());
    if (answer_.state != Answer::State::kDone) return Refused();
    channel_.Close(socket_, esdp::CloseMode::kGraceful);
    return {true, false, ""};
  }

  // What the socket refuses ends the posting: its events tell why.
  void SendSpan() {
    const uint64_t length = std::min(size_ - offset_, kSpanBytes);
    const std::array<esdp::FileRange, 1> span = {
        esdp::FileRange{file_.descriptor(), offset_, length}};
    Keep(socket_.SendFile({.ranges = span}, {channel_.queue()}));
    ++spans_;
    offset_ += length;
    digest_.Allow(offset_);
  }

  void SendDigest() {
    const esdp_files::Sum sum = digest_.Finish();
    std::copy(sum.begin(), sum.end(), channel_.out().begin());
    Keep(socket_.Send(channel_.OutSlice(sum.size()), esdp::SendFlags::kNone,
                      {channel_.queue(), kOutCookie}));
    digest_sent_ = true;
  }

  void Keep(const absl::StatusOr<esdp::OpId>& op) {
    if (!op.ok() && posted_.ok()) posted_ = op.status();
  }

  // Waits for one while the transfer goes on, and for the checksum where that is what is missing.
  absl::Status TakeEvents() {
    if (spans_ > 0 || digest_sent_ || !posted_.ok()) return TakeEvent();
    const absl::StatusOr<bool> summed = digest_.WaitFor(size_, kDraw);
    if (!summed.ok()) return absl::OkStatus();  // the caller asks again
    while (const auto event = channel_.TryNext()) {
      if (absl::Status status = Take(*event); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status TakeEvent() {
    const auto event = channel_.Next();
    return event.ok() ? Take(*event) : event.status();
  }

  absl::Status Take(const esdp::Event& event) {
    if (event.type == esdp::EventType::kSendFile) --spans_;
    if (event.kind == esdp::ErrorKind::kFile) {
      const bool shorter = file_.Size().value_or(size_) < size_;
      file_status_ = file_.Failed(shorter ? 0 : event.sys_errno, "cannot be read");
      return absl::OkStatus();
    }
    if (!event.ok()) {
      if (lost_.ok()) lost_ = event.status();
      return spans_ > 0 ? absl::OkStatus() : lost_;  // one of them may tell more: of the file
    }
    out_is_free_ |= event.cookie == kOutCookie;
    if (event.type != esdp::EventType::kRecv) return absl::OkStatus();
    const auto answer = DecodeAnswer(channel_.in());
    if (event.bytes != kRecordBytes || !answer) {
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
  esdp_files::FileDigest digest_;
  Channel channel_;
  esdp::Socket socket_;
  int spans_ = 0;             // that are out
  bool out_is_free_ = false;  // the request has gone
  uint64_t offset_ = 0;       // of the next span
  absl::Status file_status_;
  absl::Status lost_;  // what the first operation ended with that failed
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
