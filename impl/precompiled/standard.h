// What most sources of the library include, read once for all of them (impl/bazel/precompiled.bzl): what the pure rooms may
// use too. A source names what it uses all the same: this is here to save time, and no source may rely on it.
#ifndef ESDP_IMPL_PRECOMPILED_STANDARD_H_
#define ESDP_IMPL_PRECOMPILED_STANDARD_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#endif  // ESDP_IMPL_PRECOMPILED_STANDARD_H_
