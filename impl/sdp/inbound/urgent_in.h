#ifndef ESDP_IMPL_SDP_INBOUND_URGENT_IN_H_
#define ESDP_IMPL_SDP_INBOUND_URGENT_IN_H_

#include <cstdint>

#include "impl/base/digest.h"
#include "impl/base/ring.h"
#include "impl/sdp/interface/action.h"
#include "impl/sdp/interface/ids.h"

namespace esdp::sdp {

// Urgent data [10]. An urgent byte is announced once (OOB_PEND) and later arrives as the last
// payload byte of a Data message (OOB_PRES); both may be in one message. One byte at a time: the
// next is announced behind the one before it.
//
// The urgent bytes that the peer announces, and the operations that wait to hear of one. Each
// announcement finishes one of them, the oldest; one that finds none is kept for the next.
class UrgentIn {
 public:
  // The flags of an arrived message, which is a Data with payload or is not. Returns what is wrong
  // with them, or nullptr. OOB_PRES without OOB_PEND before it announces too.
  const char* OnMessage(uint8_t flags, bool is_data_with_payload, Actions& actions);

  void Await(OperationId operation, Actions& actions);
  // False: no such operation waits.
  bool Cancel(OperationId operation, Outcome outcome, Actions& actions);
  // No urgent byte will come any more: the peer has ended its stream.
  void OnEndOfStream(Actions& actions);
  void FinishAll(Outcome outcome, Actions& actions);

  bool unheard() const { return unheard_ > 0; }
  bool empty() const { return waiting_.empty(); }
  void AddTo(Digest& digest) const;

 private:
  bool announced_ = false;  // the byte itself has not arrived
  bool ended_ = false;
  uint64_t unheard_ = 0;
  GrowingRing<OperationId> waiting_;
};

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_INBOUND_URGENT_IN_H_
