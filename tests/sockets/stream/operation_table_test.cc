#include <cstdint>

#include "gtest/gtest.h"
#include "impl/sockets/stream/operation.h"

namespace esdp::sockets {
namespace {

constexpr auto kNothing = [](uint32_t) {};

Operation* New(OperationTable& table) {
  return table.New(EventType::kSend, SocketId::kNone, nullptr, kNothing);
}

TEST(OperationTableTest, TakesSoManyAndNotOneMore) {
  constexpr uint32_t kMax = 200;
  OperationTable table(kMax);
  Operation* last = nullptr;
  for (uint32_t i = 0; i < kMax; ++i) {
    last = New(table);
    ASSERT_NE(last, nullptr) << i;
  }
  EXPECT_EQ(New(table), nullptr);
  (void)table.Free(*last);
  EXPECT_NE(New(table), nullptr);
  EXPECT_EQ(New(table), nullptr);
}

TEST(OperationTableTest, SaysBeforeItGrowsHowManyThereWillBeRoomFor) {
  OperationTable table(1'000);
  uint32_t capacity = 0;
  for (uint32_t live = 1; live <= 1'000; ++live) {
    ASSERT_NE(table.New(EventType::kSend, SocketId::kNone, nullptr,
                        [&](uint32_t next) {
                          EXPECT_GT(next, capacity);
                          capacity = next;
                        }),
              nullptr);
    ASSERT_LE(live, capacity);
  }
}

// The others stand for another thread, which finds no room either and comes first.
TEST(OperationTableTest, RefusesNobodyWhileAnotherThreadMakesRoom) {
  for (const uint32_t others : {1u, 64u, 65u, 500u}) {
    OperationTable table(10'000);
    uint32_t prepared = 0;
    const auto let_others_first = [&](uint32_t) {
      for (uint32_t i = prepared++ == 0 ? others : 0; i > 0; --i) ASSERT_NE(New(table), nullptr);
    };
    EXPECT_NE(table.New(EventType::kSend, SocketId::kNone, nullptr, let_others_first), nullptr)
        << others;
    EXPECT_EQ(table.live(), others + 1);
    // What one of them made serves the other: it prepares anew where the others have used it up.
    EXPECT_EQ(prepared, others % 64 == 0 ? 2u : 1u) << others;
  }
}

}  // namespace
}  // namespace esdp::sockets
