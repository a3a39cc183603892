#include "tools/esdp_copy/progress_bar.h"

#include <gtest/gtest.h>

#include "absl/time/time.h"

namespace esdp_copy {
namespace {

TEST(ProgressBarTest, ShowsPartRateAndWhatIsLeft) {
  EXPECT_EQ(BarLine("f", 50, 100, 50, absl::Seconds(1)),
            "f  50% [###############               ]      0.0 MB/s  1 s left");
  EXPECT_EQ(BarLine("f", 8000000, 8000000, 8000000, absl::Seconds(2)),
            "f 100% [##############################]      4.0 MB/s");
  EXPECT_EQ(BarLine("f", 0, 0, 0, absl::ZeroDuration()),
            "f 100% [##############################]      0.0 MB/s");
}

}  // namespace
}  // namespace esdp_copy
