#include "impl/base/trace.h"

#include <chrono>

#include "gtest/gtest.h"

namespace esdp {
namespace {

Time At(int64_t nanoseconds) { return Time(std::chrono::nanoseconds(nanoseconds)); }

TEST(TraceTest, ARecordReadsAsTimeDeedAndFields) {
  Trace trace(4);
  trace.Add(At(12'000'345'678), "data arrived", {{"mseq", 5}, {"credits", 3}});
  EXPECT_EQ(trace.Text(), "12.000345678 data arrived mseq=5 credits=3\n");
}

TEST(TraceTest, NothingAddedIsNoText) { EXPECT_EQ(Trace(4).Text(), ""); }

TEST(TraceTest, TheOldestRecordsMakeRoomAndAreCounted) {
  Trace trace(2);
  trace.Add(At(1), "one");
  trace.Add(At(2), "two");
  EXPECT_EQ(trace.dropped(), 0u);
  trace.Add(At(3), "three");
  EXPECT_EQ(trace.dropped(), 1u);
  EXPECT_EQ(trace.Text(), "0.000000002 two\n0.000000003 three\n");
}

TEST(TraceTest, FieldsBeyondTheLimitAreLeftOut) {
  Trace trace(1);
  trace.Add(At(0), "many", {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}});
  EXPECT_EQ(trace.Text(), "0.000000000 many a=1 b=2 c=3 d=4\n");
}

TEST(TraceTest, ATraceWithoutRecordsIsOff) {
  Trace trace(0);
  trace.Add(At(1), "one");
  EXPECT_EQ(trace.Text(), "");
  EXPECT_EQ(trace.dropped(), 0u);
}

}  // namespace
}  // namespace esdp
