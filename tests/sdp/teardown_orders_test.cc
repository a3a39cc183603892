#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/sdp/pair.h"

// Every order in which two sides can shut down, close, abort and lose their connection, with data
// on the way or not, and with the next act at once or when all is quiet.

namespace esdp::sdp::testing {
namespace {

enum class Act { kShutA, kShutB, kCloseA, kCloseB, kAbortA, kAbortB, kBreak };
constexpr std::array kActs = {Act::kShutA,  Act::kShutB,  Act::kCloseA, Act::kCloseB,
                              Act::kAbortA, Act::kAbortB, Act::kBreak};
constexpr std::array kNames = {"ShutA", "ShutB", "CloseA", "CloseB", "AbortA", "AbortB", "Break"};

struct Play {
  std::vector<Act> acts;
  bool data = false;
  bool quiet = false;  // between the acts

  std::string Name() const {
    std::string name = std::string(data ? "data, " : "") + (quiet ? "quiet:" : "at once:");
    for (const Act act : acts) name += std::string(" ") + kNames[static_cast<size_t>(act)];
    return name;
  }
  bool Has(Act wanted) const {
    for (const Act act : acts) {
      if (act == wanted) return true;
    }
    return false;
  }
  bool in_order() const { return !Has(Act::kAbortA) && !Has(Act::kAbortB) && !Has(Act::kBreak); }
};

class Ending {
 public:
  explicit Ending(const Play& play) : play_(play), pair_(Options(), 11) {
    pair_.Connect();
    if (play.data) Post();
    for (const Act act : play.acts) {
      Do(act);
      if (play.quiet) pair_.Settle(Duration::zero());
    }
    pair_.Settle(Duration::zero());  // no limit of time is to run out
    // What the play has left open is closed.
    if (!pair_.a.core().closed() && !closed_a_) Do(Act::kCloseA);
    if (!pair_.b.core().closed() && !closed_b_) Do(Act::kCloseB);
    pair_.Settle();
  }

  void Check() {
    for (Side* side : {&pair_.a, &pair_.b}) {
      EXPECT_TRUE(side->core().closed()) << ToString(side->core().phase());
      EXPECT_EQ(side->pending(), 0u);
      EXPECT_LE(side->Posted<wire::DisConn>().size(), 1u);
      const size_t aborts = side->Posted<wire::AbortConn>().size();
      EXPECT_LE(aborts, side->Posted<wire::DisConn>().size()) << "AbortConn without DisConn";
      EXPECT_LE(aborts, 1u);
      if (play_.in_order() && !play_.data) {
        EXPECT_EQ(CauseOf(*side), Outcome::kDone);
      }
    }
  }

 private:
  static PairOptions Options() {
    PairOptions options;
    options.a = SmallConfig(true);
    options.b = SmallConfig(false);
    return options;
  }
  static Outcome CauseOf(const Side& side) {
    for (const Action& action : side.history()) {
      if (const auto* closed = std::get_if<ReportClosed>(&action)) return closed->cause;
    }
    return Outcome::kInternal;
  }
  void Post() {
    SendOptions send;
    send.pieces = {3000};
    ReceiveOptions receive;
    receive.pieces = {3000};
    for (Side* side : {&pair_.a, &pair_.b}) {
      side->AskToSend(send);
      side->AskToReceive(receive);
    }
  }
  void Do(Act act) {
    Side& side =
        act == Act::kShutA || act == Act::kCloseA || act == Act::kAbortA ? pair_.a : pair_.b;
    bool& closed = &side == &pair_.a ? closed_a_ : closed_b_;
    bool& aborted = &side == &pair_.a ? aborted_a_ : aborted_b_;
    switch (act) {
      case Act::kShutA:
      case Act::kShutB:
        if (!closed) side.AskToShutdown();
        break;
      case Act::kCloseA:
      case Act::kCloseB:
        if (!closed) side.AskToClose(false);
        closed = true;
        break;
      case Act::kAbortA:
      case Act::kAbortB:
        if (!aborted) side.AskToClose(true);
        closed = aborted = true;
        break;
      case Act::kBreak:
        pair_.Break(false);
        break;
    }
  }

  Play play_;
  Pair pair_;
  bool closed_a_ = false, closed_b_ = false, aborted_a_ = false, aborted_b_ = false;
};

// R13.1.3, R13.2.1, R13.2.9
TEST(TeardownOrdersTest, EveryOrderOfThreeActsEndsBothSidesAndEveryOperation) {
  size_t plays = 0;
  const size_t n = kActs.size();
  for (size_t code = 0; code < n * n * n; ++code) {
    for (const bool data : {false, true}) {
      for (const bool quiet : {false, true}) {
        const Play play{{kActs[code / (n * n)], kActs[code / n % n], kActs[code % n]}, data, quiet};
        SCOPED_TRACE(play.Name());
        Ending ending(play);
        ending.Check();
        ++plays;
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_EQ(plays, 4 * n * n * n);
}

}  // namespace
}  // namespace esdp::sdp::testing
