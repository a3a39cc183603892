#ifndef ESDP_IMPL_SWITCH_SHIM_PROGRAM_RULES_H_
#define ESDP_IMPL_SWITCH_SHIM_PROGRAM_RULES_H_

#include "impl/switch/engine_interface.h"
#include "impl/switch/rules/rule_set.h"
#include "impl/switch/shim/environment.h"

namespace esdp::switching {

// The rules of this program: of the environment, then of the file.
extern constinit RuleSet rules;

// From the environment and the rule file. `argv0` is the name that the program was started by.
void ReadProgramRules(const Environment& environment, const char* argv0);

// By the rules' log, with the number of the process; nothing where there is none.
void Log(int level, const char* text);

// Of an address of the internet; false where it is none.
bool ToEndpoint(const Name& name, socklen_t bytes, Endpoint& to);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_PROGRAM_RULES_H_
