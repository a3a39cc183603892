#ifndef ESDP_IMPL_SOCKETS_BLOCKING_URGENT_MARK_H_
#define ESDP_IMPL_SOCKETS_BLOCKING_URGENT_MARK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "impl/sockets/blocking/lane.h"

namespace esdp::sockets {

class ContextState;
class StreamState;

// The last urgent byte that has come to a blocking stream, and those that are announced and have not.
//
//   Owns:     the queue in which it hears of them, from the first one on.
//   Threads:  any.
//   Blocks:   never.
//   Units:    –
//   Errors:   Take: those of Stream::ReadUrgent.
class UrgentMark {
 public:
  UrgentMark(std::shared_ptr<ContextState> context, StreamState& stream)
      : context_(std::move(context)), stream_(stream) {}

  // Takes the announcements from the connection, which shows each until then.
  void Hear();
  // One is announced whose byte the reader has not met.
  bool awaited() const;
  // The reader has met the byte.
  void Meet(std::byte byte);
  // A read has gone past it and has found nothing there: it can still be taken, and is not shown.
  void Pass() { state_.fetch_or(kPassed); }
  // A read has gone on behind it.
  void Forget() { state_.store(0); }
  bool any() const { return state_.load(std::memory_order_relaxed) != 0; }
  // Beside what the connection shows: there is one to take, or to come, that no read has passed.
  bool shows() const {
    return (state_.load(std::memory_order_relaxed) & (kHere | kTaken | kPassed)) == kHere ||
           heard_.load(std::memory_order_relaxed) > 0;
  }
  // `keep`: it is only looked at.
  absl::StatusOr<std::byte> Take(bool keep);

 private:
  enum : uint32_t { kByte = 0xFF, kHere = 0x100, kTaken = 0x200, kPassed = 0x400 };

  const std::shared_ptr<ContextState> context_;
  StreamState& stream_;
  std::atomic<uint32_t> state_{0};
  std::atomic<int64_t> heard_{0};  // announcements, less the bytes that were met
  std::mutex mutex_;
  std::unique_ptr<Lane> lane_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BLOCKING_URGENT_MARK_H_
