#ifndef ESDP_TOOLS_ESDP_SERVE_METRICS_SERVER_H_
#define ESDP_TOOLS_ESDP_SERVE_METRICS_SERVER_H_

#include <cstdint>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "esdp/address.h"
#include "tools/esdp_files/descriptor.h"
#include "tools/esdp_serve/metrics.h"

namespace esdp_serve {

// Answers GET /metrics over HTTP, on a port and a thread of its own, one at a time.
//
//   Owns:     the port and the thread.
//   Threads:  any.
//   Blocks:   the destructor, until the answer being given has gone, two seconds at most.
//   Units:    -
//   Errors:   Open: the address cannot be had.
class MetricsServer {
 public:
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Open(const esdp::Address& address,
                                                             const Metrics& metrics);
  ~MetricsServer();
  const esdp::Address& address() const { return address_; }

 private:
  explicit MetricsServer(const Metrics& metrics) : metrics_(metrics) {}
  absl::Status Listen(const esdp::Address& address);
  void Serve();
  void Answer(int client) const;

  const Metrics& metrics_;
  esdp::Address address_;
  esdp_files::Descriptor listener_;
  esdp_files::Descriptor ends_;
  std::thread thread_;
};

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_METRICS_SERVER_H_
