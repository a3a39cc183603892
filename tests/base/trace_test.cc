#include "impl/base/trace.h"

#include <chrono>

#include "gtest/gtest.h"

namespace esdp {
namespace {

Time At(int64_t nanoseconds) { return Time(std::chrono::nanoseconds(nanoseconds)); }

TEST(TraceTest, ARecordReadsAsTimeDeedAndFields) {
  Trace trace(4);
  trace.Add(At(12'000'345'678), "received", "Data", {{"mseq", 5}, {"bufs", 3}});
  EXPECT_EQ(trace.Text(), "12.000345678 received Data mseq=5 bufs=3\n");
}

TEST(TraceTest, NothingAddedIsNoText) { EXPECT_EQ(Trace(4).Text(), ""); }

TEST(TraceTest, TheOldestRecordsMakeRoom) {
  Trace trace(2);
  trace.Add(At(1), "sent", "one");
  trace.Add(At(2), "sent", "two");
  trace.Add(At(3), "sent", "three");
  EXPECT_EQ(trace.Text(), "0.000000002 sent two\n0.000000003 sent three\n");
}

TEST(TraceTest, FieldsBeyondTheLimitAreLeftOut) {
  Trace trace(1);
  trace.Add(At(0), "sent", "many", {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}});
  EXPECT_EQ(trace.Text(), "0.000000000 sent many a=1 b=2 c=3 d=4\n");
}

TEST(TraceTest, ATraceWithoutRecordsIsOff) {
  Trace trace(0);
  trace.Add(At(1), "sent", "one");
  EXPECT_EQ(trace.Text(), "");
}

}  // namespace
}  // namespace esdp
