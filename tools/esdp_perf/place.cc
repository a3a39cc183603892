#include "tools/esdp_perf/place.h"

#include <sys/resource.h>

#include <chrono>

namespace esdp_perf {
namespace {

class Process : public Place {
 public:
  absl::StatusOr<esdp::Context> Open(const esdp::ContextOptions& options) const override {
    return esdp::Context::Open(options);
  }
  int64_t Nanoseconds() const override {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }
  double CpuSeconds() const override {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
};

}  // namespace

const Place& ThisProcess() {
  static const Process process;
  return process;
}

}  // namespace esdp_perf
