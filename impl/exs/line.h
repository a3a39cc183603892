#ifndef ESDP_IMPL_EXS_LINE_H_
#define ESDP_IMPL_EXS_LINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "esdp/event.h"
#include "esdp/socket.h"
#include "impl/exs/operation.h"
#include "impl/exs/transfer.h"

// What a socket knows of a direction.

namespace esdp::exs {

class Carried;

// What a post does below; it may be done later.
using PostBelow = std::function<absl::StatusOr<OpId>(Socket&, const OpArgs&)>;

struct Held {
  Operation* operation;
  PostBelow below;  // or
  Transfer transfer;
};

struct Line {
  std::shared_ptr<Carried> carried;
  Operation* of = nullptr;  // what is carried out
  std::deque<Held> held;    // behind it
  uint64_t pinned = 0;      // bytes that are registered for operations below
};

}  // namespace esdp::exs

#endif  // ESDP_IMPL_EXS_LINE_H_
