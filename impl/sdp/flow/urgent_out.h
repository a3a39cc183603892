#ifndef ESDP_IMPL_SDP_FLOW_URGENT_OUT_H_
#define ESDP_IMPL_SDP_FLOW_URGENT_OUT_H_

#include <cstdint>
#include <optional>

#include "impl/base/digest.h"
#include "impl/sdp/common/limits.h"

namespace esdp::sdp {

// Urgent data [10]. An urgent byte is announced once (OOB_PEND) and later arrives as the last
// payload byte of a Data message (OOB_PRES); both may be in one message. One byte at a time: the
// next is announced behind the one before it.
//
// The urgent bytes that we send. Where they lie in the stream is the send queue's business.
class UrgentOut {
 public:
  // `ahead`: the user bytes that no message has carried or advertised yet, up to and with the next
  // urgent one; nothing if none waits.
  bool NoticeDue(std::optional<uint64_t> ahead) const {  // [R10.1, R10.2]
    return ahead && !noticed_ && *ahead <= kUrgentAheadMax;
  }
  void OnNotice() { noticed_ = true; }
  // The next urgent byte is announced and has not left: its send can no longer be taken back.
  bool noticed() const { return noticed_; }
  void OnByteLeft() { noticed_ = false; }

  void AddTo(Digest& digest) const { digest.Add(noticed_); }

 private:
  bool noticed_ = false;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_FLOW_URGENT_OUT_H_
