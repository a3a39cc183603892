#include "impl/base/check.h"

#include <string_view>

#include "gtest/gtest.h"

namespace esdp {
namespace {

int g_failures = 0;
CheckFailure g_last{};

void Remember(const CheckFailure& failure) {
  ++g_failures;
  g_last = failure;
}

TEST(CheckTest, AHoldingConditionIsTrueAndNeverReachesTheHook) {
  g_failures = 0;
  const CheckHook before = SetCheckHook(&Remember);
  EXPECT_TRUE(ESDP_CHECK(1 + 1 == 2));
  EXPECT_EQ(g_failures, 0);
  SetCheckHook(before);
}

TEST(CheckTest, AFailedConditionIsFalseAndTellsTheHookWhereItStands) {
  g_failures = 0;
  const CheckHook before = SetCheckHook(&Remember);
  const int line = __LINE__ + 1;
  EXPECT_FALSE(ESDP_CHECK(1 + 1 == 3));
  EXPECT_EQ(g_failures, 1);
  EXPECT_EQ(std::string_view(g_last.expression), "1 + 1 == 3");
  EXPECT_EQ(g_last.line, line);
  EXPECT_NE(std::string_view(g_last.file).find("check_test.cc"), std::string_view::npos);
  SetCheckHook(before);
}

TEST(CheckTest, WithNoHookAFailedCheckOnlyAnswersFalse) {
  const CheckHook before = SetCheckHook(nullptr);
  EXPECT_FALSE(ESDP_CHECK(false));
  SetCheckHook(before);
}

TEST(CheckTest, SettingAHookReturnsTheOneBefore) {
  const CheckHook before = SetCheckHook(&Remember);
  EXPECT_EQ(SetCheckHook(before), &Remember);
}

}  // namespace
}  // namespace esdp
