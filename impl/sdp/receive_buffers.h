#ifndef ESDP_IMPL_SDP_RECEIVE_BUFFERS_H_
#define ESDP_IMPL_SDP_RECEIVE_BUFFERS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/base/time.h"
#include "impl/sdp/common/limits.h"
#include "impl/sdp/credits.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/config.h"
#include "impl/sdp/receive_window.h"

namespace esdp::sdp {

// The private receive buffers of a connection: which of them are posted, which are free, and how
// many there are. What is posted is promised to the peer as credits, so each call is handed those.
//
// Buffers are numbered from 0. There is one more than are posted (kSpareReceiveBuffers). After the
// window has shrunk, those numbered higher than it has are surplus: the peer may still use them,
// and each retires when it comes back.
class ReceiveBuffers {
 public:
  explicit ReceiveBuffers(const Config& config)
      : window_(config.receive_buffers, config.receive_buffers_max),
        at_once_(config.receives_at_once) {}

  // Buffers there are, surplus ones apart.
  uint32_t count() const { return uint32_t{window_.buffers()} + kSpareReceiveBuffers; }
  ReceiveWindow& window() { return window_; }
  const ReceiveWindow& window() const { return window_; }
  bool has_spare() const { return !spare_.empty(); }
  bool has_surplus() const { return surplus_ > 0; }
  bool LacksMoreThanAGroup(const Credits& credits) const { return Missing(credits) > at_once_; }

  // At the start: all that there are are free.
  void PostAll(uint32_t bytes, Credits& credits, Actions& actions) {
    for (uint32_t i = 0; i < count(); ++i) spare_.PushBack(ReceiveBuffer{static_cast<uint16_t>(i)});
    PostFree(bytes, credits, actions);
  }
  // The buffer is free. It is posted if one is missing, perhaps later with others; `bytes` is the
  // size that buffers are posted in. Not `may_post`: there is no queue pair to post to.
  void PostAgain(ReceiveBuffer buffer, bool may_post, uint32_t bytes, Credits& credits,
                 Actions& actions) {
    if (surplus_ != 0) return PostAgainShrunk(buffer, may_post, bytes, credits, actions);
    const bool wanted = credits.posted() + waiting_ < window_.buffers() && may_post;
    if (!wanted || Missing(credits) < at_once_) {
      spare_.PushBack(buffer);
      if (wanted) ++waiting_;
      return;
    }
    Post(buffer, bytes, credits, actions);
    if (waiting_ != 0) PostWaiting(bytes, credits, actions);
  }
  // Those that wait for the rest of their group.
  void PostWaiting(uint32_t bytes, Credits& credits, Actions& actions) {
    for (; waiting_ > 0; --waiting_) Post(spare_.TakeBack(), bytes, credits, actions);
  }
  // As many free ones as are missing.
  void PostFree(uint32_t bytes, Credits& credits, Actions& actions) {
    waiting_ = 0;
    while (Missing(credits) > 0 && !spare_.empty()) {
      Post(spare_.TakeFront(), bytes, credits, actions);
    }
  }

  // A message has left, with this header: a turn begins if it announces all buffers.
  [[gnu::noinline]] void MayBeginTurn(const wire::BaseHeader& header, const Credits& credits,
                                      Time now) {
    if (!AllPosted(credits)) return;
    window_.OnAnnounced(header.sequence, header.acknowledged + header.buffers, now);
  }
  // In a turn: a message has arrived that cost the peer a credit: Data with so much payload, or
  // another. Whether a change of the window is due.
  [[gnu::noinline]] bool EndsTurn(const wire::BaseHeader& header, std::optional<uint32_t> payload,
                                  uint32_t bytes, Time now) {
    const uint32_t each = bytes - uint32_t{wire::kBaseHeaderBytes};
    const uint64_t all = uint64_t{window_.buffers()} * each;
    if (payload) {
      window_.OnPayload(header.sequence, *payload, all, now);
    } else {
      window_.OnAdvert(header.sequence, header.acknowledged, each, all, now);
    }
    return window_.due();
  }
  // The window's answer: more buffers are there, or some are surplus from now on.
  void OnWindowAnswered(bool done, Actions& actions);
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
  }

  bool InvariantsHold(const Credits& credits) const {
    const int32_t over = credits.posted() + waiting_ - window_.buffers();
    if (over <= 0) [[likely]]
      return true;
    // A window that has shrunk may have its spare buffer out, too.
    return window_.adapts() && over <= surplus_ + kSpareReceiveBuffers && window_.InvariantsHold();
  }
  void AddTo(Digest& digest) const;

 private:
  bool AllPosted(const Credits& credits) const {
    return credits.posted() + waiting_ == window_.buffers();
  }
  // While the window shrinks, more than it has may be posted.
  uint32_t Missing(const Credits& credits) const {
    return window_.buffers() - std::min(credits.posted(), window_.buffers());
  }
  static void Post(ReceiveBuffer buffer, uint32_t bytes, Credits& credits, Actions& actions) {
    credits.OnReceivePosted();
    Append<PostReceive>(actions) = {buffer, bytes};
  }
  [[gnu::noinline]] void PostAgainShrunk(ReceiveBuffer buffer, bool may_post, uint32_t bytes,
                                         Credits& credits, Actions& actions);
  void KeepOrRetire(ReceiveBuffer buffer, Actions& actions);

  ReceiveWindow window_;
  const uint16_t at_once_;
  GrowingRing<ReceiveBuffer, 32> spare_;  // free and not posted
  uint16_t waiting_ = 0;                  // of these: to be posted with others
  uint16_t surplus_ = 0;                  // posted or unread
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_RECEIVE_BUFFERS_H_
