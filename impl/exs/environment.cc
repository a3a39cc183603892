#include "impl/exs/environment.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace esdp::exs {

const char* FabricOfEnvironment() { return secure_getenv("EXS_FABRIC"); }

uint64_t PinLimitOfEnvironment() {
  const char* const value = secure_getenv("EXS_PIN_MAX");
  if (value == nullptr) return UINT64_MAX;
  const std::string_view text(value);
  uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  const bool number = error == std::errc() && end == text.data() + text.size();
  return number ? bytes : UINT64_MAX;
}

}  // namespace esdp::exs
