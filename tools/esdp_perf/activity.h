#ifndef ESDP_TOOLS_ESDP_PERF_ACTIVITY_H_
#define ESDP_TOOLS_ESDP_PERF_ACTIVITY_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "esdp/context.h"
#include "tools/esdp_perf/outcome.h"

namespace esdp_perf {

// What one side of a run does: it posts, and goes on when it is given events. Whoever has it waits.
//
//   Threads:  one.
//   Blocks:   never.
class Activity {
 public:
  // How to wait for its events: for so many at least, taking no more than that, and so long.
  struct Wait {
    size_t least = 1;
    size_t most = 1;
    absl::Duration patience = absl::InfiniteDuration();
  };

  virtual ~Activity() = default;
  // Takes a connection, in order of connecting, and posts the first receives.
  virtual absl::Status Add(esdp::Socket socket) = 0;
  virtual absl::Status Begin() = 0;
  virtual Wait NextWait() const = 0;
  // None: its patience is over.
  virtual absl::Status OnEvents(absl::Span<const esdp::Event> events) = 0;
  virtual bool ended() const = 0;

  virtual Outcome Seen() const = 0;
  // By the library so far, and the memory that its messages are in.
  virtual uint64_t copied_bytes() const = 0;
  virtual uint64_t memory_bytes() const = 0;
};

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_ACTIVITY_H_
