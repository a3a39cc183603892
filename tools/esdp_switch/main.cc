#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "tools/esdp_switch/commands.h"

namespace esdp_switch {
namespace {

constexpr char kHelp[] =
    "esdp_switch run [--rule LINE] [--config FILE] [--log LEVEL:file:PATH] [--library FILE]\n"
    "                PROGRAM [ARGUMENT ...]\n"
    "    run a program under the socket switch; without rules: both, for all it does\n"
    "esdp_switch check PROGRAM server|client ADDRESS:PORT\n"
    "    name the rule that decides\n"
    "esdp_switch list [PID]\n"
    "    show the connections of programs under the switch\n"
    "esdp_switch why PID\n"
    "    tell why a program's connections go the way they go\n"
    "esdp_switch --help\n"
    "\nSee esdp_switch(1), esdp-switch.conf(5), esdp-switch(7).\n";

}  // namespace

int Complain(int status, const std::string& line) {
  std::fprintf(stderr, "esdp_switch: %s\n", line.c_str());
  return status;
}

std::string BesideProgram(const std::string& path) {
  std::array<char, 4096> own{};
  const ssize_t bytes = readlink("/proc/self/exe", own.data(), own.size() - 1);
  std::string folder(own.data(), bytes > 0 ? static_cast<size_t>(bytes) : 0);
  folder.erase(folder.find_last_of('/') + 1);
  return folder + "../" + path;
}

namespace {

int Main(int count, char** arguments) {
  const Words words(arguments + 1, arguments + count);
  if (words.empty()) return std::fputs(kHelp, stderr), 2;
  if (words[0] == "--help" || words[0] == "-h") return std::fputs(kHelp, stdout), 0;
  if (words[0] == "run") return Run(words, arguments + 1);
  if (words[0] == "check") return Check(words);
  if (words[0] == "list") return List(words);
  if (words[0] == "why") return Why(words);
  return Complain(2, "'" + words[0] + "' is no command; see --help");
}

}  // namespace
}  // namespace esdp_switch

int main(int count, char** arguments) { return esdp_switch::Main(count, arguments); }
