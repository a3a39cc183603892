// What most sources above the pure rooms include, tools among them, read once for all of them
// (impl/bazel/precompiled.bzl). A source names what it uses all the same: this is here to save time, and no source may
// rely on it.
#ifndef ESDP_IMPL_PRECOMPILED_COMMON_H_
#define ESDP_IMPL_PRECOMPILED_COMMON_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#endif  // ESDP_IMPL_PRECOMPILED_COMMON_H_
