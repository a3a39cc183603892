#include "tools/esdp_serve/upload.h"

#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"

namespace esdp_serve {

using esdp_files::FileExtent;
using esdp_files::Tail;

Upload::Upload(std::unique_ptr<PutFile> file, const esdp_files::wire::Put& put, Channel& channel,
               std::function<void()> changed)
    : file_(std::move(file)),
      with_crc_(put.chunk_crc()),
      syncs_on_the_way_(put.sync() == esdp_files::wire::Put::SYNC_EVERY),
      channel_(channel),
      changed_(std::move(changed)),
      chunks_(file_->chunks()) {}

void Upload::Start() {
  PostAhead();
  MaybeFinish();
}

bool Upload::IsSynced(uint64_t chunk) const {
  constexpr uint64_t kChunksBetween = 64;
  return syncs_on_the_way_ && chunk % kChunksBetween == kChunksBetween - 1;
}

void Upload::PostAhead() {
  while (!over_ && !chunks_.done() && posted_.size() < kAhead) {
    const FileExtent chunk = chunks_.Peek();
    chunks_.Skip();
    const esdp::FileSink sink{
        .fd = file_->fd(),
        .offset = chunk.offset,
        .length = chunk.length,
        .sync = IsSyncDue() ? esdp::SyncPolicy::kEnd : esdp::SyncPolicy::kNone,
        .reserve = false,
        .on_short = esdp::OnShortFile::kStop};
    if (!channel_.ReceiveFile(sink)) return;
    channel_.Receive(tails_[next_tail_++ % kAhead], esdp::RecvFlags::kWaitAll);
    posted_.push_back(chunk);
    outstanding_ += 2;
  }
}

void Upload::OnReceived(const esdp::Event& event) {
  --outstanding_;
  if (over_ || !lost_.ok()) return;
  const bool of_file = event.type == esdp::EventType::kRecvFile;
  const bool synced = of_file && IsSynced(taken_files_++);
  if (!event.ok()) {
    const bool full = event.kind == esdp::ErrorKind::kNoSpace;
    const bool failed = event.kind == esdp::ErrorKind::kFile && !event.eof();
    if (!full && !failed) return channel_.Close(esdp::CloseMode::kAbort);
    const absl::Status reason = full ? absl::ResourceExhaustedError("no room for it")
                                     : absl::DataLossError("the file cannot be written");
    return synced ? LoseAll(reason) : End(reason);
  }
  if (of_file) {
    channel_.services().metrics.received_bytes += event.bytes;
  } else if (event.bytes == esdp_files::kTailBytes) {
    OnTail();
  } else {
    channel_.Close(esdp::CloseMode::kAbort);
  }
}

void Upload::OnTail() {
  const std::span<const std::byte, esdp_files::kTailBytes> bytes(tails_[taken_tails_++ % kAhead]);
  const Tail tail = esdp_files::LoadTail(bytes);
  const FileExtent chunk = posted_.front();
  posted_.pop_front();
  if (tail.offset != chunk.offset) {
    return End(absl::InvalidArgumentError("a chunk is not where it is to be"));
  }
  if (tail.status != 0) return End(absl::CancelledError("the client cannot read on"));
  unsettled_.emplace_back(chunk, with_crc_ ? std::optional(tail.crc) : std::nullopt);
  PostAhead();
  SettleNext();
  MaybeFinish();
}

void Upload::RunStep(std::function<absl::Status()> work, void (Upload::*then)()) {
  busy_ = true;
  auto status = std::make_shared<absl::Status>();
  channel_.Run([work = std::move(work), status] { *status = work(); },
               [this, status, then] {
                 busy_ = false;
                 if (!lost_.ok()) return RemovePart();
                 if (!status->ok()) return End(*status);
                 (this->*then)();
               });
}

// A sync that fails may have lost what came before it, though that can still be read, and the next
// one would go well.
void Upload::LoseAll(const absl::Status& reason) {
  lost_ = reason;
  if (!busy_) RemovePart();
}

void Upload::RemovePart() {
  busy_ = true;
  channel_.Run([this] { file_->RemovePart(); }, [this] { End(lost_); });
}

void Upload::SettleNext() {
  if (busy_ || over_ || unsettled_.empty()) return MaybeFinish();
  const auto [chunk, crc] = unsettled_.front();
  unsettled_.pop_front();
  RunStep([this, chunk = chunk, crc = crc] { return file_->Settle(chunk, crc); },
          &Upload::SettleNext);
}

void Upload::MaybeFinish() {
  if (busy_ || over_ || !chunks_.done() || !posted_.empty() || !unsettled_.empty()) return;
  const bool drop_behind = channel_.services().options.drop_behind;
  RunStep([this, drop_behind] { return file_->Finish(drop_behind); }, &Upload::EndWell);
}

void Upload::EndWell() { End(absl::OkStatus()); }

// Whoever is told may end this.
void Upload::End(const absl::Status& status) {
  if (over_) return;
  over_ = true;
  status_ = status;
  const auto changed = changed_;
  changed();
}

}  // namespace esdp_serve
