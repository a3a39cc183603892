// What most sources of the Python module include, read once for all of them (impl/bazel/precompiled.bzl). A source names
// what it uses all the same: this is here to save time, and no source may rely on it.
//
// pybind11/stl.h is not here: where it is included, it changes what Python's lists and dictionaries are converted to.
#ifndef ESDP_IMPL_PRECOMPILED_BINDINGS_H_
#define ESDP_IMPL_PRECOMPILED_BINDINGS_H_

#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#endif  // ESDP_IMPL_PRECOMPILED_BINDINGS_H_
