#include "tools/esdp_serve/download.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>

namespace esdp_serve {

namespace wire = esdp_files::wire;
using esdp_files::FileExtent;
using esdp_files::kTailBytes;
using esdp_files::Tail;

namespace {

constexpr uint64_t kDropStep = uint64_t{8} << 20;

}  // namespace

Download::Download(std::unique_ptr<OpenedFile> opened, Channel& channel,
                   std::function<void()> changed)
    : opened_(std::move(opened)),
      channel_(channel),
      changed_(std::move(changed)),
      chunks_ended_(opened_->chunks.done()) {
  if (!opened_->with_sha256) return;
  digest_ = std::make_shared<WholeDigest>(opened_);
  SumNext();
}

uint64_t Download::wanted() const {
  if (state_ != State::kFlows || busy_ || broken_) return 0;
  if (IsSumDue()) return kBlockBytes;
  return opened_->chunks.done() ? 0 : opened_->chunks.Peek().length;
}

void Download::OnSlot(uint32_t slot, bool cancelled) {
  if (wanted() == 0) return channel_.Release(slot);
  if (IsSumDue()) return SendSum(slot);
  if (cancelled) return Break({slot, opened_->chunks.Peek(), 0, wire::CANCELLED});
  opened_->with_crc ? ReadSummed(slot) : SendChunk(slot);
}

// The last one has its tail by itself, when it is known that the file is still the same.
void Download::SendChunk(uint32_t slot) {
  const FileExtent chunk = opened_->chunks.Peek();
  opened_->chunks.Skip();
  const bool last = opened_->chunks.done();
  esdp_files::StoreTail({.offset = chunk.offset},
                        channel_.services().slots.block(slot).first<kTailBytes>());
  const esdp::Slice tail = channel_.services().slots.BlockSlice(slot, 0, kTailBytes);
  const esdp::FileRange range{opened_->file.get(), chunk.offset, chunk.length};
  esdp::FilePlan plan{.ranges = {&range, 1}, .on_short = esdp::OnShortFile::kStop};
  if (!last) plan.trailer = {&tail, 1};
  if (!channel_.SendFile(slot, plan)) return Break({slot, chunk, 0, wire::FAILED});
  sent_.push_back(chunk);
}

void Download::OnSent(const esdp::Event& event) {
  const uint32_t slot = Channel::SlotOf(event);
  const FileExtent chunk = sent_.front();
  sent_.pop_front();
  channel_.services().metrics.sent_bytes += std::min(event.bytes, chunk.length);
  channel_.services().metrics.sent_zero_copy_bytes += event.bytes_zero_copy;
  if (event.ok()) DropBehind(chunk.offset + chunk.length, sent_.empty() && opened_->chunks.done());
  if (event.ok() && sent_.empty() && opened_->chunks.done() && !broken_)
    return CheckEnd(slot, chunk);
  if (event.kind == esdp::ErrorKind::kFile) {
    return Break({slot, chunk, event.bytes, wire::FAILED});
  }
  channel_.Release(slot);
  // kCancelled: behind a file that ended early. Anything else: the connection has ended.
  if (!event.ok() && event.kind != esdp::ErrorKind::kCancelled) {
    if (broken_) channel_.Release(std::exchange(broken_, std::nullopt)->slot);
    return channel_.Close(esdp::CloseMode::kAbort);
  }
  MaybeSendFiller();
}

void Download::ReadSummed(uint32_t slot) {
  const FileExtent chunk = opened_->chunks.Peek();
  if (!channel_.services().slots.MakeChunkRoom(slot).ok()) {
    return Break({slot, chunk, 0, wire::UNAVAILABLE});
  }
  opened_->chunks.Skip();
  busy_ = true;
  auto status = std::make_shared<wire::Status>(wire::OK);
  const std::span<std::byte> room = channel_.services().slots.chunk(slot);
  const bool last = opened_->chunks.done();
  const auto read = [this, chunk, last, room, status] {
    *status = ReadChunk(*opened_, chunk, last, room);
  };
  channel_.Run(read, [this, chunk, last, slot, status] {
    busy_ = false;
    channel_.services().metrics.sent_bytes += chunk.length;
    DropBehind(chunk.offset + chunk.length, last);
    const auto whole = channel_.services().slots.ChunkSlice(slot, chunk.length + kTailBytes);
    channel_.Send(slot, {&whole, 1});
    if (last || *status != wire::OK) EndChunks(*status);
    TellChanged();
  });
}

void Download::CheckEnd(uint32_t slot, const FileExtent& chunk) {
  busy_ = true;
  auto status = std::make_shared<wire::Status>(wire::OK);
  channel_.Run([this, status] { *status = CheckUnchanged(*opened_); },
               [this, status, slot, chunk] {
                 busy_ = false;
                 SendTail(slot, chunk, *status);
                 EndChunks(*status);
                 TellChanged();
               });
}

void Download::SendTail(uint32_t slot, const FileExtent& chunk, wire::Status status) {
  const Tail tail{.status = static_cast<uint32_t>(status), .offset = chunk.offset};
  esdp_files::StoreTail(tail, channel_.services().slots.block(slot).first<kTailBytes>());
  const auto slice = channel_.services().slots.BlockSlice(slot, 0, kTailBytes);
  channel_.Send(slot, {&slice, 1});
}

void Download::Break(const Broken& broken) {
  // An earlier chunk than the one that could not be posted.
  if (broken_) channel_.Release(broken_->slot);
  broken_ = broken;
  MaybeSendFiller();
}

// Behind what went before: those of SendFile have ended when it goes.
void Download::MaybeSendFiller() {
  if (!broken_ || !sent_.empty()) return;
  Slots& slots = channel_.services().slots;
  const Tail tail{.status = static_cast<uint32_t>(broken_->status),
                  .offset = broken_->chunk.offset};
  esdp_files::StoreTail(tail, slots.block(broken_->slot).first<kTailBytes>());
  const std::array<esdp::Slice, 2> slices = {slots.Zeros(broken_->chunk.length - broken_->gone),
                                             slots.BlockSlice(broken_->slot, 0, kTailBytes)};
  const bool nothing = broken_->gone == broken_->chunk.length;
  channel_.Send(broken_->slot, std::span(slices).subspan(nothing ? 1 : 0));
  End(broken_->status);
}

// One part after the other, each behind what others have asked of the workers meanwhile.
void Download::SumNext() {
  channel_.Run([digest = digest_] { digest->AddNext(); },
               [this, alive = std::weak_ptr<bool>(alive_)] {
                 if (alive.expired() || channel_.closing()) return;
                 summed_ = digest_->done();
                 summed_ ? TellChanged() : SumNext();
               });
}

void Download::OnCancel() {
  if (digest_ != nullptr) digest_->Cancel();
}

bool Download::IsSumDue() const { return summed_ && chunks_ended_; }

void Download::SendSum(uint32_t slot) {
  const wire::Status status = digest_->status();
  wire::Answer answer;
  answer.set_id(opened_->request);
  answer.set_status(status);
  answer.set_size(static_cast<uint64_t>(opened_->about.st_size));
  answer.set_etag(opened_->etag);
  if (status == wire::OK) {
    const esdp_files::Sum& sum = digest_->sum();
    answer.set_sha256(sum.data(), sum.size());
  } else {
    answer.set_text(status == wire::CHANGED     ? "the file was written to meanwhile"
                    : status == wire::CANCELLED ? "as asked"
                                                : "the server cannot read all of it");
    channel_.services().metrics.failed_files += 1;
  }
  const size_t bytes = PutAnswer(answer, channel_.services().slots.block(slot));
  const auto slice = channel_.services().slots.BlockSlice(slot, 0, bytes);
  channel_.Send(slot, {&slice, 1});
  state_ = State::kEnded;  // an answer of its own: the connection goes on whatever it says
}

void Download::EndChunks(wire::Status status) {
  chunks_ended_ = true;
  if (status != wire::OK || digest_ == nullptr) End(status);
}

// Extents come in order. The page cache has units of several MiB, and forgets none of which a part
// is asked for: so all before the end, each time; what has gone costs nothing. Nobody waits for it.
void Download::DropBehind(uint64_t end, bool last) {
  if (!channel_.services().options.drop_behind) return;
  if (!last && end - dropped_ < kDropStep) return;
  channel_.Run(
      [opened = opened_, end] {
        (void)posix_fadvise(opened->file.get(), 0, static_cast<off_t>(end), POSIX_FADV_DONTNEED);
      },
      [] {});
  dropped_ = end;
}

// Whoever is told may end this.
void Download::TellChanged() {
  const auto changed = changed_;
  changed();
}

void Download::End(wire::Status status) {
  state_ = status == wire::OK ? State::kEnded : State::kFailed;
  if (status != wire::OK) channel_.services().metrics.failed_files += 1;
}

}  // namespace esdp_serve
