#ifndef ESDP_IMPL_SWITCH_SHIM_ENVIRONMENT_H_
#define ESDP_IMPL_SWITCH_SHIM_ENVIRONMENT_H_

namespace esdp::switching {

// Of the program: where the switch is told what to do. Null where it says nothing, and in a program
// that has other rights than its user.
struct Environment {
  const char* config;   // ESDP_SWITCH_CONFIG: the rule file
  const char* rules;    // ESDP_SWITCH_RULES: lines ahead of it
  const char* log;      // ESDP_SWITCH_LOG
  const char* mode;     // ESDP_SWITCH_MODE: of all rules
  const char* fd_base;  // ESDP_SWITCH_FD_BASE: how many descriptors it may have
  bool off;             // ESDP_SWITCH_OFF=1, and other rights
};

Environment ReadEnvironment();

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_SHIM_ENVIRONMENT_H_
