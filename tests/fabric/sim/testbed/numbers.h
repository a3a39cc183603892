#ifndef ESDP_TESTS_FABRIC_SIM_TESTBED_NUMBERS_H_
#define ESDP_TESTS_FABRIC_SIM_TESTBED_NUMBERS_H_

#include "impl/fabric/sim/testbed/parameters.h"

namespace esdp::fabric::sim::testbed {

// Round ones, with which sums can be done in the head.
inline Parameters RoundNumbers() {
  Parameters numbers;
  for (const std::string_view name : ParameterNames()) *Find(numbers, name) = 1;
  numbers.machine_cores = 2;
  numbers.machine_threads_per_core = 2;
  numbers.machine_core_gain = 1.5;
  numbers.machine_memory_mb_s = 1000;
  numbers.machine_copy_mb_s = 1000;
  numbers.machine_cache_kib = 1024;
  numbers.kernel_buffers = 8;
  numbers.kernel_buffer_kib = 16;
  numbers.device_bus_mb_s = 1000;
  numbers.device_quantum_kib = 4;
  numbers.device_sends_a_interrupt = 4;
  numbers.link_bandwidth_mb_s = 2000;
  numbers.link_latency_us = 5;
  return numbers;
}

}  // namespace esdp::fabric::sim::testbed

#endif  // ESDP_TESTS_FABRIC_SIM_TESTBED_NUMBERS_H_
