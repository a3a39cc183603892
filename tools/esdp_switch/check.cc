#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <istream>
#include <sstream>
#include <string>

#include "impl/switch/rules/fields.h"
#include "impl/switch/rules/rule_parser.h"
#include "impl/switch/rules/rule_set.h"
#include "tools/esdp_switch/commands.h"
#include "tools/esdp_switch/processes.h"

namespace esdp_switch {
namespace {

using esdp::switching::Endpoint;
using esdp::switching::Role;
using esdp::switching::Rule;
using esdp::switching::RuleError;

constexpr char kFile[] = "/etc/esdp/switch.conf";

struct Told {
  std::string file;
  int errors = 0;
};

void TellError(void* to, const RuleError& error) {
  Told& told = *static_cast<Told*>(to);
  ++told.errors;
  const std::string where = error.of_environment ? "ESDP_SWITCH_RULES" : told.file;
  std::fprintf(stderr, "%s:%u: %s: '%.*s'\n", where.c_str(), error.line, error.reason,
               static_cast<int>(error.text.size()), error.text.data());
}

// As the library finds it.
std::string FileOfRules() {
  if (const char* const file = getenv("ESDP_SWITCH_CONFIG"); file != nullptr) return file;
  return access(kFile, F_OK) == 0 ? kFile : BesideProgram("etc/esdp/switch.conf");
}

std::string LineOf(std::istream&& text, char end, unsigned line) {
  std::string read;
  for (unsigned i = 0; i < line; ++i) std::getline(text, read, end);
  return read;
}

bool ReadEndpoint(const std::string& text, Endpoint& where) {
  Rule rule;
  if (esdp::switching::ReadWhere(text, rule) != nullptr) return false;
  where = {.address = rule.network.address, .port = rule.first_port};
  return rule.network.bits == 128 && rule.first_port == rule.last_port;
}

}  // namespace

int Check(const Words& words) {
  if (words.size() != 4) return Complain(2, "check wants PROGRAM server|client ADDRESS:PORT");
  const bool server = words[2] == "server" || words[2] == "listen";
  if (!server && words[2] != "client" && words[2] != "connect") {
    return Complain(2, "the role is server or client");
  }
  Endpoint where;
  if (!ReadEndpoint(words[3], where)) return Complain(2, "'" + words[3] + "' is no ADDRESS:PORT");
  const std::string name = words[1].substr(words[1].find_last_of('/') + 1);
  const esdp::switching::Program program = {.name = name.c_str(), .path = words[1].c_str()};
  Told told = {.file = FileOfRules()};
  esdp::switching::RuleSet set;
  esdp::switching::RuleParser parser(program, set, {.tell = TellError, .to = &told});
  const char* const lines = getenv("ESDP_SWITCH_RULES");
  if (lines != nullptr) parser.ReadText(lines, true);
  if (access(told.file.c_str(), F_OK) == 0 && !parser.ReadFile(told.file.c_str())) {
    (void)Complain(1, told.file + " cannot be read: all is tcp");
    ++told.errors;
  }
  const Rule* const rule = set.Find(server ? Role::kServer : Role::kClient, where);
  if (rule == nullptr) {
    std::printf("tcp\tno rule matches\n");
  } else {
    const std::string line = rule->of_environment
                                 ? LineOf(std::istringstream(lines), ';', rule->line)
                                 : LineOf(std::ifstream(told.file), '\n', rule->line);
    std::printf("%s\t%s:%u: %s\n", kVerdicts[static_cast<size_t>(rule->verdict)],
                rule->of_environment ? "ESDP_SWITCH_RULES" : told.file.c_str(), rule->line,
                line.c_str());
  }
  return told.errors == 0 ? 0 : 1;
}

}  // namespace esdp_switch
