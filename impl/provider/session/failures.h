#ifndef ESDP_IMPL_PROVIDER_SESSION_FAILURES_H_
#define ESDP_IMPL_PROVIDER_SESSION_FAILURES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "impl/fabric/types.h"
#include "impl/provider/rejection.h"
#include "impl/provider/types.h"
#include "impl/sdp/interface/ids.h"

namespace esdp::provider {

// What the fabric and the decoder have said about the end of one connection. The first of each kind
// stays.
struct FailureDetails {
  absl::Status refused_call;  // a call of the port that the connection could not do without
  fabric::WorkStatus work = fabric::WorkStatus::kSuccess;  // the first failure that is no flush
  fabric::Cause cause = fabric::Cause::kNone;
  std::string detail;                      // of the cause
  Rejection rejection = Rejection::kNone;  // the peer's reason, with Cause::kRejected
  const char* message_field = "";          // of the message that did not decode

  void NoteWork(fabric::WorkStatus status) {
    if (work == fabric::WorkStatus::kSuccess && status != fabric::WorkStatus::kFlushed)
      work = status;
  }
  void NoteRefusal(const absl::Status& status) { refused_call.Update(status); }
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

// Whether the end of a queue pair is in order, and if not, whether to blame the fabric rather than
// the peer.
bool IsCleanEnd(const FailureDetails& evidence);
bool IsFabricError(const FailureDetails& evidence);
// Whether the fabric says that the peer broke it off.
inline bool IsReset(const FailureDetails& evidence) {
  return evidence.cause == fabric::Cause::kPeerReset;
}

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_SESSION_FAILURES_H_
