#include "impl/fabric/sim/testbed/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/fabric/sim/testbed/numbers.h"

namespace esdp::fabric::sim::testbed {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const Parameters& numbers) {
  const absl::Status status = Check(numbers);
  return std::string(status.message().data(), status.message().size());
}

TEST(ParametersTest, AreFoundByTheirNames) {
  Parameters numbers;
  *Find(numbers, "link.latency_us") = 3;
  EXPECT_EQ(numbers.link_latency_us, 3);
  EXPECT_EQ(Find(numbers, "link.latency"), nullptr);
}

TEST(ParametersTest, RoundNumbersAreATestbed) { EXPECT_EQ(Refusal(RoundNumbers()), ""); }

TEST(ParametersTest, TheOneThatIsWrongIsNamed) {
  Parameters numbers = RoundNumbers();
  numbers.device_bus_mb_s = 0;
  EXPECT_THAT(Refusal(numbers), HasSubstr("device.bus_mb_s is missing or 0"));
  numbers = RoundNumbers();
  numbers.kernel_wake_us = -1;
  EXPECT_THAT(Refusal(numbers), HasSubstr("kernel.wake_us is negative"));
  numbers = RoundNumbers();
  numbers.machine_cores = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(Refusal(numbers), HasSubstr("machine.cores"));
  numbers = RoundNumbers();
  numbers.kernel_buffers = 2;
  EXPECT_THAT(Refusal(numbers), HasSubstr("kernel.buffers is below 3"));
}

TEST(ParametersTest, ACostMayBeNothing) {
  Parameters numbers = RoundNumbers();
  numbers.kernel_system_call_us = 0;
  EXPECT_EQ(Refusal(numbers), "");
}

}  // namespace
}  // namespace esdp::fabric::sim::testbed
