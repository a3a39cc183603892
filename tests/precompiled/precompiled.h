// What most tests include, read once for all of them (impl/bazel/precompiled.bzl). A test names
// what it uses all the same: this is here to save time, and no source may rely on it.
#ifndef ESDP_TESTS_PRECOMPILED_PRECOMPILED_H_
#define ESDP_TESTS_PRECOMPILED_PRECOMPILED_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#endif  // ESDP_TESTS_PRECOMPILED_PRECOMPILED_H_
