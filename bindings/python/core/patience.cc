#include "bindings/python/core/patience.h"

#include <pybind11/pybind11.h>

#include <algorithm>

#include "bindings/python/core/context_object.h"
#include "bindings/python/core/names.h"

namespace esdp::python {
namespace {

// A signal that comes just before a try begins is seen after this at the latest.
constexpr absl::Duration kSignalsSeen = absl::Milliseconds(500);

}  // namespace

void HandleSignals() {
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

Patience::Patience(ContextObject& context, std::optional<double> seconds)
    : context_(context),
      most_(seconds.has_value() ? DurationFrom(*seconds) : absl::InfiniteDuration()),
      end_(context.handle().Now() + most_) {}

absl::Duration Patience::Left() const {
  if (context_.virtual_time()) return end_ - context_.handle().Now();
  return most_ - absl::FromChrono(std::chrono::steady_clock::now() - begun_);
}

absl::Time Patience::NextDeadline() {
  const absl::Duration left = Left();
  const absl::Duration once = context_.virtual_time() ? left : std::min(left, kSignalsSeen);
  last_ = once >= left;
  return context_.handle().Now() + once;
}

bool Patience::GoesOn(const absl::Status& ended) const {
  const ErrorKind kind = KindOf(ended);
  return kind == ErrorKind::kSignal || (kind == ErrorKind::kDeadlineExceeded && !last_);
}

}  // namespace esdp::python
