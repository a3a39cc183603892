#include "impl/provider/session/session.h"

namespace esdp::provider {

ConnectionCounters CountersOf(const Session& session) {
  ConnectionCounters counters;
  static_cast<sdp::Counters&>(counters) = session.core.counters();
  counters.returns_rejected = session.returns_rejected;
  return counters;
}

FailureDetails DetailsOf(const Session& session) {
  return {session.transport.failure(), session.rejection, session.message_field};
}

}  // namespace esdp::provider
