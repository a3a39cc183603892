#ifndef ESDP_TESTS_SDP_EXHAUSTION_WATCH_H_
#define ESDP_TESTS_SDP_EXHAUSTION_WATCH_H_

#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/sdp/interface/action.h"
#include "tests/sdp/exhaustion/marks.h"

namespace esdp::sdp::exhaustion {

// Looks at the messages that leave and reach one end and knows nothing of the core: counts credits
// by itself [4.3], holds the acknowledgement rule [7.4, step 3] against what leaves, and tells the
// outcomes of races.
class Watch {
 public:
  // On a new queue pair: kept is what was seen, and urgent bytes that are announced.
  void Start(uint16_t own_buffers, uint16_t peer_buffers);

  // A message of ours is posted while `posted` receives are, and `reads` of ours run. Returns what
  // is wrong with it, or nullptr.
  const char* OnSend(const wire::Message& message, uint32_t payload, size_t posted, size_t reads);
  // A message of the peer's has reached us.
  void OnDelivered(const wire::Message& message, uint32_t payload, size_t reads);
  void OnReadFinished() { owes_report_ = true; }

  uint32_t last_received() const { return last_received_; }
  // An urgent byte of the peer's is announced and has not come.
  bool urgent_announced() const { return urgent_in_; }

  // What was seen since the last call.
  Marks TakeMarks();
  void Saw(Mark mark) { marks_ |= Bit(mark); }
  void AddTo(Digest& digest) const;

 private:
  // One SrcAvail of ours, by what its sink has told.
  struct Shown {
    uint32_t left = 0;  // inline bytes not counted
    bool part_read = false;
  };

  const char* CheckCredits(const wire::Message& message, uint32_t payload, size_t posted) const;
  const char* CheckUrgent(const wire::Message& message, uint32_t payload);
  const char* CheckHold(const wire::Message& message, size_t reads);
  void NoteSent(const wire::Message& message, uint32_t payload);
  void NoteModeChangeSent(const wire::ModeChange& change);
  void NoteSuspCommSent();
  void NoteArrivalOfRest(const wire::Message& message);
  void NoteArrivalForSource(const wire::Message& message);
  void NoteArrivalForSink(const wire::Message& message, uint32_t payload);
  void NoteRdmaWrCompl(uint32_t length);
  void TakeOldestSink();
  void NoteRdmaRdCompl(const wire::Message& message);
  void NoteSendSm(const wire::Message& message);
  bool CrossedCancel(const wire::Message& message) const;

  // Both directions.
  uint32_t last_sent_ = 0, last_received_ = 0;
  uint16_t told_buffers_ = 0, peer_buffers_ = 0;
  uint32_t told_acknowledged_ = 0, peer_acknowledged_ = 0;
  bool disconn_sent_ = false;
  bool urgent_out_ = false, urgent_in_ = false;  // announced, and the byte has not left or come
  bool resize_sent_ = false;
  bool suspcomm_sent_ = false;

  // As source.
  GrowingRing<Shown> shown_;
  std::optional<uint32_t> cancel_;  // SrcAvailCancel of ours that is not processed
  bool read_since_cancel_ = false;

  // As sink.
  GrowingRing<uint32_t> sinks_;          // SinkAvails of ours without an answer, their lengths
  std::optional<uint32_t> sink_cancel_;  // SinkAvailCancel of ours that is not processed
  bool filled_since_cancel_ = false;
  std::optional<uint32_t> holding_;  // SrcAvailCancel of the peer's, while a READ runs
  bool owes_report_ = false;
  Marks marks_ = 0;
};

}  // namespace esdp::sdp::exhaustion

#endif  // ESDP_TESTS_SDP_EXHAUSTION_WATCH_H_
