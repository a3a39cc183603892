#ifndef ESDP_IMPL_EXS_CALL_STATE_H_
#define ESDP_IMPL_EXS_CALL_STATE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/time/time.h"
#include "impl/exs/readiness.h"
#include "impl/exs/send_buffer.h"
#include "impl/exs/transfer.h"

namespace esdp::exs {

// What calls of libc have made of a socket.
//
//   Owns:     what send(2) has taken.
//   Threads:  any.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   -
class CallState {
 public:
  CallState(ExsSocket& socket, Place& place) : readiness_(socket, place) {}

  Readiness& readiness() { return readiness_; }

  // SO_RCVTIMEO, SO_SNDTIMEO; 0: without end.
  absl::Duration timeout(Way way) const { return absl::Microseconds(timeouts_[Index(way)].load()); }
  void SetTimeout(Way way, absl::Duration timeout) {
    timeouts_[Index(way)].store(absl::ToInt64Microseconds(timeout));
  }
  // shutdown(2).
  bool receive_shut() const { return shut_[Index(Way::kReceiving)].load(); }
  bool send_shut() const { return shut_[Index(Way::kSending)].load(); }
  void Shut(Way way) { shut_[Index(way)].store(true); }
  bool connecting() const { return connecting_.load(); }
  void SetConnecting(bool connecting) { connecting_.store(connecting); }
  // SO_ERROR, which the call that reads it takes.
  void SetError(int error) { error_.store(error); }
  int TakeError() { return error_.exchange(0); }

  // Made at the first call.
  std::shared_ptr<SendBuffer> buffer(const std::weak_ptr<ExsSocket>& socket);
  bool has_room() const;
  size_t unsent() const;
  // The number is closed.
  void Leave();

 private:
  static size_t Index(Way way) { return static_cast<size_t>(way); }

  std::atomic<int64_t> timeouts_[2] = {0, 0};  // us
  std::atomic<bool> shut_[2] = {false, false};
  std::atomic<bool> connecting_{false};
  std::atomic<int> error_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<SendBuffer> buffer_;
  Readiness readiness_;
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_CALL_STATE_H_
