#include "impl/exs/file_send.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "impl/exs/convert.h"

namespace esdp::exs {
namespace {

constexpr size_t kPieceBytes = 256 * 1024;
constexpr size_t kOutstandingMax = 2;

}  // namespace

FileSend::FileSend(Library& library, Socket& socket, std::vector<FilePart> parts, Done done)
    : library_(library), socket_(socket), parts_(std::move(parts)), done_(std::move(done)) {}

FileSend::~FileSend() {
  for (const FilePart& part : parts_) {
    if (part.fd >= 0) close(part.fd);
  }
}

// A send of no byte finds out; then the helper goes on.
int FileSend::Begin() {
  const absl::StatusOr<OpId> asked = library_.helper().Post(
      [this](const OpArgs& args) { return socket_.SendCopy({}, SendFlags::kNone, args); },
      [](const Event&) {});
  if (!asked.ok()) return ErrnoOf(asked.status());
  library_.helper().Run([self = shared_from_this()] { self->Step(); });
  return 0;
}

void FileSend::Stop(bool abort) {
  std::vector<OpId> posted;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    aborted_ = aborted_ || abort;
    posted = posted_;
  }
  if (!abort) return;
  for (const OpId op : posted) (void)socket_.Cancel(op, CancelMode::kAbortConnection);
}

void FileSend::Step() {
  while (error_ == 0 && next_ < parts_.size() && SendNext()) continue;
  if (outstanding_ > 0 || !done_) return;
  if (error_ == 0 && next_ < parts_.size()) return;
  std::exchange(done_, nullptr)(error_, sent_);
}

// False when it has to wait for something to end.
bool FileSend::SendNext() {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) error_ = ECANCELED;
  }
  FilePart& part = parts_[next_];
  if (error_ != 0 || static_cast<size_t>(outstanding_) == kOutstandingMax) return false;
  if (part.length == 0) {
    ++next_;
    return true;
  }
  return part.fd < 0 ? SendMemory(part) : SendFromFile(part);
}

bool FileSend::SendMemory(FilePart& part) {
  part.length = 0;
  return Send(part.slice, nullptr);
}

FileSend::Piece* FileSend::FreePiece() {
  Piece* piece = pieces_[0].busy ? &pieces_[1] : pieces_.data();
  if (piece->busy) return nullptr;
  if (!piece->region.valid()) {
    absl::StatusOr<Region> made = library_.context().Allocate(kPieceBytes);
    if (!made.ok()) {
      Fail(ErrnoOf(made.status()));
      return nullptr;
    }
    piece->region = *std::move(made);
  }
  return piece;
}

bool FileSend::SendFromFile(FilePart& part) {
  Piece* piece = FreePiece();
  if (piece == nullptr) return false;
  const size_t wanted = std::min<uint64_t>(part.length, kPieceBytes);
  ssize_t got = 0;
  do {
    got = pread(part.fd, piece->region.info().base, wanted, static_cast<off_t>(part.offset));
  } while (got < 0 && errno == EINTR);
  if (got <= 0) {  // 0: the file is shorter than it was said to be
    Fail(got < 0 ? errno : EIO);
    return false;
  }
  const auto length = static_cast<uint64_t>(got);
  part.offset += length;
  part.length -= length;
  piece->busy = true;
  return Send(*piece->region.slice(0, length), piece);
}

bool FileSend::Send(const Slice& slice, Piece* piece) {
  ++outstanding_;
  const absl::StatusOr<OpId> posted = library_.helper().Post(
      [&](const OpArgs& args) { return socket_.Send(slice, SendFlags::kNone, args); },
      [self = shared_from_this(), piece](const Event& event) { self->OnSent(event, piece); });
  if (!posted.ok()) {
    --outstanding_;
    Fail(ErrnoOf(posted.status()));
    return false;
  }
  const std::lock_guard lock(mutex_);
  if (posted_.size() > kOutstandingMax) posted_.erase(posted_.begin());
  posted_.push_back(*posted);
  // Stop did not know this one if it came while it was posted.
  if (aborted_) (void)socket_.Cancel(*posted, CancelMode::kAbortConnection);
  return true;
}

void FileSend::OnSent(const Event& event, Piece* piece) {
  --outstanding_;
  if (piece != nullptr) piece->busy = false;
  sent_ += event.bytes;
  Fail(ErrnoOf(event, false));
  Step();
}

// The first cause counts.
void FileSend::Fail(int error) {
  if (error_ == 0) error_ = error;
}

}  // namespace esdp::exs
