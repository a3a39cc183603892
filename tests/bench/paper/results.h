#ifndef ESDP_TESTS_BENCH_PAPER_RESULTS_H_
#define ESDP_TESTS_BENCH_PAPER_RESULTS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <tuple>

#include "impl/fabric/sim/testbed/parameters.h"
#include "tests/bench/paper/measure.h"

namespace esdp::paper {

inline constexpr uint64_t kKib = 1024;

// The sizes of figures 5 to 7, a power of two each: 4 KiB to 4 MiB.
std::span<const uint64_t> Sizes();
// Of figures 10 and 11.
std::span<const uint64_t> SmallSizes();
std::span<const uint64_t> LargeSizes();
inline constexpr double kLibrarySpin = 50;  // us: QueueOptions::spin
inline constexpr std::array<size_t, 4> kConnections = {1, 2, 4, 8};

// What is measured on a test-bed, each point when it is first asked for.
class Results {
 public:
  explicit Results(const fabric::sim::testbed::Parameters& parameters) : parameters_(parameters) {}

  const fabric::sim::testbed::Parameters& parameters() const { return parameters_; }
  const Point& Bandwidth(Mode mode, size_t connections, uint64_t bytes);
  const Point& Latency(Mode mode, uint64_t bytes);

  // One socket of the ES-API.
  const Point& Asynchronous(Means means, size_t outstanding, bool spins, uint64_t bytes);
  // The size from which on its reads are faster than the blocking caller's copies on one socket.
  uint64_t AsynchronousCrossover(size_t outstanding, bool spins);

  // The best of all sizes, and which.
  double MostMbS(Mode mode, size_t connections);
  uint64_t BestSize(Mode mode, size_t connections);
  // The smallest size from which on zero-copy is faster at every one; 0 if at none.
  uint64_t Crossover(size_t connections);

 private:
  using Key = std::tuple<Mode, size_t, uint64_t>;
  const fabric::sim::testbed::Parameters parameters_;
  std::map<Key, Point> bandwidth_;
  std::map<Key, Point> latency_;
  std::map<std::tuple<Means, size_t, bool, uint64_t>, Point> asynchronous_;
};

}  // namespace esdp::paper

#endif  // ESDP_TESTS_BENCH_PAPER_RESULTS_H_
