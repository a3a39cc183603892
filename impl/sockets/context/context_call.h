#ifndef ESDP_IMPL_SOCKETS_CONTEXT_CONTEXT_CALL_H_
#define ESDP_IMPL_SOCKETS_CONTEXT_CONTEXT_CALL_H_

#include "absl/status/status.h"

namespace esdp::sockets {

class ContextState;

// A call of the application's. The shard stays as long as one that is ok lasts.
class ContextCall {
 public:
  // Refused when there is no context, or it is not usable.
  explicit ContextCall(const ContextState* context);
  ~ContextCall();
  ContextCall(const ContextCall&) = delete;
  ContextCall& operator=(const ContextCall&) = delete;

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }

 private:
  const ContextState* const context_;
  absl::Status status_;
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_CONTEXT_CONTEXT_CALL_H_
