#include "impl/assembly/fabric_name.h"

#include <charconv>
#include <string_view>

#include "absl/strings/escaping.h"
#include "impl/assembly/fabric_table.h"
#include "impl/sockets/errors.h"

namespace esdp::assembly {
namespace {

using fabric::verbs::Profile;

std::string Printable(std::string_view text) { return absl::CHexEscape(std::string(text)); }

absl::Status Unknown(std::string_view text) {
  std::string known = "\"auto\", \"auto:DEVICE\", \"auto:nolocal\"";
  for (const FabricRow& row : FabricTable()) {
    known += std::string(", ") + row.known;
  }
  return sockets::MakeError(ErrorKind::kInvalidArgument,
                            "there is no fabric \"" + Printable(text) + "\": known are " + known);
}

absl::StatusOr<FabricName> ParseSeed(const FabricRow& row, std::string_view text) {
  FabricName name{row.transport};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, name.seed);
  if (error == std::errc() && stop == end) return name;
  return sockets::MakeError(ErrorKind::kInvalidArgument,
                            std::string("the seed in \"") + row.name + ":" + Printable(text) +
                                "\" is no number: write \"" + row.name + ":42\"");
}

// The device, and how its peers are met.
FabricName ParseDevice(const FabricRow& row, std::string_view device) {
  FabricName name{.transport = row.transport, .device = std::string(device)};
  const auto take = [&name](std::string_view ending, Profile profile) {
    if (!name.device.ends_with(ending)) return;
    name.device.resize(name.device.size() - ending.size());
    name.profile = profile;
  };
  take(":ib", Profile::kInfiniBand);
  take(":native", Profile::kNative);
  return name;
}

}  // namespace

absl::StatusOr<FabricName> ParseFabricName(const std::string& text) {
  if (text == "auto") return FabricName{};
  if (text == "auto:nolocal") return FabricName{.with_local = false};
  if (text.starts_with("auto:") && text.size() > 5) {
    return FabricName{.transport = Transport::kNone, .with_local = false, .device = text.substr(5)};
  }
  const size_t colon = text.find(':');
  const FabricRow* const row = FindFabric(std::string_view(text).substr(0, colon));
  if (row == nullptr) return Unknown(text);
  if (colon == std::string::npos) return FabricName{row->transport};
  const std::string_view rest = std::string_view(text).substr(colon + 1);
  if (row->suffix == Suffix::kSeed) return ParseSeed(*row, rest);
  if (row->suffix == Suffix::kDevice && !rest.empty()) return ParseDevice(*row, rest);
  return Unknown(text);
}

}  // namespace esdp::assembly
