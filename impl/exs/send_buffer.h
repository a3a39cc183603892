#ifndef ESDP_IMPL_EXS_SEND_BUFFER_H_
#define ESDP_IMPL_EXS_SEND_BUFFER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "esdp/region.h"
#include "impl/exs/inner_queue.h"

namespace esdp::exs {

class ExsSocket;

// What send(2) has taken, until the peer has it: bytes in a ring, each run of them a send behind
// what was posted before.
//
//   Owns:     its memory, from the first bytes on. It lives as long as a send of it.
//   Threads:  any.
//   Blocks:   AwaitRoom.
//   Units:    bytes.
//   Errors:   an errno, 0 for none.
class SendBuffer final : public InnerEnd, public std::enable_shared_from_this<SendBuffer> {
 public:
  static constexpr size_t kBytes = 256 * 1024;

  explicit SendBuffer(std::weak_ptr<ExsSocket> socket) : socket_(std::move(socket)) {}

  // How many of them it has taken: what there is room for. With an error none.
  size_t Put(absl::Span<const std::byte> bytes, bool urgent, int* error);
  // ETIMEDOUT, EINTR.
  int AwaitRoom(absl::Duration longest);
  // A quarter, so that a program that waits for it is not told of every byte.
  bool has_room() const { return used_.load() <= kBytes - kBytes / 4; }
  size_t unsent() const { return used_.load(); }
  // The number is closed: what is left is seen to.
  void Leave();

  void OnEnd(const exs_event_t& event) override;

 private:
  int Open();
  int Post(const Slice& slice, bool urgent);

  const std::weak_ptr<ExsSocket> socket_;
  std::mutex mutex_;
  Region region_;
  size_t head_ = 0;
  std::atomic<size_t> used_{0};
  std::deque<size_t> posted_;         // the length of each send
  std::shared_ptr<SendBuffer> kept_;  // while there are any
  bool left_ = false;
  std::atomic<uint32_t> ends_{0};  // what who waits for room sleeps on
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_SEND_BUFFER_H_
