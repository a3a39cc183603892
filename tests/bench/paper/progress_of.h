#ifndef ESDP_TESTS_BENCH_PAPER_PROGRESS_OF_H_
#define ESDP_TESTS_BENCH_PAPER_PROGRESS_OF_H_

#include <cstdint>

#include "impl/base/time.h"

namespace esdp::paper {

// How often something comes once it is warm: between the first and the last time after `begin`.
class ProgressOf {
 public:
  void Begin(Time begin) { begin_ = begin; }
  void Add(Time now) {
    if (now < begin_) return;
    if (times_++ == 0) first_ = now;
    last_ = now;
  }

  double MicrosecondsEach() const {
    return times_ < 2 ? 0
                      : static_cast<double>((last_ - first_).count()) / 1000 /
                            static_cast<double>(times_ - 1);
  }

 private:
  Time begin_ = kTimeInfinite;
  Time first_{};
  Time last_{};
  uint64_t times_ = 0;
};

}  // namespace esdp::paper

#endif  // ESDP_TESTS_BENCH_PAPER_PROGRESS_OF_H_
