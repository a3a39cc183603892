#ifndef ESDP_TESTS_BENCH_PAPER_TEXT_H_
#define ESDP_TESTS_BENCH_PAPER_TEXT_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "tests/bench/paper/results.h"

namespace esdp::paper {

inline constexpr uint64_t kMib = 1024 * kKib;

inline std::string Format(const char* format, double first, double second = 0) {
  char text[96];
  std::snprintf(text, sizeof(text), format, first, second);
  return text;
}

inline std::string SizeText(uint64_t bytes) {
  if (bytes == 0) return "none";
  return bytes < kMib ? std::to_string(bytes / kKib) + " KB" : std::to_string(bytes / kMib) + " MB";
}

}  // namespace esdp::paper

#endif  // ESDP_TESTS_BENCH_PAPER_TEXT_H_
