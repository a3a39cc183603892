#include "tools/esdp_serve/options.h"

#include <charconv>

#include "absl/status/status.h"

namespace esdp_serve {

const char kUsage[] = R"(esdp_serve serves the files below a folder.

  esdp_serve ROOT [--listen ADDRESS:PORT] [--metrics ADDRESS:PORT] [OPTION...]

What it serves
  --read-only            takes no files from clients
  --no-links             follow no symbolic link; else those that stay below ROOT
  --one-file-system      nothing that is mounted below ROOT
  --drop-behind          the page cache forgets what was sent or brought of files longer than 64 KiB: for
                         more data than there is memory, that nobody reads again soon

Where
  --listen ADDRESS:PORT  127.0.0.1:0 unless told; port 0: any free one; the server prints it
  --fabric NAME          qpip (default), or another that Context::Open knows; clients the same
  --metrics ADDRESS:PORT counts, as Prometheus reads them, over HTTP; the server prints the port

What clients may take
  --clients N            at once; 256. Who comes then is told to come again
  --slots N              answers and chunks on their way, in all; 64. A client has up to 4
  --weight ADDRESS[/BITS]=N
                         while slots are short, clients from there have N shares, 1 to 100; 1 unless told. A client may
                         ask for fewer. Several may be given: the one with the most bits counts
  --stalled SECONDS      a client that takes nothing for so long, while there are no slots, is ended;
                         60. Five times as long where there are
  --threads N            that wait for the file system; 4

  --grace SECONDS        on SIGTERM or SIGINT what flows has so long to its end; 30. A second signal
                         ends it
  --help

Ends with 0; with 2 if it was not understood; with 3 if it cannot serve. There is no login and no encryption: serve
trusted networks only.
)";

namespace {

absl::Status Refuse(const std::string& text) { return absl::InvalidArgumentError(text); }

absl::Status TakeNumber(const std::string& name, const std::string& text, uint64_t least,
                        uint64_t& value) {
  constexpr uint64_t kMost = 1 << 16;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= least && value <= kMost) {
    return absl::OkStatus();
  }
  return Refuse(name + ": '" + text + "' is no number from " + std::to_string(least) + " to 65536");
}

absl::Status TakeAddress(const std::string& name, const std::string& text, esdp::Address& address) {
  const auto parsed = esdp::Address::Parse(text);
  if (!parsed.ok()) return Refuse(name + ": '" + text + "' is no ADDRESS:PORT");
  address = *parsed;
  return absl::OkStatus();
}

absl::Status TakeValue(const std::string& name, const std::string& value, Options& options) {
  if (name == "--listen") return TakeAddress(name, value, options.listen);
  if (name == "--clients") return TakeNumber(name, value, 1, options.clients);
  if (name == "--slots") return TakeNumber(name, value, 2, options.slots);
  if (name == "--threads") return TakeNumber(name, value, 1, options.threads);
  if (name == "--stalled") return TakeNumber(name, value, 1, options.stalled_seconds);
  if (name == "--grace") return TakeNumber(name, value, 0, options.grace_seconds);
  if (name == "--metrics") {
    options.metrics.emplace();
    return TakeAddress(name, value, *options.metrics);
  }
  if (name == "--weight") {
    const absl::Status added = options.weights.Add(value);
    return added.ok() ? added : Refuse(name + ": " + std::string(added.message()));
  }
  if (name == "--fabric") {
    options.fabric = value;
    return absl::OkStatus();
  }
  return Refuse("'" + name + "' is no option; see --help");
}

bool TakeFlag(const std::string& name, Options& options) {
  if (name == "--help") return options.help = true;
  if (name == "--read-only") return options.read_only = true;
  if (name == "--one-file-system") return options.one_file_system = true;
  if (name == "--drop-behind") return options.drop_behind = true;
  if (name != "--no-links") return false;
  options.links = false;
  return true;
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  options.listen = esdp::Address::Parse("127.0.0.1:0").value_or(esdp::Address());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (TakeFlag(argument, options)) continue;
    if (!argument.starts_with("--")) {
      if (!options.root.empty()) return Refuse("'" + argument + "': there is one ROOT");
      options.root = argument;
      continue;
    }
    const std::string value = i + 1 < arguments.size() ? arguments[i + 1] : "";
    if (absl::Status status = TakeValue(argument, value, options); !status.ok()) return status;
    if (++i == arguments.size()) return Refuse(argument + " wants a value");
  }
  if (!options.help && options.root.empty()) return Refuse("say which folder; see --help");
  return options;
}

}  // namespace esdp_serve
