#ifndef ESDP_IMPL_FABRIC_SIM_HISTORY_H_
#define ESDP_IMPL_FABRIC_SIM_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "impl/base/bytes.h"
#include "impl/base/digest.h"
#include "impl/base/time.h"

namespace esdp::fabric::sim {

// What happened, in the words of a reader. `object` is the world's number of the queue pair or
// listener it happened to.
enum class StepKind : uint8_t {
  kConnect,
  kRequest,
  kAnswer,
  kEstablished,
  kPost,
  kTransmit,
  kArrive,
  kComplete,
  kWait,
  kEnd,
  kFault,
};
const char* ToString(StepKind kind);

struct Step {
  Time time;
  StepKind kind = StepKind::kPost;
  uint64_t object = 0;
  uint64_t detail = 0;   // what of: opcode, frame kind, cause, kind of fault
  uint64_t content = 0;  // lengths and digests of bytes
};

// Every step of a world. The digest covers all steps since the beginning; of the steps themselves
// the last ones are kept for people. Two runs are the same if and (but for a collision in 64 bits)
// only if their digests are.
class History {
 public:
  explicit History(size_t kept_max) : kept_max_(kept_max) {}

  void Record(const Step& step);
  uint64_t digest() const { return digest_.value(); }
  uint64_t count() const { return count_; }

  // The kept steps, oldest first, one line each.
  std::string Tail() const;

 private:
  size_t kept_max_;
  uint64_t count_ = 0;
  Digest digest_;
  std::deque<Step> kept_;
};

// The number that stands for a payload in the history.
uint64_t DigestOf(ConstBytes bytes);

}  // namespace esdp::fabric::sim

#endif  // ESDP_IMPL_FABRIC_SIM_HISTORY_H_
