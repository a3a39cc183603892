#include "impl/exs/carried_send.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "esdp/options.h"
#include "impl/exs/convert.h"

namespace esdp::exs {
namespace {

// What is copied takes of a pool that all sockets share, of which each has 64 KiB in any case.
constexpr uint64_t kCopyBytes = 32 * 1024;
constexpr absl::Duration kAgain = absl::Milliseconds(1);

}  // namespace

CarriedSend::CarriedSend(const Place& place, Transfer transfer, Done done)
    : Carried(place, std::move(transfer), std::move(done)) {
  std::erase_if(transfer_.parts, [](const Part& part) { return part.length == 0; });
  posted_.reserve(kOutstandingMax + 1);
}

CarriedSend::~CarriedSend() {
  if (counted_) library_.helper().EndSend();
}

// A send of no byte finds out; then the helper goes on.
int CarriedSend::Begin() {
  const absl::StatusOr<OpId> asked = library_.helper().Post(
      [this](const OpArgs& args) { return socket_.SendCopy({}, SendFlags::kNone, args); },
      [](const Event&) {});
  // EAGAIN: it could, but for the memory that is copied through.
  const int error = ErrnoOf(asked.status());
  if (error != 0 && error != EAGAIN) return error;
  counted_ = true;
  library_.helper().BeginSend();
  library_.helper().Run([self = shared_from_this()] { self->Step(); });
  return 0;
}

// The newest first, so that none begins because an older one has made way; and nothing is posted
// meanwhile.
void CarriedSend::Stop(bool abort) {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  const CancelMode mode = abort ? CancelMode::kAbortConnection : CancelMode::kIfNotStarted;
  for (auto op = posted_.rbegin(); op != posted_.rend(); ++op) (void)socket_.Cancel(*op, mode);
}

void CarriedSend::Step() {
  while (end_.error == 0 && next_ < transfer_.parts.size() && SendNext()) continue;
  if (outstanding_ > 0) return;
  if (end_.error == 0 && next_ < transfer_.parts.size()) return;
  Finish();
}

// False when it has to wait for something to end.
bool CarriedSend::SendNext() {
  Part& part = transfer_.parts[next_];
  if (end_.error != 0 || outstanding_ == kOutstandingMax || file_goes_) return false;
  if (part.length == 0) {
    ++next_;
    return true;
  }
  if (const size_t end = copies() ? next_ : EndOfFiles(); end > next_) return SendFiles(end);
  if (part.file.valid()) return SendFileCopied(part);
  return part.base != nullptr ? SendUnregistered(part) : SendMemory(part);
}

bool CarriedSend::SendMemory(Part& part) {
  part.length = 0;
  return Send(part.slice, {});
}

// Two equal pieces are better than a whole one and a little.
bool CarriedSend::SendUnregistered(Part& part) {
  if (part.length < kDefaultThreshold) return SendCopied(part);
  uint64_t length = std::min(part.length, kPieceBytes);
  if (part.length > kPieceBytes && part.length < 2 * kPieceBytes) length = part.length / 2;
  Region region;
  if (!Register(part, length, &region)) return SendCopied(part);
  part.offset += length;
  part.length -= length;
  return Send(region.slice(), {.registered = length});
}

bool CarriedSend::SendCopied(Part& part) {
  const uint64_t length = std::min(part.length, kCopyBytes);
  return PostCopied(part, absl::MakeConstSpan(part.base + part.offset, length));
}

// They are taken when it returns.
bool CarriedSend::PostCopied(Part& part, absl::Span<const std::byte> bytes) {
  const uint64_t length = bytes.size();
  part.offset += length;
  part.length -= length;
  const absl::Status posted =
      Post([&](const OpArgs& args) { return socket_.SendCopy(bytes, FlagsAfter(part), args); }, {});
  if (posted.ok()) return true;
  if (ErrnoOf(posted) != EAGAIN) {
    Fail(posted);
    return false;
  }
  part.offset -= length;
  part.length += length;
  // What others hold of the pool comes back without a word.
  if (outstanding_ == 0) {
    library_.helper().RunAt(library_.context().After(kAgain),
                            [self = shared_from_this()] { self->Step(); });
  }
  return false;
}

// 0 with an error: what is left of the part is not in the file.
size_t CarriedSend::Read(const Part& part, std::byte* to, uint64_t room) {
  ssize_t got = 0;
  do {
    got = pread(part.file.get(), to, std::min(part.length, room), static_cast<off_t>(part.offset));
  } while (got < 0 && errno == EINTR);
  if (got <= 0) Fail(got < 0 ? errno : EIO);  // 0: the file is shorter than it was said to be
  return got < 0 ? 0 : static_cast<size_t>(got);
}

// Behind the next files, with the registered memory before and behind them; next_ where there are
// none.
size_t CarriedSend::EndOfFiles() const {
  const auto& parts = transfer_.parts;
  const auto is_registered = [](const Part& part) {
    return !part.file.valid() && part.base == nullptr;
  };
  const auto is_file = [](const Part& part) { return part.file.valid() && part.is_regular; };
  const auto next = parts.begin() + static_cast<ptrdiff_t>(next_);
  const auto first = std::find_if_not(next, parts.end(), is_registered);
  const auto behind = std::find_if_not(first, parts.end(), is_file);
  if (first == behind) return next_;
  return static_cast<size_t>(std::find_if_not(behind, parts.end(), is_registered) - parts.begin());
}

// As one. Nothing is posted behind it meanwhile: what follows a file that ends early must not leave.
bool CarriedSend::SendFiles(size_t end) {
  std::vector<Slice> header;
  std::vector<FileRange> ranges;
  std::vector<Slice> trailer;
  for (size_t i = next_; i < end; ++i) {
    const Part& part = transfer_.parts[i];
    if (part.file.valid()) {
      ranges.push_back({part.file.get(), part.offset, part.length});
    } else {
      (ranges.empty() ? header : trailer).push_back(part.slice);
    }
  }
  const FilePlan plan = {header, ranges, trailer, FileStrategy::kPipelined, OnShortFile::kStop};
  const absl::Status posted =
      Post([&](const OpArgs& args) { return socket_.SendFile(plan, args); }, {.is_file = true});
  if (posted.ok()) {
    file_goes_ = true;
    next_ = end;
    return false;
  }
  if (ErrnoOf(posted) != ENOBUFS) {
    Fail(posted);
    return false;
  }
  CopyFromHere();
  return true;
}

bool CarriedSend::SendFileCopied(Part& part) {
  buffer_.resize(kCopyBytes);
  const size_t got = Read(part, buffer_.data(), kCopyBytes);
  return got > 0 && PostCopied(part, absl::MakeConstSpan(buffer_.data(), got));
}

// Of the send that ends with what was taken of the part last.
SendFlags CarriedSend::FlagsAfter(const Part& part) const {
  const bool last = next_ + 1 == transfer_.parts.size() && part.length == 0;
  return last && transfer_.urgent ? SendFlags::kUrgent : SendFlags::kNone;
}

bool CarriedSend::Send(const Slice& slice, const Sent& sent) {
  const SendFlags flags = FlagsAfter(transfer_.parts[next_]);
  const absl::Status posted =
      Post([&](const OpArgs& args) { return socket_.Send(slice, flags, args); }, sent);
  if (posted.ok()) return true;
  Unregister(sent.registered);
  Fail(posted);
  return false;
}

template <typename Below>
absl::Status CarriedSend::Post(const Below& below, const Sent& sent) {
  const std::lock_guard lock(mutex_);
  if (stopped_) {
    Fail(ECANCELED);
    return absl::CancelledError("stopped");
  }
  const absl::StatusOr<OpId> posted = library_.helper().Post(
      below, [self = shared_from_this(), sent](const Event& event) { self->OnSent(event, sent); });
  if (!posted.ok()) return posted.status();
  ++outstanding_;
  if (posted_.size() > kOutstandingMax) posted_.erase(posted_.begin());
  posted_.push_back(*posted);
  return absl::OkStatus();
}

void CarriedSend::OnSent(const Event& event, const Sent& sent) {
  --outstanding_;
  if (sent.is_file) file_goes_ = false;
  Unregister(sent.registered);
  Note(event);
  Step();
}

}  // namespace esdp::exs
