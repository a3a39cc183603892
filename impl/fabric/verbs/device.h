#ifndef ESDP_IMPL_FABRIC_VERBS_DEVICE_H_
#define ESDP_IMPL_FABRIC_VERBS_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "impl/fabric/types.h"
#include "impl/fabric/verbs/calls.h"

namespace esdp::fabric::verbs {

bool HasActivePort(const Calls& calls, ibv_context* context);

// An RDMA device as librdmacm opened it, its protection domain, and what it can do.
//
//   Owns:     the protection domain. The context is librdmacm's and lives as long as the process.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   Open says which devices there are, or why there is none.
class Device {
 public:
  // `name` as ibv_devices prints it; empty: the first that has an active port.
  static absl::StatusOr<std::unique_ptr<Device>> Open(const Calls& calls, const std::string& name);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Calls& calls() const { return calls_; }
  ibv_context* context() const { return context_; }
  ibv_pd* domain() const { return domain_; }
  const char* name() const { return context_->device->name; }
  const Limits& limits() const { return limits_; }
  // Of the family of iWARP: bytes of private data arrive as they were sent, reads have one entry.
  bool is_iwarp() const { return limits_.initiator_speaks_first; }
  int completions_max() const { return completions_max_; }
  // From now on requests have no header of the connection manager's, and so more room for private
  // data. InvalidArgument where the device has no port of InfiniBand.
  absl::Status UseNativeRequests();

 private:
  Device(const Calls& calls, ibv_context* context) : calls_(calls), context_(context) {}
  absl::Status Prepare();

  const Calls& calls_;
  ibv_context* const context_;
  ibv_pd* domain_ = nullptr;
  Limits limits_;
  int completions_max_ = 0;
};

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_DEVICE_H_
