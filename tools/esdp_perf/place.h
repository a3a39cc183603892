#ifndef ESDP_TOOLS_ESDP_PERF_PLACE_H_
#define ESDP_TOOLS_ESDP_PERF_PLACE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "esdp/context.h"

namespace esdp_perf {

// Where one side of a run lives: whose clock and whose processors its figures are of.
class Place {
 public:
  virtual ~Place() = default;
  virtual absl::StatusOr<esdp::Context> Open(const esdp::ContextOptions& options) const = 0;
  // Of a clock that only goes on.
  virtual int64_t Nanoseconds() const = 0;
  // Spent so far, of all processors.
  virtual double CpuSeconds() const = 0;

  double SecondsSince(int64_t nanoseconds) const {
    return static_cast<double>(Nanoseconds() - nanoseconds) / 1e9;
  }
};

// User and system time, all threads.
const Place& ThisProcess();

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_PLACE_H_
