#include "impl/base/status.h"

#include <memory>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace esdp {
namespace {

absl::Status ReturnsEarly(const absl::Status& first, bool& went_on) {
  ESDP_RETURN_IF_ERROR(first);
  went_on = true;
  return absl::OkStatus();
}

absl::StatusOr<int> Twice(absl::StatusOr<int> input) {
  ESDP_ASSIGN_OR_RETURN(const int value, input);
  return 2 * value;
}

absl::StatusOr<std::unique_ptr<int>> PassOn(absl::StatusOr<std::unique_ptr<int>> input) {
  std::unique_ptr<int> held;
  ESDP_ASSIGN_OR_RETURN(held, std::move(input));
  return held;
}

TEST(StatusTest, AnErrorEndsTheFunctionWithTheSameStatus) {
  bool went_on = false;
  const absl::Status error = MakeStatus(absl::StatusCode::kNotFound, "no such region");
  EXPECT_EQ(ReturnsEarly(error, went_on), error);
  EXPECT_FALSE(went_on);
}

TEST(StatusTest, OkGoesOn) {
  bool went_on = false;
  EXPECT_TRUE(ReturnsEarly(absl::OkStatus(), went_on).ok());
  EXPECT_TRUE(went_on);
}

TEST(StatusTest, AssigningTakesTheValueOrEndsWithTheStatus) {
  EXPECT_EQ(*Twice(21), 42);
  EXPECT_EQ(Twice(absl::CancelledError("stopped")).status(), absl::CancelledError("stopped"));
}

TEST(StatusTest, AssigningMovesWhatCanOnlyBeMoved) {
  const auto result = PassOn(std::make_unique<int>(3));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(**result, 3);
}

TEST(StatusTest, TheBridgeKeepsEveryByteOfTheText) {
  const std::string_view text("a\0b", 3);
  EXPECT_EQ(FromAbsl(ToAbsl(text)), text);
  EXPECT_EQ(FromAbsl(MakeStatus(absl::StatusCode::kInternal, text).message()), text);
}

}  // namespace
}  // namespace esdp
