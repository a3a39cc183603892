#include "tools/esdp_get/options.h"

#include <charconv>
#include <utility>

#include "absl/status/status.h"

namespace esdp_get {

const char kUsage[] = R"(esdp_get fetches files from esdp_serve, and brings some there.

  esdp_get get ADDRESS:PORT NAME... [--to PATH] [OPTION...]
  esdp_get put ADDRESS:PORT FILE... [--to FOLDER] [OPTION...]
  esdp_get ls ADDRESS:PORT [FOLDER...]
  esdp_get stat ADDRESS:PORT NAME...

get and put
  --to PATH        get: a folder, or for one NAME also a name; the working folder unless told. put: a folder there
  --recursive      folders with all that is below them
  --replace        put: a file of that name gives way; get replaces it in any case
  --resume         go on behind what an earlier run has left, if it is still the same file
  --crc            check a CRC32C of each MiB. With --resume what is there is read and compared, too
  --sha256         get: compare the SHA-256 of all of each file with the server's
  --sync           get: each file is on the medium before it has its name; put does so in any case, and with it also
                   each 64 MiB on the way
  --progress       draw a bar, also when standard error is no terminal
  --quiet          no bar, and no line for each file

All
  --fabric NAME    qpip (default), or another that Context::Open knows; the server's
  --weight N       ask for N shares, 1 to 100, while the server is short of slots: at most as many as it gives
                   clients from here, which is what they have unless told
  --help

Ends with 0; with 1 if running again, with --resume, may help; with 2 if it was not understood; with 3 if something
failed for good.
)";

namespace {

absl::Status Refuse(const std::string& text) { return absl::InvalidArgumentError(text); }

bool TakeFlag(const std::string& name, Options& options) {
  if (name == "--help") return options.help = true;
  if (name == "--recursive") return options.recursive = true;
  if (name == "--resume") return options.resume = true;
  if (name == "--replace") return options.replace = true;
  if (name == "--crc") return options.crc = true;
  if (name == "--sha256") return options.sha256 = true;
  if (name == "--sync") return options.sync = true;
  if (name == "--progress") return options.progress = true;
  if (name == "--quiet") return options.quiet = true;
  return false;
}

absl::Status TakeValue(const std::string& name, const std::string& value, Options& options) {
  if (name == "--to" || name == "--fabric") {
    (name == "--to" ? options.to : options.fabric) = value;
    return absl::OkStatus();
  }
  constexpr uint32_t kMost = 100;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, options.weight);
  const bool sound = error == std::errc() && stop == end && options.weight > 0;
  if (sound && options.weight <= kMost) return absl::OkStatus();
  return Refuse("--weight: '" + value + "' is no number from 1 to 100");
}

absl::Status TakeWords(std::vector<std::string> words, Options& options) {
  if (words.empty()) return Refuse("say what to do: get, put, ls or stat; see --help");
  if (words[0] == "get") {
    options.command = Command::kGet;
  } else if (words[0] == "put") {
    options.command = Command::kPut;
  } else if (words[0] == "ls") {
    options.command = Command::kList;
  } else if (words[0] == "stat") {
    options.command = Command::kStat;
  } else {
    return Refuse("'" + words[0] + "' is none of get, put, ls and stat; see --help");
  }
  if (words.size() < 2) return Refuse(words[0] + " wants ADDRESS:PORT");
  const auto server = esdp::Address::Parse(words[1]);
  if (!server.ok()) return Refuse("'" + words[1] + "' is no ADDRESS:PORT");
  options.server = *server;
  options.names.assign(words.begin() + 2, words.end());
  if (!options.names.empty()) return absl::OkStatus();
  if (options.command != Command::kList) return Refuse(words[0] + " wants a NAME");
  options.names = {""};
  return absl::OkStatus();
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
    if (argument != "--to" && argument != "--fabric" && argument != "--weight") {
      return Refuse("'" + argument + "' is no option; see --help");
    }
    if (++i == arguments.size()) return Refuse(argument + " wants a value");
    if (absl::Status taken = TakeValue(argument, arguments[i], options); !taken.ok()) return taken;
  }
  if (options.help) return options;
  if (absl::Status status = TakeWords(std::move(words), options); !status.ok()) return status;
  return options;
}

}  // namespace esdp_get
