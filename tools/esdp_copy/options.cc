#include "tools/esdp_copy/options.h"

#include <charconv>

#include "absl/status/status.h"

namespace esdp_copy {

const char kUsage[] = R"(esdp_copy copies files to another machine, checked by SHA-256.

  esdp_copy --serve FOLDER [--listen ADDRESS:PORT] [--sessions N] [--fabric NAME]
  esdp_copy FILE... ADDRESS:PORT [--resume] [--progress] [--quiet] [--fabric NAME]

Server
  --serve FOLDER         take files, and put them there
  --listen ADDRESS:PORT  127.0.0.1:0 unless told; port 0: any free one; the server prints it
  --sessions N           end after N files; 0, the default: never

Client
  --resume               go on behind what an earlier run has left
  --progress             draw a bar, also when standard error is no terminal
  --quiet                no bar, and no line for each file

Both
  --fabric NAME          qpip (default), or another that Context::Open knows; both sides the same
  --help

Ends with 0; with 1 if running again with --resume may help; with 2 if it was not understood; with 3 if a file failed
for good.
)";

namespace {

absl::Status Refuse(const std::string& text) { return absl::InvalidArgumentError(text); }

absl::Status TakeValue(const std::string& name, const std::string& value, Options& options) {
  if (name == "--serve") {
    options.folder = value;
  } else if (name == "--listen") {
    options.listen = value;
  } else if (name == "--fabric") {
    options.fabric = value;
  } else if (name == "--sessions") {
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, options.sessions);
    if (error != std::errc() || stop != end)
      return Refuse("--sessions: '" + value + "' is no number");
  } else {
    return Refuse("'" + name + "' is no option; see --help");
  }
  return absl::OkStatus();
}

bool TakeFlag(const std::string& name, Options& options) {
  if (name == "--help") return options.help = true;
  if (name == "--resume") return options.resume = true;
  if (name == "--progress") return options.progress = true;
  if (name == "--quiet") return options.quiet = true;
  return false;
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  std::vector<std::string> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (TakeFlag(argument, options)) continue;
    if (!argument.starts_with("--")) {
      words.push_back(argument);
      continue;
    }
    const std::string value = i + 1 < arguments.size() ? arguments[i + 1] : "";
    if (absl::Status status = TakeValue(argument, value, options); !status.ok()) return status;
    if (++i == arguments.size()) return Refuse(argument + " wants a value");
  }
  if (options.help) return options;
  if (!options.folder.empty()) {
    if (!words.empty()) return Refuse("'" + words[0] + "': a server copies nothing itself");
    return options;
  }
  if (words.size() < 2) return Refuse("say which file, and to which ADDRESS:PORT; see --help");
  const auto server = esdp::Address::Parse(words.back());
  if (!server.ok()) return Refuse("'" + words.back() + "' is no ADDRESS:PORT");
  options.server = *server;
  words.pop_back();
  options.files = words;
  return options;
}

}  // namespace esdp_copy
