#include "impl/assembly/fabric_name.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "impl/sockets/errors.h"

namespace esdp::assembly {
namespace {

using fabric::verbs::Profile;

constexpr char kKnown[] =
    "\"auto\", \"auto:DEVICE\", \"qpip\", \"verbs\", \"verbs:DEVICE\", "
    "\"verbs:DEVICE:ib\", \"verbs:DEVICE:native\", \"sim\" and \"sim:SEED\"";

std::string Printable(const std::string& text) { return absl::CHexEscape(text); }

absl::StatusOr<FabricName> ParseSim(const std::string& text) {
  FabricName name{Transport::kSim};
  if (text == "sim") return name;
  const char* const begin = text.data() + 4;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, name.seed);
  if (error == std::errc() && stop == end) return name;
  return sockets::MakeError(ErrorKind::kInvalidArgument, "the seed in \"" + Printable(text) +
                                                             "\" is no number: write \"sim:42\"");
}

// The device, and how its peers are met.
FabricName ParseVerbs(std::string device) {
  FabricName name{.transport = Transport::kVerbs, .device = std::move(device)};
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
  if (text.starts_with("auto:") && text.size() > 5) {
    return FabricName{.transport = Transport::kNone, .device = text.substr(5)};
  }
  if (text == "qpip") return FabricName{Transport::kQpip};
  if (text == "sim" || text.starts_with("sim:")) return ParseSim(text);
  if (text == "verbs") return FabricName{Transport::kVerbs};
  if (text.starts_with("verbs:") && text.size() > 6) {
    return ParseVerbs(text.substr(6));
  }
  if (text == "local") {
    return sockets::MakeError(ErrorKind::kUnsupported, "this build has no fabric \"" + text +
                                                           "\": use \"qpip\" or \"auto\"");
  }
  return sockets::MakeError(ErrorKind::kInvalidArgument,
                            "there is no fabric \"" + Printable(text) + "\": known are " + kKnown);
}

}  // namespace esdp::assembly
