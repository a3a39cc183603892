#ifndef ESDP_BINDINGS_PYTHON_CORE_PATIENCE_H_
#define ESDP_BINDINGS_PYTHON_CORE_PATIENCE_H_

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace esdp::python {

class ContextObject;

// Runs the handlers of signals that have come. Throws what they raise.
void HandleSignals();

// How long a call may still wait. It waits in tries: a signal that comes just before one begins is
// seen when that is over.
//
//   Owns:     nothing; the Context outlives it.
//   Threads:  with the interpreter lock held.
//   Blocks:   never.
//   Units:    seconds; of real time also where the wall clock is set meanwhile, and on the Context's
//             clock where that is simulated.
//   Errors:   ValueError for a time that is negative.
class Patience {
 public:
  // Without `seconds`: for ever.
  Patience(ContextObject& context, std::optional<double> seconds);

  // When the next try is to end.
  absl::Time NextDeadline();
  // Whether a try that has ended so is no end of the call.
  bool GoesOn(const absl::Status& ended) const;
  // Whether all of the time has passed.
  bool over() const { return Left() <= absl::ZeroDuration(); }

 private:
  absl::Duration Left() const;

  ContextObject& context_;
  const absl::Duration most_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  const absl::Time end_;  // on the Context's clock
  bool last_ = false;     // the try lasts to the end of the time
};

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_PATIENCE_H_
