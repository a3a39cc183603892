#include "tests/sdp/exhaustion/marks.h"

#include <array>

namespace esdp::sdp::exhaustion {
namespace {

constexpr std::array kTexts = {
#define ESDP_MARK(name, what) what,
#include "tests/sdp/exhaustion/marks.def"
#undef ESDP_MARK
};

}  // namespace

std::string ToText(Marks marks) {
  std::string text;
  for (size_t i = 0; i < kTexts.size(); ++i) {
    if ((marks >> i & 1) != 0) text += std::string("  ") + kTexts[i] + "\n";
  }
  return text;
}

}  // namespace esdp::sdp::exhaustion
