#ifndef ESDP_TESTS_BASE_MANUAL_CLOCK_H_
#define ESDP_TESTS_BASE_MANUAL_CLOCK_H_

#include <chrono>

#include "absl/time/time.h"
#include "impl/base/clock.h"

namespace esdp {

// Time that passes when the test says so.
class ManualClock final : public Clock {
 public:
  Time Now() const override { return now_; }
  absl::Time WallNow() const override { return {}; }
  void Pass(Duration time) { now_ += time; }

 private:
  Time now_{std::chrono::hours(1)};
};

}  // namespace esdp

#endif  // ESDP_TESTS_BASE_MANUAL_CLOCK_H_
