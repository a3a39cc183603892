#ifndef ESDP_IMPL_SOCKETS_BLOCKING_SIGNAL_RULE_H_
#define ESDP_IMPL_SOCKETS_BLOCKING_SIGNAL_RULE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "impl/sockets/queue/event_wait_word.h"

namespace esdp::sockets {

// What a wait does when a signal has interrupted it.
enum class OnSignal : uint8_t {
  kEnds,
  kAsHandlersSay,  // it goes on where the handlers that are installed ask for that (SA_RESTART)
  kGoesOn,
};

// As of recv: with a time to end at a wait always ends. `restarts`: the caller wants none to end.
inline OnSignal SignalRule(bool restarts, absl::Time deadline) {
  if (restarts) return OnSignal::kGoesOn;
  return deadline == absl::InfiniteFuture() ? OnSignal::kAsHandlersSay : OnSignal::kEnds;
}

// Whether a wait that was interrupted is to go on. A wait sleeps in ppoll, which never restarts and
// does not tell which signal has come: the answer is yes where all handlers ask for it. Asked after
// a signal only: it takes some sixty system calls.
inline bool GoesOnAfterSignal(OnSignal rule) {
  if (rule != OnSignal::kAsHandlersSay) return rule == OnSignal::kGoesOn;
  return HandlersNow() == Handlers::kRestart;
}

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_BLOCKING_SIGNAL_RULE_H_
