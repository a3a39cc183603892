#ifndef ESDP_IMPL_SWITCH_RULES_RULE_PARSER_H_
#define ESDP_IMPL_SWITCH_RULES_RULE_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "impl/switch/rules/rule_set.h"

namespace esdp::switching {

// The program whose rules are asked for: the name it was started by, and the path of what runs.
struct Program {
  const char* name = "";
  const char* path = "";

  // A pattern with a "/" is one of the path.
  bool Matches(std::string_view pattern) const;
};

// A line that cannot be read.
struct RuleError {
  bool of_environment = false;
  uint32_t line = 0;
  const char* reason = "";
  std::string_view text;  // the word of the line; gone when the call returns
};

// Who is told of errors.
struct RuleErrors {
  void (*tell)(void* to, const RuleError& error) = nullptr;
  void* to = nullptr;

  void Tell(const RuleError& error) const {
    if (tell != nullptr) tell(to, error);
  }
};

// RuleParser reads rules, and adds those of one program to a set. Lines that it cannot read are told
// and left out; the others count. docs/man/esdp-switch.conf.5 has the grammar.
//
//   Owns:     nothing.
//   Threads:  one.
//   Blocks:   ReadFile, on the file.
//   Units:    -
//   Errors:   told; ReadFile: false where the file cannot be read, of which then nothing counts.
class RuleParser {
 public:
  static constexpr size_t kMaxFileBytes = 256 * 1024, kMaxLineBytes = 1024;

  RuleParser(const Program& program, RuleSet& set, RuleErrors errors)
      : program_(program), set_(set), errors_(errors) {}

  // `;` ends a line of the environment as well.
  void ReadText(std::string_view text, bool of_environment);
  // A regular file of at most kMaxFileBytes.
  bool ReadFile(const char* path);

 private:
  class Words;

  void ReadLine(std::string_view line);
  const char* ReadUse(Words& words);
  const char* ReadPeers(Words& words);
  const char* ReadLog(Words& words);

  const Program& program_;
  RuleSet& set_;
  const RuleErrors errors_;
  bool of_environment_ = false;
  uint32_t line_ = 0;
};

// LEVEL:file:PATH, LEVEL:syslog or LEVEL:stderr. False: none of these.
bool ReadLogTarget(std::string_view text, LogTarget& log);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_RULES_RULE_PARSER_H_
