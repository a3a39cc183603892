#ifndef ESDP_IMPL_BASE_CLOCK_H_
#define ESDP_IMPL_BASE_CLOCK_H_

#include "absl/time/time.h"
#include "impl/base/time.h"

namespace esdp {

// A Clock tells the time to everything outside the protocol core. It is handed in through
// constructors, so that the simulator can put virtual time in its place.
//
//   Owns:     nothing.
//   Threads:  any thread may ask.
//   Blocks:   never.
//   Units:    Now counts nanoseconds from an epoch of its own; WallNow is civil time, which may
//             jump.
//   Errors:   –
class Clock {
 public:
  virtual ~Clock() = default;

  // Never runs backwards.
  virtual Time Now() const = 0;

  // What the application's deadlines are given in.
  virtual absl::Time WallNow() const = 0;

  // Turns an application's deadline into one that later jumps of the wall clock do not move. A
  // deadline that has passed becomes now; one further away than Time can express becomes
  // kTimeInfinite.
  Time FromWall(absl::Time deadline) const;
};

// The only door to the system's clocks.
class SystemClock final : public Clock {
 public:
  Time Now() const override;
  absl::Time WallNow() const override;
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_CLOCK_H_
