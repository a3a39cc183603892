#include "tools/esdp_perf/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace esdp_perf {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A gigabyte in half a second, copied once by the receiver.
Result Copied() {
  Result result;
  result.task.size = 1000000;
  result.client.copied_bytes = 0;
  result.client.cpu_seconds = 0.25;
  result.client.transport = "qpip";
  result.server.bytes_received = 1000000000;
  result.server.copied_bytes = 1000000000;
  result.server.receive_seconds = 0.5;
  result.server.cpu_seconds = 0.75;
  return result;
}

TEST(ReportTest, TellsRateCostAndCopiesOfBothSides) {
  const std::string json = Json({Copied()});
  EXPECT_THAT(json, HasSubstr("\"bytes_per_second\":2000000000,"));
  EXPECT_THAT(json, HasSubstr("\"messages_per_second\":2000,"));
  EXPECT_THAT(json, HasSubstr("\"cpu_seconds_per_gb\":{\"client\":0.2500,\"server\":0.7500}"));
  EXPECT_THAT(json, HasSubstr("\"copies_per_byte\":{\"client\":0.000000,\"server\":1.000000}"));
  EXPECT_THAT(json, HasSubstr("\"latency_us\":null"));
}

TEST(ReportTest, AddsBothDirections) {
  Result result = Copied();
  result.task.receive = true;
  result.client.bytes_received = 500000000;
  result.client.receive_seconds = 0.5;
  EXPECT_THAT(Json({result}), HasSubstr("\"bytes_per_second\":3000000000,"));
  EXPECT_THAT(Json({result}), HasSubstr("\"bytes\":1500000000,"));
}

TEST(ReportTest, NamesThePathTaken) {
  Result result = Copied();
  EXPECT_THAT(Table({result}), HasSubstr("copied\n"));
  result.server.bytes_zero_copy = 1000000000;
  EXPECT_THAT(Table({result}), HasSubstr("zero-copy\n"));
  result.server.bytes_zero_copy = 250000000;
  EXPECT_THAT(Table({result}), HasSubstr("25.00 % zero-copy\n"));
}

TEST(ReportTest, SeveralRunsShareOneTable) {
  const std::string table = Table({Copied(), Copied()});
  EXPECT_EQ(table.find("MB/s"), table.rfind("MB/s"));
  EXPECT_EQ(Json({Copied(), Copied()}).front(), '[');
}

TEST(ReportTest, ShowsPercentilesOnlyWhereRoundTripsWereMeasured) {
  Result result = Copied();
  EXPECT_THAT(Table({result}), Not(HasSubstr("round trip")));
  result.round_trips.Record(5000);
  EXPECT_THAT(Table({result}), HasSubstr("p99.9 5.00"));
  EXPECT_THAT(Json({result}), HasSubstr("\"p50\":5.000"));
}

TEST(ReportTest, ARunThatMovedNothingDividesByNothing) {
  EXPECT_THAT(Json({Result()}), Not(HasSubstr("nan")));
  EXPECT_THAT(Json({Result()}), Not(HasSubstr("inf")));
}

TEST(OutcomeTest, ReachesTheClientAsItWas) {
  Outcome outcome = Copied().server;
  outcome.sha256 = "00ff";
  const auto fields = Fields::Decode(ToFields(outcome).Encode());
  ASSERT_TRUE(fields.has_value());
  const Outcome back = OutcomeFromFields(*fields);
  EXPECT_EQ(back.bytes_received, outcome.bytes_received);
  EXPECT_EQ(back.copied_bytes, outcome.copied_bytes);
  EXPECT_EQ(back.cpu_seconds, outcome.cpu_seconds);
  EXPECT_EQ(back.sha256, outcome.sha256);
}

}  // namespace
}  // namespace esdp_perf
