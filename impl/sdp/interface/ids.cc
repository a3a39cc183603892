#include "impl/sdp/interface/ids.h"

namespace esdp::sdp {

const char* ToString(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return "done";
    case Outcome::kCancelled:
      return "cancelled";
    case Outcome::kDeadlineExceeded:
      return "deadline exceeded";
    case Outcome::kShutDown:
      return "shut down";
    case Outcome::kLocalAbort:
      return "aborted here";
    case Outcome::kConnectFailed:
      return "connect failed";
    case Outcome::kHandshakeRefused:
      return "handshake refused";
    case Outcome::kPeerReset:
      return "reset by peer";
    case Outcome::kPeerProtocol:
      return "peer broke the protocol";
    case Outcome::kFabricError:
      return "fabric error";
    case Outcome::kResumeFailed:
      return "resume failed";
    case Outcome::kUnsupported:
      return "unsupported by the peer";
    case Outcome::kInternal:
      return "internal error";
  }
  return "unknown outcome";
}

}  // namespace esdp::sdp
