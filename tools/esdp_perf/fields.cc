#include "tools/esdp_perf/fields.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace esdp_perf {

void Fields::Set(const std::string& name, double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", value);
  values_[name] = text;
}

std::string Fields::Text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string() : found->second;
}

uint64_t Fields::Number(const std::string& name) const {
  const std::string text = Text(name);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

double Fields::Real(const std::string& name) const {
  return std::strtod(Text(name).c_str(), nullptr);
}

std::string Fields::Encode() const {
  std::string text;
  for (const auto& [name, value] : values_) text += name + "=" + value + "\n";
  return text;
}

std::optional<Fields> Fields::Decode(std::string_view text) {
  Fields fields;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t equals = text.find('=');
    if (end == std::string_view::npos || equals == std::string_view::npos || equals > end) {
      return std::nullopt;
    }
    const std::string name(text.substr(0, equals));
    const std::string value(text.substr(equals + 1, end - equals - 1));
    if (!fields.values_.emplace(name, value).second) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  return fields;
}

}  // namespace esdp_perf
