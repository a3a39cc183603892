// What it takes to register memory with a fabric and to let it go again, at the median.
//
//   registration FABRIC allocated|foreign BYTES SECONDS
//
// `allocated`: memory of Context::Allocate, which the fabric "local" knows already. Prints one JSON object.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "esdp/context.h"
#include "samples/arguments.h"

namespace {

using Clock = std::chrono::steady_clock;
using samples::Value;

double Median(std::vector<double>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc == 5 ? argv[2] : "";
  if (kind != "allocated" && kind != "foreign") {
    std::fprintf(stderr, "registration FABRIC allocated|foreign BYTES SECONDS\n");
    return 2;
  }
  const size_t bytes = std::strtoull(argv[3], nullptr, 10);
  const double seconds = std::strtod(argv[4], nullptr);
  esdp::Context context = Value(esdp::Context::Open({.fabric = argv[1]}));
  const esdp::Region allocated = Value(context.Allocate(bytes));
  std::vector<std::byte> foreign(bytes);
  const absl::Span<std::byte> memory =
      kind == "foreign" ? absl::MakeSpan(foreign) : absl::MakeSpan(allocated.info().base, bytes);

  std::vector<double> times;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (auto before = Clock::now(); before < end;) {
    Value(context.Register(memory));  // gone at the end of the line
    const auto now = Clock::now();
    times.push_back(std::chrono::duration<double, std::micro>(now - before).count());
    before = now;
  }
  std::printf("{\"microseconds\":%.4f,\"registrations\":%zu}\n", Median(times), times.size());
  return 0;
}
