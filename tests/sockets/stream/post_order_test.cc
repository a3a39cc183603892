#include "impl/sockets/file/post_order.h"

#include <array>
#include <memory>
#include <optional>

#include "gtest/gtest.h"

namespace esdp::sockets {
namespace {

constexpr auto kIfNotStarted = provider::CancelMode::kIfNotStarted;
constexpr auto kAbort = provider::CancelMode::kAbortConnection;

class PostOrderTest : public ::testing::Test {
 protected:
  PostOrderTest() {
    for (size_t i = 0; i < posted_.size(); ++i) posted_[i].id = OpId{i + 1};
    EXPECT_FALSE(order_.HoldOrBegin(file_));
    for (Operation& each : posted_) EXPECT_TRUE(order_.Hold({&each}));
  }

  // Nobody looks at the file itself: only whether there is one.
  void AsFile(Operation& operation) {
    operation.file = std::shared_ptr<FileOperation>(std::shared_ptr<void>(),
                                                    reinterpret_cast<FileOperation*>(this));
  }

  PostOrder order_;
  Operation file_;
  std::array<Operation, 3> posted_;
};

TEST_F(PostOrderTest, TurnsComeInTheOrderOfPostingOnceTheFileIsOver) {
  ASSERT_TRUE(order_.BeginTurns(/*is_over=*/true));
  for (Operation& each : posted_) {
    const auto turn = order_.Next();
    ASSERT_TRUE(turn.has_value());
    EXPECT_EQ(&each, turn->operation);
    EXPECT_EQ(std::nullopt, order_.EndPassing());
  }
  EXPECT_TRUE(order_.busy());
  EXPECT_FALSE(order_.Next().has_value());
  EXPECT_FALSE(order_.busy());
}

TEST_F(PostOrderTest, WhatWaitsIsTakenAndHasNoTurn) {
  EXPECT_EQ(&posted_[1], order_.Take(OpId{2}));
  EXPECT_EQ(nullptr, order_.Take(OpId{2}));
  ASSERT_TRUE(order_.BeginTurns(true));
  EXPECT_EQ(&posted_[0], order_.Next()->operation);
  EXPECT_EQ(&posted_[2], order_.Next()->operation);
}

TEST_F(PostOrderTest, ACancelThatComesBetweenTurnAndSubmissionIsKeptForItsSubmission) {
  ASSERT_TRUE(order_.BeginTurns(true));
  ASSERT_TRUE(order_.Next().has_value());
  EXPECT_EQ(nullptr, order_.Take(OpId{1}));
  EXPECT_TRUE(order_.CancelPassing(OpId{1}, kIfNotStarted));
  EXPECT_TRUE(order_.CancelPassing(OpId{1}, kAbort));
  EXPECT_EQ(kAbort, order_.EndPassing());
  // It is the shard's now.
  EXPECT_FALSE(order_.CancelPassing(OpId{1}, kIfNotStarted));
}

TEST_F(PostOrderTest, AFileThatIsPostedMeanwhileKeepsNoFileBeforeItFromItsTurn) {
  Operation second;
  Operation third;
  AsFile(second);
  AsFile(third);
  EXPECT_TRUE(order_.HoldOrBegin(second));
  ASSERT_TRUE(order_.BeginTurns(/*is_over=*/true));
  for (size_t i = 0; i < posted_.size(); ++i) ASSERT_TRUE(order_.Next().has_value());
  EXPECT_TRUE(order_.HoldOrBegin(third));
  const auto turn = order_.Next();
  ASSERT_TRUE(turn.has_value());
  EXPECT_EQ(&second, turn->operation);
  // The third one waits for the second to be over.
  ASSERT_TRUE(order_.BeginTurns(/*is_over=*/false));
  EXPECT_FALSE(order_.Next().has_value());
  ASSERT_TRUE(order_.BeginTurns(/*is_over=*/true));
  EXPECT_EQ(&third, order_.Next()->operation);
}

TEST_F(PostOrderTest, ACancelOfAnotherIsNotKept) {
  ASSERT_TRUE(order_.BeginTurns(true));
  ASSERT_TRUE(order_.Next().has_value());
  EXPECT_FALSE(order_.CancelPassing(OpId{2}, kIfNotStarted));
  EXPECT_FALSE(order_.CancelPassing(OpId::kNone, kIfNotStarted));
  EXPECT_EQ(std::nullopt, order_.EndPassing());
  ASSERT_TRUE(order_.Next().has_value());
  EXPECT_EQ(std::nullopt, order_.EndPassing());
}

TEST_F(PostOrderTest, AnEndThatPassesHasNothingToCancel) {
  ASSERT_TRUE(order_.Hold({.kind = provider::Request::Kind::kShutdown}));
  ASSERT_TRUE(order_.BeginTurns(true));
  for (size_t i = 0; i < posted_.size(); ++i) ASSERT_TRUE(order_.Next().has_value());
  const auto end = order_.Next();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(provider::Request::Kind::kShutdown, end->kind);
  EXPECT_FALSE(order_.CancelPassing(OpId{3}, kIfNotStarted));
}

}  // namespace
}  // namespace esdp::sockets
