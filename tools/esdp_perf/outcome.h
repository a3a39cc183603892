#ifndef ESDP_TOOLS_ESDP_PERF_OUTCOME_H_
#define ESDP_TOOLS_ESDP_PERF_OUTCOME_H_

#include <cstdint>
#include <string>

#include "tools/esdp_perf/fields.h"
#include "tools/esdp_perf/histogram.h"

namespace esdp_perf {

// What one side saw of a run. Directions are this side's own.
struct Outcome {
  uint64_t bytes_sent = 0, bytes_received = 0;
  uint64_t sends = 0;            // messages of Task::size, or the last, shorter one
  uint64_t bytes_zero_copy = 0;  // received by this side, of bytes_received
  uint64_t copied_bytes = 0;     // payload that the library copied on this side, either direction
  double send_seconds = 0, receive_seconds = 0;  // from the start to the last byte
  double cpu_seconds = 0;                        // user and system, all threads of the process
  std::string sha256;                            // of the file, on this side
  std::string transport;                         // as Socket::transport() names it
};

Fields ToFields(const Outcome& outcome);
Outcome OutcomeFromFields(const Fields& fields);

}  // namespace esdp_perf

#endif  // ESDP_TOOLS_ESDP_PERF_OUTCOME_H_
