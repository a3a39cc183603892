#ifndef ESDP_IMPL_SWITCH_RULES_FIELDS_H_
#define ESDP_IMPL_SWITCH_RULES_FIELDS_H_

#include <cstdint>
#include <string_view>

#include "impl/switch/rules/rule.h"

// Words of a rule. Each answers null, or why the word cannot be read.

namespace esdp::switching {

// Digits alone, at most `max`.
bool ReadNumber(std::string_view text, uint64_t max, uint64_t& value);
// A part of `text`, which ends before it does at most. (substr could throw, for which libc has no
// code.)
std::string_view Part(std::string_view text, size_t from, size_t count = SIZE_MAX);

// address[/bits] of IPv4 or IPv6, the latter also in brackets.
const char* ReadNetwork(std::string_view text, Network& network);
// The network or *, a colon, and a port, a range of them or *.
const char* ReadWhere(std::string_view text, Rule& rule);
// name=value
const char* ReadOption(std::string_view text, RuleOptions& options);

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_RULES_FIELDS_H_
