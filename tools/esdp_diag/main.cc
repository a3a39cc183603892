// Shows what Context::Open would find here, and what to do about what is missing.

#include <cstdio>
#include <string>
#include <vector>

#include "tools/esdp_diag/report.h"
#include "tools/esdp_diag/troubles.h"

namespace {

const char kUsage[] = R"(esdp_diag shows fabrics, devices, limits, and what "auto" would choose.

  esdp_diag [ADDRESS] [options]

  ADDRESS               tell the route to it too: 192.0.2.1, 192.0.2.1:7471, fe80::1%2, [::1]:7471
  --try ADDRESS:PORT    connect there once, for at most 5 s
  --fabric NAME         in place of "auto"
  --brief               no advice
  --explain NAME        print one section of the advice; without a known NAME: their names
  --root DIR            read /sys below DIR, to look at what another machine has sent
  --help

Ends with 0; with 1 if --try did not connect or --explain found nothing; with 2 if it was not understood.
)";

struct Command {
  esdp_diag::Question question;
  bool help = false;
  bool brief = false;
  bool explain = false;
  std::string topic;
};

// With a port or without.
absl::StatusOr<esdp::Address> ParseAddress(const std::string& text) {
  auto address = esdp::Address::Parse(text);
  if (!address.ok()) address = esdp::Address::Parse(text + ":0");
  if (!address.ok()) address = esdp::Address::Parse("[" + text + "]:0");
  if (!address.ok()) return esdp::Address::Parse(text);
  return address;
}

absl::Status TakeAddress(const std::string& text, Command& command) {
  const auto address = ParseAddress(text);
  if (!address.ok()) return address.status();
  command.question.address = *address;
  return absl::OkStatus();
}

absl::Status TakeValue(const std::string& name, const std::string& value, Command& command) {
  if (name == "--fabric") {
    command.question.fabric = value;
  } else if (name == "--root") {
    command.question.root = value;
  } else if (name == "--explain") {
    command.explain = true;
    command.topic = value;
  } else if (name == "--try") {
    command.question.connect = true;
    return TakeAddress(value, command);
  } else {
    return absl::InvalidArgumentError("'" + name + "' is no option; see --help");
  }
  return absl::OkStatus();
}

absl::StatusOr<Command> Parse(const std::vector<std::string>& arguments) {
  Command command;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    absl::Status status;
    if (argument == "--help") {
      command.help = true;
    } else if (argument == "--brief") {
      command.brief = true;
    } else if (argument == "--explain" && i + 1 == arguments.size()) {
      command.explain = true;
    } else if (!argument.starts_with("--")) {
      status = TakeAddress(argument, command);
    } else if (i + 1 == arguments.size()) {
      status = absl::InvalidArgumentError("'" + argument + "' is no option, or wants a value");
    } else {
      status = TakeValue(argument, arguments[++i], command);
    }
    if (!status.ok()) return status;
  }
  return command;
}

int Explain(const std::string& topic) {
  std::string names;
  for (const esdp_diag::Trouble& trouble : esdp_diag::ReadPage(esdp_diag::kPage)) {
    if (trouble.name == topic) {
      std::printf("%s\n\n%s", trouble.title.c_str(), trouble.text.c_str());
      return 0;
    }
    names += "  " + trouble.name + ": " + trouble.title + "\n";
  }
  std::fprintf(stderr, "there is advice on\n%s", names.c_str());
  return 1;
}

void Advise(const std::vector<std::string>& names) {
  for (const esdp_diag::Trouble& trouble : esdp_diag::ReadPage(esdp_diag::kPage)) {
    for (const std::string& name : names) {
      if (name != trouble.name) continue;
      std::printf("\n-- %s: %s\n\n%s", name.c_str(), trouble.title.c_str(), trouble.text.c_str());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto command = Parse({argv + 1, argv + argc});
  if (!command.ok()) {
    std::fprintf(stderr, "esdp_diag: %s\n", std::string(command.status().message()).c_str());
    return 2;
  }
  if (command->help) return std::fputs(kUsage, stdout), 0;
  if (command->explain) return Explain(command->topic);
  const esdp_diag::Report report = esdp_diag::Look(command->question);
  std::fputs(report.text.c_str(), stdout);
  if (!command->brief) Advise(report.troubles);
  return report.connected ? 0 : 1;
}
