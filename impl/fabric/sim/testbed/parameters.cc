#include "impl/fabric/sim/testbed/parameters.h"

#include <array>
#include <cmath>

namespace esdp::fabric::sim::testbed {
namespace {

struct Entry {
  std::string_view name;
  double Parameters::*value;
};

constexpr Entry kEntries[] = {
#define TESTBED_PARAMETER(group, name) {#group "." #name, &Parameters::group##_##name},
#include "impl/fabric/sim/testbed/parameters.def"
#undef TESTBED_PARAMETER
};
constexpr size_t kCount = std::size(kEntries);

constexpr std::array<std::string_view, kCount> MakeNames() {
  std::array<std::string_view, kCount> names;
  for (size_t i = 0; i < kCount; ++i) names[i] = kEntries[i].name;
  return names;
}
constexpr std::array<std::string_view, kCount> kNames = MakeNames();

// What may be nothing at all: a cost that is not there.
bool MayBeZero(std::string_view name) {
  return name.ends_with("_us") || name.ends_with("_us_page") || name.ends_with("_ns_byte");
}

absl::Status Bad(std::string_view name, const char* why) {
  return absl::InvalidArgumentError(std::string(name) + " " + why);
}

}  // namespace

std::span<const std::string_view> ParameterNames() { return kNames; }

double* Find(Parameters& parameters, std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return &(parameters.*entry.value);
  }
  return nullptr;
}

absl::Status Check(const Parameters& parameters) {
  constexpr double kMost = 1e9;
  for (const auto& [name, value] : kEntries) {
    const double number = parameters.*value;
    if (!std::isfinite(number) || number > kMost) return Bad(name, "is beyond any machine");
    if (number < 0) return Bad(name, "is negative");
    if (number == 0 && !MayBeZero(name)) return Bad(name, "is missing or 0");
  }
  if (parameters.machine_cores > 256) return Bad("machine.cores", "is above 256");
  if (parameters.machine_threads_per_core > 8) return Bad("machine.threads_per_core", "is above 8");
  if (parameters.machine_core_gain < 1) return Bad("machine.core_gain", "is below 1");
  if (parameters.kernel_buffers < 3) return Bad("kernel.buffers", "is below 3, the least of SDP");
  if (parameters.kernel_buffer_kib < 1) return Bad("kernel.buffer_kib", "is below 1");
  if (parameters.device_reads_in_flight < 1) return Bad("device.reads_in_flight", "is below 1");
  return absl::OkStatus();
}

}  // namespace esdp::fabric::sim::testbed
