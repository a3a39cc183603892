#ifndef ESDP_IMPL_SDP_FLOW_RECEIVE_WINDOW_H_
#define ESDP_IMPL_SDP_FLOW_RECEIVE_WINDOW_H_

#include <cstdint>

#include "impl/base/digest.h"
#include "impl/base/time.h"
#include "impl/sdp/common/limits.h"

namespace esdp::sdp {

// How many private receive buffers there are. A peer may have as much data on its way as buffers
// are posted, so a long path needs more of them than a short one, as it needs a larger window of
// TCP.
//
// It is learned from turns. A turn begins when a message of ours announces all buffers, and ends
// when the last message arrives that this announcement allowed, payload or advert. The shortest of
// several turns is about what the path takes there and back. A turn about as short means that the
// peer sent all it was allowed to and then waited for us: the window is what limits it, and is
// doubled. Where the link or the sender is the limit, a turn takes longer with twice the buffers,
// and growth stops.
//
// A turn of adverts takes long on a short path, too, since each stands for many bytes. There the
// window is the limit only if the peer had not heard from us again before it sent the last one.
class ReceiveWindow {
 public:
  // `most` not above `first`: the number never changes.
  ReceiveWindow(uint16_t first, uint16_t most)
      : first_(first),
        most_(most > first ? most : first),
        buffers_(first),
        awaits_announcement_(adapts()) {}

  uint16_t buffers() const { return buffers_; }
  bool adapts() const { return most_ > first_; }
  bool grown() const { return buffers_ > first_; }

  // --- turns ---
  bool in_turn() const { return in_turn_; }
  bool awaits_announcement() const { return awaits_announcement_; }
  // Our message `sequence` left, which lets the peer send up to `limit`, with all buffers posted.
  void OnAnnounced(uint32_t sequence, uint32_t limit, Time now) {
    in_turn_ = true;
    awaits_announcement_ = false;
    announced_by_ = sequence;
    turn_end_ = limit - static_cast<uint32_t>(kCreditsForPayload - 1);
    turn_began_ = now;
    turn_bytes_ = 0;
    never_short_ = false;
  }
  // In a turn: a message arrived that used `bytes` of a buffer. `window_bytes`: payload that all
  // buffers take.
  void OnPayload(uint32_t sequence, uint32_t bytes, uint64_t window_bytes, Time now) {
    turn_bytes_ += bytes;
    if (AtOrAfter(sequence, turn_end_)) EndTurn(window_bytes, now);
  }
  // In a turn: a message arrived that stands for more than the buffer it took. `heard`: the last of
  // ours that its sender had received.
  void OnAdvert(uint32_t sequence, uint32_t heard, uint32_t bytes, uint64_t window_bytes,
                Time now) {
    never_short_ = !AtOrAfter(announced_by_, heard);
    OnPayload(sequence, bytes, window_bytes, now);
  }

  // --- changes of the number ---
  bool due() const { return wanted_ != 0; }
  uint16_t asked() const { return asked_; }  // 0: no answer is awaited
  // False: there is no room for more, the number stays.
  bool Ask(uint64_t room);
  // The answer. Not `done`: some turns pass before it is asked again.
  void OnAnswered(bool done);
  // Nothing has arrived for long: back to the first number.
  void Shrink() {
    wanted_ = first_;
    LeaveTurn();
  }
  // On another queue pair, another path.
  void OnQueuePairLeft() {
    LeaveTurn();
    ForgetThePath();
    wanted_ = asked_ = 0;
  }

  bool InvariantsHold() const { return buffers_ >= first_ && buffers_ <= most_; }
  void AddTo(Digest& digest) const;

 private:
  void ForgetThePath() {
    shortest_ = Duration::max();
    rest_ = kTurnsAtFirst;
  }
  void LeaveTurn() {
    in_turn_ = false;
    awaits_announcement_ = adapts();
  }
  void EndTurn(uint64_t window_bytes, Time now);

  uint16_t first_;
  uint16_t most_;
  uint16_t buffers_;
  uint16_t wanted_ = 0;  // 0: no change is due
  uint16_t asked_ = 0;
  uint16_t rest_ = kTurnsAtFirst;  // turns before more is asked for
  bool in_turn_ = false;
  bool awaits_announcement_;  // the next that announces all buffers begins a turn
  bool never_short_ = false;  // of credits, for all that this turn has shown
  uint32_t announced_by_ = 0;
  uint32_t turn_end_ = 0;
  uint64_t turn_bytes_ = 0;
  Time turn_began_{};
  Duration shortest_ = Duration::max();
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_FLOW_RECEIVE_WINDOW_H_
