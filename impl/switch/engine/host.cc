#include "impl/switch/engine/host.h"

#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdio>

namespace esdp::switching {

HostCalls host;

void Descriptor::Reset(int number) {
  if (number_ >= 0) close(number_);
  number_ = number;
}

void Tell(int level, const char* format, ...) {
  std::array<char, 480> text;
  va_list rest;
  va_start(rest, format);
  (void)std::vsnprintf(text.data(), text.size(), format, rest);
  va_end(rest);
  host.log(level, text.data());
}

}  // namespace esdp::switching
