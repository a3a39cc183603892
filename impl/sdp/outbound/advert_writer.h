#ifndef ESDP_IMPL_SDP_OUTBOUND_ADVERT_WRITER_H_
#define ESDP_IMPL_SDP_OUTBOUND_ADVERT_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/sdp/common/limits.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/ids.h"
#include "impl/sdp/wire/messages.h"

namespace esdp::sdp {

// The peer's SinkAvails: memory of receives of the peer's that we write to [8]. Live are those that
// are not stale, in order of arrival; the oldest may be in process: written to, and owing its
// RdmaWrCompl.
//
// Stale adverts are told apart as they arrive [8.2, the eager form]: PotentialNonDiscards counts
// the payload messages that no advert of the peer's was in the way of.
class AdvertWriter {
 public:
  enum class Legality : uint8_t {
    kUsable,   // our half is Pipelined
    kIgnored,  // [5] just left Pipelined and the peer may not know yet, or our DisConn is out
    kIllegal,
  };
  struct Arrival {
    const char* violation = nullptr;  // the peer broke the protocol: nothing else is valid
    // Not stale: live now or, where adverts are ignored, outstanding at the peer until it hears of
    // our ModeChange. What we have advertised ourselves is void [8.3, 5].
    bool fresh = false;
    bool stale = false;  // [8.2] it came too late, and is discarded
  };
  // A SinkAvail. `length_min`: one message of ours may carry so many bytes, and the advert must
  // have room for them [8.1]. `adverts_max`: how many may be live.
  Arrival OnSinkAvail(const wire::SinkAvail& advert, Legality legality, uint32_t length_min,
                      size_t adverts_max);
  size_t live() const { return live_.size(); }
  bool idle() const { return live_.empty() && !ack_owed(); }  // nothing comes before payload

  // A message with payload went out. Not while in process: RdmaWrCompl comes first.
  void OnPayloadPosted() {  // [R8.2.3, R8.2.8]
    if (live_.empty()) {
      ++potential_non_discards_;
    } else {
      live_.PopFront();  // its memory takes this message
    }
  }

  // --- writing ---
  // Bytes that the oldest still has room for; 0 without a live one.
  uint32_t room() const;
  bool in_process() const { return !live_.empty() && live_.front().written > 0; }
  // `source.length` is at most room().
  Write StartWrite(const OperationRange& source);
  void OnWriteFinished() { --writes_in_flight_; }
  size_t writes_in_flight() const { return writes_in_flight_; }

  struct Completion {
    wire::RdmaWrCompl message;
    uint32_t finished_key = 0;  // of the advert that it completes
  };
  // The oldest, in process, is complete: with room left too.
  Completion TakeRdmaWrCompl();
  void OnCompletionPosted(uint32_t sequence) { unheard_ = sequence; }
  void OnAcknowledged(uint32_t sequence) {
    if (unheard_ && AtOrAfter(sequence, *unheard_)) unheard_.reset();
  }
  // The peer has not heard of the last completion: the next SinkAvail is likely to come with its
  // answer, and would void what is advertised meanwhile.
  bool awaits_answer() const { return unheard_.has_value(); }

  // --- the peer takes them back ---
  // [8.4] One in process is still completed; the others are dropped and SinkCancelAck is owed. No
  // payload may leave before it.
  void OnSinkAvailCancel();
  // True: all that is live shall be completed before anything else is written.
  bool cancelled() const { return cancelled_; }
  bool ack_owed() const { return ack_owed_ && !cancelled_; }
  void TakeSinkCancelAck() { ack_owed_ = false; }

  // [5] A ModeChange to Combined goes out; nothing is in process. What is live is dropped, and the
  // count frozen against which those are judged that are still on their way.
  void LeavePipelined();
  // [8.5] Our DisConn goes out, or the connection ends.
  void DropAll();

  uint32_t potential_non_discards() const { return potential_non_discards_; }
  bool InvariantsHold() const { return live_.empty() || LiveHold(); }
  void AddTo(Digest& digest) const;

 private:
  struct Advert {
    uint32_t length = 0;
    uint32_t written = 0;
    RemoteRange remote;
  };

  bool LiveHold() const;

  GrowingRing<Advert> live_;
  size_t writes_in_flight_ = 0;
  uint32_t potential_non_discards_ = 0;
  uint32_t frozen_ = 0;  // P0
  std::optional<uint32_t> unheard_;
  bool cancelled_ = false;
  bool ack_owed_ = false;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_OUTBOUND_ADVERT_WRITER_H_
