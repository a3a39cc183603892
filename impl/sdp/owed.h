#ifndef ESDP_IMPL_SDP_OWED_H_
#define ESDP_IMPL_SDP_OWED_H_

#include <bit>
#include <cstdint>

namespace esdp::sdp {

// What a connection may have to do behind an input. Messages leave in the order of the enumerators.
enum class Duty : uint8_t {
  kFirstMessage,  // a bare Data before anything else [R2.7.5]
  kCopies,        // small sends go into send buffers: no message
  kSilence,       // nothing else may leave now [R2.7.6]
  kSuspend,       // SuspComm and SuspCommAck, and what has to leave before them [12]
  kReadAnswers,   // RdmaRdCompl and SendSm [7]
  kResize,        // ChRcvBuf and ChRcvBufAck [11]
  kSourceCancel,  // SrcAvailCancel [7.4]
  kSinkAnswers,   // SinkCancelAck, and SinkAvailCancel [8.4]
  kModeChange,    // ModeChange [5]
  kSinkAdvert,    // SinkAvail [8.1]
  kPayload,       // Data, SrcAvail, RDMA Writes and RdmaWrCompl
  kUrgentNotice,  // a bare Data with OOB_PEND [R10.8]
  kDisConn,       // DisConn [13]
  kCredits,       // a bare Data with news of credits or an acknowledgement [4.4]
  kWindow,        // another number of receive buffers: no message
  kPhase,         // what another phase than Established asks for: no message
  kTimers,        // timers of the halves are to be set anew: no message
  kDeadlines,     // those of a close or a move are to be watched: no message
};

// A set of duties.
class Owed {
 public:
  Owed() = default;
  explicit Owed(Duty duty) { Set(duty, true); }
  void Set(Duty duty, bool owed) {
    const auto place = static_cast<unsigned>(duty);
    bits_ = (bits_ & ~(uint32_t{1} << place)) | static_cast<uint32_t>(owed) << place;
  }
  bool empty() const { return bits_ == 0; }
  bool Has(Duty duty) const { return (bits_ >> static_cast<unsigned>(duty) & 1) != 0; }
  Duty First() const { return static_cast<Duty>(std::countr_zero(bits_)); }  // not of an empty one
  bool HasAny(Duty first, Duty last) const {
    const auto low = static_cast<unsigned>(first), high = static_cast<unsigned>(last);
    return (bits_ >> low & ((uint32_t{2} << (high - low)) - 1)) != 0;
  }
  Owed From(Duty duty) const {
    Owed rest = *this;
    rest.bits_ &= ~uint32_t{0} << static_cast<unsigned>(duty);
    return rest;
  }
  Owed Behind(Duty duty) const {
    Owed rest = *this;
    rest.bits_ &= ~uint32_t{1} << static_cast<unsigned>(duty);
    return rest;
  }

 private:
  uint32_t bits_ = 0;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_OWED_H_
