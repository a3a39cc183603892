#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "impl/switch/rules/rule_parser.h"
#include "impl/switch/rules/rule_set.h"

// Bytes as the text of a rule file, and as the lines of the environment. What is added must be in
// range, and every error must say its line and why.

namespace esdp::switching {
namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

void CheckError(void* to, const RuleError& error) {
  Require(error.line >= 1 && !std::string_view(error.reason).empty());
  ++*static_cast<size_t*>(to);
}

void ReadAll(std::string_view text, bool of_environment) {
  const Program program = {.name = "program", .path = "/usr/bin/program"};
  RuleSet set;
  size_t errors = 0;
  RuleParser(program, set, {.tell = CheckError, .to = &errors}).ReadText(text, of_environment);
  for (const Rule& rule : set.rules()) {
    Require(rule.line >= 1 && rule.network.bits <= 128 && rule.first_port <= rule.last_port);
    Require(rule.options.wait_ms <= RuleOptions::kMaxMilliseconds);
    Require(rule.options.buffer_bytes <= RuleOptions::kMaxBuffer);
    const Endpoint first = {.address = rule.network.address, .port = rule.first_port};
    Require(rule.Matches(rule.role, first) && set.Find(rule.role, first) != nullptr);
  }
  Require(std::memchr(set.log().path.data(), 0, LogTarget::kMaxPath) != nullptr);
}

}  // namespace
}  // namespace esdp::switching

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  esdp::switching::ReadAll(text, false);
  esdp::switching::ReadAll(text, true);
  esdp::switching::LogTarget log;
  (void)esdp::switching::ReadLogTarget(text, log);
  return 0;
}
