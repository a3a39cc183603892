#ifndef ESDP_TOOLS_ESDP_SWITCH_COMMANDS_H_
#define ESDP_TOOLS_ESDP_SWITCH_COMMANDS_H_

#include <string>
#include <vector>

// The commands of esdp_switch. Each answers the exit status: 0, 1 where what was asked for is not
// there, 2 where the command line was not understood.

namespace esdp_switch {

using Words = std::vector<std::string>;

int Run(const Words& words, char** rest);
int Check(const Words& words);
int List(const Words& words);
int Why(const Words& words);

// A line on stderr; answers `status`.
int Complain(int status, const std::string& line);

// PREFIX/lib/libesdp-switch.so and PREFIX/etc/esdp/switch.conf, of PREFIX/bin/esdp_switch.
std::string BesideProgram(const std::string& path);

}  // namespace esdp_switch

#endif  // ESDP_TOOLS_ESDP_SWITCH_COMMANDS_H_
