#ifndef ESDP_TOOLS_ESDP_SERVE_METRICS_H_
#define ESDP_TOOLS_ESDP_SERVE_METRICS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace esdp_serve {

// What the server counts. One thread counts, any may read.
struct Metrics {
  using Count = std::atomic<uint64_t>;
  static constexpr size_t kStatuses = 12;  // wire::Status

  Count clients{0};  // now
  Count clients_accepted{0};
  Count clients_refused{0};     // too many
  Count clients_stalled{0};     // ended, because they took nothing
  Count clients_late{0};        // ended, because they asked nothing
  Count clients_misbehaved{0};  // ended, because they broke the protocol
  Count requests{0};
  std::array<Count, kStatuses> answers{};
  Count cached_files{0};  // small ones, answered without a worker
  Count sent_bytes{0};    // of files
  Count sent_zero_copy_bytes{0};
  Count received_bytes{0};
  Count failed_files{0};  // ended early, failed, or changed meanwhile
  Count slots_in_use{0};
};

// As Prometheus reads it.
std::string MetricsText(const Metrics& metrics);

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_METRICS_H_
