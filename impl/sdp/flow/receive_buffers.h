#ifndef ESDP_IMPL_SDP_FLOW_RECEIVE_BUFFERS_H_
#define ESDP_IMPL_SDP_FLOW_RECEIVE_BUFFERS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/base/time.h"
#include "impl/sdp/common/limits.h"
#include "impl/sdp/flow/credits.h"
#include "impl/sdp/flow/receive_window.h"
#include "impl/sdp/flow/resize.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/config.h"
#include "impl/sdp/interface/input.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp {

// The private receive buffers of a connection: which of them are posted, which are free, how many
// there are, and how large they are [11]. What is posted is promised to the peer as credits, so
// each call is handed those.
//
// Buffers are numbered from 0. There is one more than are posted (kSpareReceiveBuffers). After the
// window has shrunk, those numbered higher than it has are surplus: the peer may still use them,
// and each retires when it comes back.
class ReceiveBuffers {
 public:
  explicit ReceiveBuffers(const Config& config)
      : window_(config.receive_buffers, config.receive_buffers_max),
        at_once_(config.receives_at_once),
        bytes_max_(config.receive_buffer_bytes_max),
        window_bytes_(config.receive_window_bytes) {
    resize_.Start(config.receive_buffer_bytes, bytes_max_);
  }

  // Buffers there are, surplus ones apart.
  uint32_t count() const { return uint32_t{window_.buffers()} + kSpareReceiveBuffers; }
  ReceiveWindow& window() { return window_; }
  const ReceiveWindow& window() const { return window_; }
  bool has_spare() const { return !spare_.empty(); }
  // Bytes of each that is posted from now on, header included.
  uint32_t bytes() const { return resize_.size(); }
  // Of a message that may still come, or will.
  uint32_t message_bytes_max() const { return resize_.message_bytes_max(); }

  // At the start: all that there are are free.
  void PostAll(Credits& credits, Actions& actions) {
    for (uint32_t i = 0; i < count(); ++i) spare_.PushBack(ReceiveBuffer{static_cast<uint16_t>(i)});
    PostFree(credits, actions);
  }
  // The oldest posted one has a message.
  void OnReceiveTaken() { resize_.OnReceiveTaken(); }
  // The message in this one has been dealt with; `keeps`: but for unread bytes.
  void OnDone(ReceiveBuffer buffer, bool keeps, Credits& credits, Actions& actions) {
    if (!keeps) {
      PostAgain(buffer, true, credits, actions);
    } else if (Missing(credits) > at_once_) {
      PostWaiting(credits, actions);  // this one is no more of the group
    }
  }
  // The buffer is free. It is posted if one is missing, perhaps later with others. Not `may_post`:
  // there is no queue pair to post to.
  void PostAgain(ReceiveBuffer buffer, bool may_post, Credits& credits, Actions& actions) {
    if (surplus_ != 0) return PostAgainShrunk(buffer, may_post, credits, actions);
    const bool wanted = credits.posted() + waiting_ < window_.buffers() && may_post;
    if (!wanted || Missing(credits) < at_once_) {
      spare_.PushBack(buffer);
      if (wanted) ++waiting_;
      return;
    }
    Post(buffer, credits, actions);
    if (waiting_ != 0) PostWaiting(credits, actions);
  }
  // As many free ones as are missing.
  void PostFree(Credits& credits, Actions& actions) {
    waiting_ = 0;
    while (Missing(credits) > 0 && !spare_.empty()) Post(spare_.TakeFront(), credits, actions);
  }

  // --- their number ---
  // What leaves in this step: a turn begins with a message that announces all buffers. While the
  // window awaits it.
  void NoteAnnouncement(const Actions& actions, Time now);
  // In a turn: a message has arrived that cost the peer a credit. Whether a change is due.
  [[gnu::noinline]] bool EndsTurn(const MessageArrived& arrived, Time now);
  // Asks for the memory of as many as the window is to have, unless they are of two sizes, or a
  // shrunk window's surplus is still out; and for one at a time.
  void AskForWindow(Actions& actions);

  // --- their size ---
  bool resizing() const { return resize_.pending(); }
  // Why the request is illegal, or nullptr.
  const char* OnChRcvBuf(const wire::ChRcvBuf& request, Actions& actions);
  bool answer_due() const { return resize_.due(); }
  bool resized() const { return resize_.size() != resize_.told(); }
  wire::ChRcvBufAck TakeAnswer() { return resize_.Take(); }

  // The answer to PrepareReceives.
  void OnPrepared(bool done, bool may_post, Time now, Credits& credits, Actions& actions);

  // --- the timer of a window that has grown: it shrinks where nothing has arrived for long ---
  // Not `idle`: bytes are unread, in buffers that a smaller window may not have, or are being read.
  void OnWindowTimer(bool idle, Time now, const Credits& credits, Actions& actions);
  void StopWindowTimer(Actions& actions) {
    ArmTimer(Timer::kWindow, kTimeInfinite, window_armed_, actions);
  }

  // The queue pair is gone with all that was posted; of the buffers `is_held` tells which hold
  // unread bytes, of which so many are surplus.
  template <typename IsHeld>
  void OnQueuePairLeft(IsHeld is_held, size_t surplus_held) {
    spare_.clear();
    waiting_ = 0;
    for (uint32_t i = 0; i < count(); ++i) {
      const ReceiveBuffer buffer{static_cast<uint16_t>(i)};
      if (!is_held(buffer)) spare_.PushBack(buffer);
    }
    surplus_ = static_cast<uint16_t>(surplus_held);
    window_.OnQueuePairLeft();
    const uint32_t size = bytes();
    resize_ = ResizeAnswer{};
    resize_.Start(size, bytes_max_);
  }

  bool InvariantsHold(const Credits& credits) const {
    const int32_t over = credits.posted() + waiting_ - window_.buffers();
    if (!resize_.InvariantsHold()) return false;
    if (over <= 0) [[likely]]
      return true;
    // A window that has shrunk may have its spare buffer out, too.
    return window_.adapts() && over <= surplus_ + kSpareReceiveBuffers && window_.InvariantsHold();
  }
  void AddTo(Digest& digest) const;

 private:
  // While the window shrinks, more than it has may be posted.
  uint32_t Missing(const Credits& credits) const {
    return window_.buffers() - std::min(credits.posted(), window_.buffers());
  }
  void Post(ReceiveBuffer buffer, Credits& credits, Actions& actions) const {
    credits.OnReceivePosted();
    Append<PostReceive>(actions) = {buffer, bytes()};
  }
  // Those that wait for the rest of their group.
  void PostWaiting(Credits& credits, Actions& actions) {
    for (; waiting_ > 0; --waiting_) Post(spare_.TakeBack(), credits, actions);
  }
  [[gnu::noinline]] void PostAgainShrunk(ReceiveBuffer buffer, bool may_post, Credits& credits,
                                         Actions& actions);
  void OnWindowAnswered(bool done, Actions& actions);
  void KeepOrRetire(ReceiveBuffer buffer, Actions& actions);

  ReceiveWindow window_;
  ResizeAnswer resize_;
  const uint16_t at_once_;
  const uint32_t bytes_max_;
  const uint64_t window_bytes_;
  GrowingRing<ReceiveBuffer, 32> spare_;  // free and not posted
  uint16_t waiting_ = 0;                  // of these: to be posted with others
  uint16_t surplus_ = 0;                  // posted or unread
  uint32_t last_seen_ = 0;                // MSeq of the last message when the timer was set
  Time window_armed_ = kTimeInfinite;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_FLOW_RECEIVE_BUFFERS_H_
