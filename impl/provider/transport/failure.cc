#include "impl/provider/transport/failure.h"

namespace esdp::provider {

using fabric::Cause;
using fabric::WorkStatus;

bool IsCleanEnd(const TransportFailure& failure) {
  return failure.work == WorkStatus::kSuccess && failure.refused_call.ok() &&
         (failure.cause == Cause::kLocalDisconnect || failure.cause == Cause::kPeerDisconnect);
}

bool IsFabricError(const TransportFailure& failure) {
  if (failure.work != WorkStatus::kSuccess && failure.work != WorkStatus::kTransport) return true;
  if (!failure.refused_call.ok()) return true;
  switch (failure.cause) {
    case Cause::kProtocol:
    case Cause::kLocalAccess:
    case Cause::kRemoteTerminate:
    case Cause::kDevice:
      return true;
    default:
      return false;
  }
}

}  // namespace esdp::provider
