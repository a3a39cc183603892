#ifndef ESDP_IMPL_FABRIC_QPIP_HOT_LIST_H_
#define ESDP_IMPL_FABRIC_QPIP_HOT_LIST_H_

#include <algorithm>
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
  static constexpr uint32_t kTriesBeforeLook = 8;

  bool empty() const { return count_ == 0; }

  // The one that was idle longest makes room. False: it is there already.
  bool Add(QueuePairId id) {
    size_t place = 0;
    for (size_t i = 0; i < count_; ++i) {
      if (pairs_[i].id == id) return false;
      if (pairs_[i].idle_tries > pairs_[place].idle_tries) place = i;
    }
    if (count_ < kPairsMax) place = count_++;
    pairs_[place] = Pair{id, 0};
    return true;
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

  // The system was asked which sockets are ready, and named others than these.
  void OnOthersReady() { tries_before_look_ = std::max(tries_before_look_ / 2, 1u); }
  void OnBusy() { tries_before_look_ = std::min(tries_before_look_ + 1, kTriesBeforeLook); }
  // For how many rounds in vain these are tried before the others are looked at: an answer is often
  // there before that, unless it is the others that are busy.
  uint32_t tries_before_look() const { return tries_before_look_; }

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
  uint32_t tries_before_look_ = kTriesBeforeLook;
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_IMPL_FABRIC_QPIP_HOT_LIST_H_
