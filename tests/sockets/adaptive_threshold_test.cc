#include "esdp/socket.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// A threshold that a connection learns.

namespace esdp::contract {
namespace {

class AdaptiveThresholdTest : public PairTest {
 protected:
  static constexpr uint64_t kLength = 8'000;
  void CarryMany(Path path = Path::kByThreshold) {
    Memory& from = Make(client_, kLength);
    Memory& to = Make(server_, kLength);
    for (uint64_t i = 0; i < 100; ++i) {
      from.Fill(i);
      Carry(client_, from, server_, to, kLength, path);
      ASSERT_TRUE(SameBytes(from.bytes, to.bytes));
    }
  }
  SocketStats Sent() { return client_.socket.Stats(); }
};

TEST_P(AdaptiveThresholdTest, BothWaysAreTriedAndTheThresholdIsTold) {
  ASSERT_NO_FATAL_FAILURE(Connect({.adaptive_threshold = true}));
  CarryMany();
  EXPECT_GT(Sent().sends_copied, 0u);
  EXPECT_GT(Sent().sends_zero_copy, 0u);
  EXPECT_GE(Sent().adaptive_threshold, 4u * 1024);
  EXPECT_LE(Sent().adaptive_threshold, 4u * 1024 * 1024);
}

TEST_P(AdaptiveThresholdTest, NothingIsLearnedUnlessAsked) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  CarryMany();
  EXPECT_EQ(Sent().sends_zero_copy, 0u);
  EXPECT_EQ(Sent().adaptive_threshold, 0u);
}

TEST_P(AdaptiveThresholdTest, AThresholdOfTheSocketsOwnIsHeldTo) {
  ASSERT_NO_FATAL_FAILURE(Connect({.zcopy_send_min = 10'000, .adaptive_threshold = true}));
  CarryMany();
  EXPECT_EQ(Sent().sends_zero_copy, 0u);
  EXPECT_EQ(Sent().adaptive_threshold, 0u);
}

TEST_P(AdaptiveThresholdTest, AnOperationsPathIsHeldTo) {
  ASSERT_NO_FATAL_FAILURE(Connect({.adaptive_threshold = true}));
  CarryMany(Path::kCopy);
  EXPECT_EQ(Sent().sends_zero_copy, 0u);
}

TEST_P(AdaptiveThresholdTest, CanBeSwitchedWhileConnected) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  ASSERT_TRUE(client_.socket.SetOption({OptionName::kAdaptiveThreshold, uint64_t{1}}).ok());
  EXPECT_EQ(std::get<uint64_t>(client_.socket.GetOption(OptionName::kAdaptiveThreshold)->value),
            1u);
  CarryMany();
  EXPECT_GT(Sent().adaptive_threshold, 0u);
  EXPECT_TRUE(Refuses(client_.socket.SetOption({OptionName::kAdaptiveThreshold, uint64_t{2}}),
                      ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument));
}

ESDP_ON_EVERY_WORLD(AdaptiveThresholdTest);

}  // namespace
}  // namespace esdp::contract
