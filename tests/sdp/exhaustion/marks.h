#ifndef ESDP_TESTS_SDP_EXHAUSTION_MARKS_H_
#define ESDP_TESTS_SDP_EXHAUSTION_MARKS_H_

#include <cstdint>
#include <string>

// The outcomes of races that a search must have reached, or it has proved nothing. Each is told
// from messages alone, by the end that it happens to.

namespace esdp::sdp::exhaustion {

using Marks = uint64_t;

enum class Mark : uint8_t {
#define ESDP_MARK(name, what) name,
#include "tests/sdp/exhaustion/marks.def"
#undef ESDP_MARK
};

constexpr Marks Bit(Mark mark) { return Marks{1} << static_cast<uint8_t>(mark); }

template <typename... Rest>
constexpr Marks MarksOf(Rest... marks) {
  return (Marks{0} | ... | Bit(marks));
}

// One line for each.
std::string ToText(Marks marks);

}  // namespace esdp::sdp::exhaustion

#endif  // ESDP_TESTS_SDP_EXHAUSTION_MARKS_H_
