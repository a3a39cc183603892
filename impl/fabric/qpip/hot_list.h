#ifndef ESDP_IMPL_FABRIC_QPIP_HOT_LIST_H_
#define ESDP_IMPL_FABRIC_QPIP_HOT_LIST_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "impl/fabric/types.h"

namespace esdp::fabric::qpip {

// The few queue pairs that received last: worth a try without asking the system which are ready.
class HotList {
 public:
  enum class Verdict : uint8_t { kBusy, kIdle, kForget };

  static constexpr size_t kPairsMax = 4;
  // One that is tried in vain so often costs more than it saves. The only one may stay longer: a
  // spinning caller has nothing else to try.
  static constexpr uint32_t kIdleTriesMax = 64;
  static constexpr uint32_t kIdleTriesMaxAlone = 16384;
  static constexpr uint32_t kBusyRoundsPerLook = 16;

  bool empty() const { return count_ == 0; }

  // The one that was idle longest makes room.
  void Add(QueuePairId id) {
    size_t place = 0;
    for (size_t i = 0; i < count_; ++i) {
      if (pairs_[i].id == id) return;
      if (pairs_[i].idle_tries > pairs_[place].idle_tries) place = i;
    }
    if (count_ < kPairsMax) place = count_++;
    pairs_[place] = Pair{id, 0};
  }

  void Forget(QueuePairId id) {
    for (size_t i = 0; i < count_; ++i) {
      if (pairs_[i].id == id) pairs_[i] = pairs_[--count_];
    }
  }

  // Calls visit(id) for each; it must not add or forget.
  template <typename Visitor>
  void Visit(Visitor visit) {
    for (size_t i = 0; i < count_;) {
      const Verdict verdict = visit(pairs_[i].id);
      pairs_[i].idle_tries = verdict == Verdict::kBusy ? 0 : pairs_[i].idle_tries + 1;
      const uint32_t most = count_ == 1 ? kIdleTriesMaxAlone : kIdleTriesMax;
      if (verdict == Verdict::kForget || pairs_[i].idle_tries > most) {
        pairs_[i] = pairs_[--count_];
      } else {
        ++i;
      }
    }
  }

  // Whether the others have waited for long enough.
  bool TimeToLook() {
    if (++rounds_ < kBusyRoundsPerLook) return false;
    rounds_ = 0;
    return true;
  }

 private:
  struct Pair {
    QueuePairId id = QueuePairId::kNone;
    uint32_t idle_tries = 0;
  };

  std::array<Pair, kPairsMax> pairs_{};
  size_t count_ = 0;
  uint32_t rounds_ = 0;
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_HOT_LIST_H_
