#ifndef ESDP_TESTS_BENCH_PAPER_MEASURE_H_
#define ESDP_TESTS_BENCH_PAPER_MEASURE_H_

#include <cstddef>
#include <cstdint>

#include "impl/fabric/sim/testbed/parameters.h"
#include "tests/bench/paper/asynchronous.h"
#include "tests/bench/paper/synchronous.h"

namespace esdp::paper {

// One point of a figure. CPU as the paper counts it: 100 is one logical processor, the mean of both
// hosts.
struct Point {
  double mb_s = 0;
  double cpu_percent = 0;
  double latency_us = 0;  // one way
  // Of cpu_percent, what the protocol takes: neither polling in vain nor being woken.
  double work_percent = 0;
};

// `connections` sockets in the kernel with a thread for each that blocks: iperf.
Point MeasureBandwidth(const fabric::sim::testbed::Parameters& parameters, Mode mode,
                       size_t connections, uint64_t bytes);
// One socket, requests and answers of `bytes`: netperf TCP_RR.
Point MeasureLatency(const fabric::sim::testbed::Parameters& parameters, Mode mode, uint64_t bytes);

// One socket of the ES-API; twice as many receives wait as sends are outstanding. latency_us is
// that of a send, from the post to its event.
Point MeasureAsynchronous(const fabric::sim::testbed::Parameters& parameters, Means means,
                          const Habit& habit, uint64_t bytes);

}  // namespace esdp::paper

#endif  // ESDP_TESTS_BENCH_PAPER_MEASURE_H_
