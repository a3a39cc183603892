#include "tools/testbed/parameters.h"

#include <string_view>

#include "tools/testbed/text.h"

namespace esdp::testbed {
namespace {

// What a number's name ends with tells its unit; one without such an end counts something.
struct Unit {
  std::string_view end;
  std::string_view unit;
};
constexpr Unit kUnits[] = {{"_mb_s", "MB/s"},
                           {"_kib", "KiB"},
                           {"_us", "us"},
                           {"_us_page", "us/page"},
                           {"_ns_byte", "ns/byte"}};

std::string_view UnitOf(std::string_view name) {
  for (const Unit& unit : kUnits) {
    if (name.ends_with(unit.end)) return unit.unit;
  }
  return {};
}

absl::Status Bad(const std::string& path, const Number& number, const std::string& why) {
  return absl::InvalidArgumentError(path + ":" + std::to_string(number.line) + ": " + why);
}

// Check begins with the name of the number that it does not like.
absl::Status BadNumber(const std::string& path, const Description& read,
                       const absl::Status& status) {
  const std::string why(status.message().data(), status.message().size());
  for (const Number& number : read.numbers) {
    if (why.starts_with(number.name + " ")) return Bad(path, number, why);
  }
  return absl::InvalidArgumentError(path + ": " + why);
}

}  // namespace

absl::StatusOr<fabric::sim::testbed::Parameters> ReadParameters(const std::string& path) {
  const absl::StatusOr<Description> read = ReadFile(path);
  if (!read.ok()) return read.status();
  fabric::sim::testbed::Parameters parameters;
  for (const Number& number : read->numbers) {
    double* value = fabric::sim::testbed::Find(parameters, number.name);
    if (value == nullptr) return Bad(path, number, number.name + " is no parameter");
    const std::string unit(UnitOf(number.name));
    if (!unit.empty() && number.unit != unit) {
      return Bad(path, number,
                 number.name + " is in " + unit + ", and not in \"" + number.unit + "\"");
    }
    *value = number.value;
  }
  if (absl::Status status = Check(parameters); !status.ok()) return BadNumber(path, *read, status);
  return parameters;
}

}  // namespace esdp::testbed
