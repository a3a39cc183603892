#ifndef ESDP_TESTS_SDP_PAIR_H_
#define ESDP_TESTS_SDP_PAIR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/sdp/side.h"

// Two cores back to back in memory. Payload is really moved, as late as a fabric might move it, and
// nothing is read that is not exposed. What happens next is chosen from a seed.

namespace esdp::sdp::testing {

struct PairOptions {
  Config a, b;
  uint32_t reads_a = 4, reads_b = 4;  // RDMA reads each may have in flight
  int expose_failure_percent = 0;
};

class Pair {
 public:
  Pair(const PairOptions& options, uint64_t seed);

  Side a, b;

  void Connect();
  // Lets one thing happen, chosen by the seed. False: nothing can, except that time passes.
  bool Happen();
  // To the next timer. False: none is set.
  bool LetTimePass();
  // Until nothing can happen any more; time passes as far as timers go, at most this far in all.
  void Settle(Duration patience = std::chrono::minutes(5));
  Time now() const { return now_; }
  // Ends the connection from outside.
  void Break(bool fabric_error);

 private:
  struct Possible {
    Side* side;
    int what;
  };
  void Collect(Side& side, Side& peer, std::vector<Possible>& possible) const;
  static bool HasMail(const Side& side, const Side& peer);
  bool MayEnd(const Side& side, const Side& peer) const;
  void Do(Side& side, Side& peer, int what);
  void StartWork(Side& side, const Side& peer);
  void Deliver(Side& side, Side& peer);
  void FinishRead(Side& side, Side& peer);
  void FinishWrite(Side& side);
  void Lose(Side& side);
  Time EarliestTimer() const;
  Side& PeerOf(const Side& side) { return &side == &a ? b : a; }

  PairOptions options_;
  Random random_;
  Time now_{};
  std::vector<Possible> possible_;
  std::optional<bool> broken_;  // fabric_error
};

// Small buffers and thresholds, so that every rule is reached with few bytes.
Config SmallConfig(bool connecting);

}  // namespace esdp::sdp::testing

#endif  // ESDP_TESTS_SDP_PAIR_H_
