#ifndef ESDP_IMPL_SDP_UNEXPECTED_MESSAGES_H_
#define ESDP_IMPL_SDP_UNEXPECTED_MESSAGES_H_

#include "impl/sdp/interface/ids.h"
#include "impl/sdp/wire/messages.h"

// Messages that have no place of their own: each is answered as section 17 allows.

namespace esdp::sdp {

struct OtherAnswer {
  Outcome failure = Outcome::kDone;  // not kDone: the connection ends with it
  const char* reason = "";
};

OtherAnswer AnswerOther(const wire::Body& body);

}  // namespace esdp::sdp

#endif  // ESDP_IMPL_SDP_UNEXPECTED_MESSAGES_H_
