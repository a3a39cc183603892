#include "impl/provider/session/visibility.h"

#include <gtest/gtest.h>

#include <string>

#include "impl/base/check.h"

namespace esdp::provider {
namespace {

// Every state under every cue. A dot is an illegal move.
constexpr const char* kListing = R"(
Unannounced: Announced>Announced ListenerStopped>Orphaned Ended>Dropped Removed>Removed
Orphaned: Announced. ListenerStopped. Ended>Dropped Removed.
Announced: Announced>Announced ListenerStopped. Ended>Closed Removed>Removed
Closed: Announced. ListenerStopped. Ended. Removed>Removed
Dropped: Announced. ListenerStopped. Ended. Removed>Removed
Removed: Announced. ListenerStopped. Ended. Removed.
)";

TEST(VisibilityTest, AllowsTheseMovesAndNoOther) {
  std::string listing = "\n";
  for (size_t i = 0; i < kVisibilityNames.size(); ++i) {
    listing += std::string(kVisibilityNames[i]) + ":";
    for (size_t j = 0; j < kVisibilityCueNames.size(); ++j) {
      const auto to = Next(static_cast<Visibility>(i), static_cast<VisibilityCue>(j));
      listing += std::string(" ") + kVisibilityCueNames[j];
      listing += to ? std::string(">") + kVisibilityNames[static_cast<size_t>(*to)] : ".";
    }
    listing += "\n";
  }

  EXPECT_EQ(listing, kListing);
}

TEST(VisibilityTest, NoMoveIsListedTwice) {
  for (size_t i = 0; i < kVisibilityMoves.size(); ++i) {
    for (size_t j = i + 1; j < kVisibilityMoves.size(); ++j) {
      EXPECT_FALSE(kVisibilityMoves[i].from == kVisibilityMoves[j].from &&
                   kVisibilityMoves[i].cue == kVisibilityMoves[j].cue);
    }
  }
}

TEST(VisibilityTest, AnIllegalMoveIsReportedAndChangesNothing) {
  static int reported = 0;
  const CheckHook before = SetCheckHook([](const CheckFailure&) { ++reported; });
  Visibility visibility = Visibility::kOrphaned;

  EXPECT_FALSE(Move(visibility, VisibilityCue::kAnnounced));
  EXPECT_EQ(visibility, Visibility::kOrphaned);
  EXPECT_EQ(reported, 1);
  EXPECT_TRUE(Move(visibility, VisibilityCue::kEnded));
  EXPECT_EQ(visibility, Visibility::kDropped);
  EXPECT_EQ(reported, 1);
  (void)SetCheckHook(before);
}

TEST(VisibilityTest, TheFrontEndHearsOfTheEndOfWhatItKnowsAndOfNothingElse) {
  std::string known, ended;
  for (size_t i = 0; i < kVisibilityNames.size(); ++i) {
    const auto visibility = static_cast<Visibility>(i);
    if (IsKnown(visibility)) known += std::string(kVisibilityNames[i]) + " ";
    if (HasEnded(visibility)) ended += std::string(kVisibilityNames[i]) + " ";
  }

  EXPECT_EQ(known, "Announced Closed ");
  EXPECT_EQ(ended, "Closed Dropped Removed ");
}

}  // namespace
}  // namespace esdp::provider
