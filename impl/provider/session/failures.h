#ifndef ESDP_IMPL_PROVIDER_SESSION_FAILURES_H_
#define ESDP_IMPL_PROVIDER_SESSION_FAILURES_H_

#include <cstdint>
#include <string>

#include "impl/provider/rejection.h"
#include "impl/provider/transport/failure.h"
#include "impl/provider/types.h"
#include "impl/sdp/interface/ids.h"

namespace esdp::provider {

// What the fabric, the peer and the decoder have said about the end of one connection.
struct FailureDetails : TransportFailure {
  Rejection rejection = Rejection::kNone;  // the peer's reason, with Cause::kRejected
  const char* message_field = "";          // of the message that did not decode
};

// Whose set-up it is that failed, where nobody has been told of a connection: the application's or
// the peer's.
enum class SetUp : uint8_t { kOwn, kIncoming };
// The root cause in the words of the application: `outcome` and `reason` are the core's, `peer`
// names the connection. kDone gives kOk without a text.
Failure Explain(sdp::Outcome outcome, const char* reason, const FailureDetails& evidence,
                const Address& peer, SetUp set_up = SetUp::kOwn);

// Why a connection was not moved to a new queue pair, where `outcome` did not end it.
Failure ExplainSuspend(sdp::Outcome outcome, const Address& peer);

// How one operation ended, apart from the connection; kOk also for outcomes that only the
// connection can explain.
EndReason EndingOfOperation(sdp::Outcome outcome);
// Whether an operation with this outcome was ended by its connection.
bool IsOfConnection(sdp::Outcome outcome);

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SESSION_FAILURES_H_
