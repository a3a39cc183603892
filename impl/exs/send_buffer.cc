#include "impl/exs/send_buffer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "impl/exs/futex.h"
#include "impl/exs/library.h"
#include "impl/exs/socket.h"

namespace esdp::exs {

// With the lock.
int SendBuffer::Open() {
  if (region_.valid()) return 0;
  absl::StatusOr<Region> made = Library::Current()->context().Allocate(kBytes);
  if (!made.ok()) return ENOBUFS;
  region_ = *std::move(made);
  return 0;
}

size_t SendBuffer::Put(absl::Span<const std::byte> bytes, bool urgent, int* error) {
  InnerQueue& inner = Library::Current()->inner();
  inner.Collect();
  size_t taken = 0;
  const std::lock_guard lock(mutex_);
  *error = Open();
  while (*error == 0 && taken < bytes.size() && used_.load() < kBytes) {
    const size_t run = std::min({bytes.size() - taken, kBytes - used_.load(), kBytes - head_});
    auto* const base = static_cast<std::byte*>(region_.info().base);
    std::copy_n(bytes.data() + taken, run, base + head_);
    const bool last = taken + run == bytes.size();
    *error = Post(*region_.slice(head_, run), urgent && last);
    if (*error != 0) break;
    taken += run;
    head_ = (head_ + run) % kBytes;
    used_.fetch_add(run);
    posted_.push_back(run);
    kept_ = shared_from_this();
  }
  if (taken > 0) *error = 0;
  return taken;
}

// With the lock.
int SendBuffer::Post(const Slice& slice, bool urgent) {
  const std::shared_ptr<ExsSocket> socket = socket_.lock();
  const std::shared_ptr<Queue> queue = Library::Current()->inner().queue();
  if (socket == nullptr) return EBADF;
  if (queue == nullptr || !queue->Reserve(1)) return ENOBUFS;
  Operation filled;
  filled.type = EXS_EVT_SEND;
  filled.inner = true;
  filled.handle = static_cast<InnerEnd*>(this);
  const SendFlags flags = urgent ? SendFlags::kUrgent : SendFlags::kNone;
  const int error =
      socket->Post(ExsSocket::Lane::kSending, *queue, filled,
                   [region = region_, slice, flags](Socket& below, const OpArgs& args) {
                     return below.Send(slice, flags, args);
                   });
  if (error != 0) queue->Release(1);
  return error;
}

void SendBuffer::OnEnd(const exs_event_t&) {
  std::shared_ptr<SendBuffer> last;
  bool left = false;
  bool makes_room = false;
  {
    const std::lock_guard lock(mutex_);
    const bool had_room = has_room();
    used_.fetch_sub(posted_.front());
    makes_room = !had_room && has_room();
    posted_.pop_front();
    if (posted_.empty()) {
      last = std::move(kept_);
      left = left_;
    }
  }
  ends_.fetch_add(1);
  FutexWakeAll(&ends_);
  if (left) Library::Current()->inner().EndInterest();
  const auto socket = makes_room ? socket_.lock() : nullptr;
  if (socket != nullptr) socket->calls().readiness().Refresh(false);
}

int SendBuffer::AwaitRoom(absl::Duration longest) {
  InnerQueue& inner = Library::Current()->inner();
  const absl::Time end = Library::Current()->context().After(longest);
  inner.BeginInterest();
  int error = 0;
  for (;;) {
    const uint32_t seen = ends_.load();
    if (used_.load() < kBytes) break;
    const absl::Duration left =
        longest == absl::InfiniteDuration() ? longest : end - Library::Current()->context().Now();
    error = left <= absl::ZeroDuration() ? ETIMEDOUT : FutexWait(&ends_, seen, left);
    if (error == ETIMEDOUT && left > absl::ZeroDuration()) continue;
    if (error != 0) break;
  }
  inner.EndInterest();
  return error;
}

void SendBuffer::Leave() {
  {
    const std::lock_guard lock(mutex_);
    if (posted_.empty() || std::exchange(left_, true)) return;
  }
  Library::Current()->inner().BeginInterest();
}

}  // namespace esdp::exs
