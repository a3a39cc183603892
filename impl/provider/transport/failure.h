#ifndef ESDP_IMPL_PROVIDER_TRANSPORT_FAILURE_H_
#define ESDP_IMPL_PROVIDER_TRANSPORT_FAILURE_H_

#include <string>

#include "absl/status/status.h"
#include "impl/fabric/types.h"

namespace esdp::provider {

// What the fabric has said about the end of one queue pair. The first of each kind stays.
struct TransportFailure {
  absl::Status refused_call;  // a call of the port that the connection could not do without
  fabric::WorkStatus work = fabric::WorkStatus::kSuccess;  // the first failure that is no flush
  fabric::Cause cause = fabric::Cause::kNone;
  std::string detail;  // of the cause

  void NoteWork(fabric::WorkStatus status) {
    if (work == fabric::WorkStatus::kSuccess && status != fabric::WorkStatus::kFlushed)
      work = status;
  }
  void NoteRefusal(const absl::Status& status) { refused_call.Update(status); }
};

// Whether the end is in order, and if not, whether to blame the fabric rather than the peer.
bool IsCleanEnd(const TransportFailure& failure);
bool IsFabricError(const TransportFailure& failure);
// Whether the fabric says that the peer broke it off.
inline bool IsReset(const TransportFailure& failure) {
  return failure.cause == fabric::Cause::kPeerReset;
}

}  // namespace esdp::provider

#endif  // ESDP_IMPL_PROVIDER_TRANSPORT_FAILURE_H_
