#ifndef ESDP_IMPL_SOCKETS_CONTEXT_CONTEXT_ACCESS_H_
#define ESDP_IMPL_SOCKETS_CONTEXT_CONTEXT_ACCESS_H_

#include <memory>
#include <utility>

#include "esdp/context.h"

namespace esdp::sockets {

// The door of this room into the public handles.
class ContextAccess {
 public:
  static Context Make(std::shared_ptr<ContextState> state) {
    Context context;
    context.state_ = std::move(state);
    return context;
  }
  static const std::shared_ptr<ContextState>& StateOf(const Context& context) {
    return context.state_;
  }
};

}  // namespace esdp::sockets

#endif  // ESDP_IMPL_SOCKETS_CONTEXT_CONTEXT_ACCESS_H_
