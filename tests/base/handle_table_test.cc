#include "impl/base/handle_table.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gtest/gtest.h"
#include "impl/base/random.h"

namespace esdp {
namespace {

TEST(HandleTableTest, AHandleFindsItsValue) {
  HandleTable<std::string> table;
  const uint64_t a = table.Insert("a");
  const uint64_t b = table.Insert("b");
  ASSERT_NE(table.Find(a), nullptr);
  EXPECT_EQ(*table.Find(a), "a");
  EXPECT_EQ(*table.Find(b), "b");
  EXPECT_EQ(table.size(), 2u);
}

TEST(HandleTableTest, AHandleThatOutlivedItsValueDoesNotFindTheSlotsNextTenant) {
  HandleTable<std::string> table;
  const uint64_t old_handle = table.Insert("old");
  ASSERT_TRUE(table.Erase(old_handle));
  const uint64_t new_handle = table.Insert("new");
  EXPECT_EQ(static_cast<uint32_t>(new_handle), static_cast<uint32_t>(old_handle));  // same slot
  EXPECT_EQ(table.Find(old_handle), nullptr);
  EXPECT_FALSE(table.Erase(old_handle));
  EXPECT_EQ(*table.Find(new_handle), "new");
}

TEST(HandleTableTest, InventedHandlesFindNothing) {
  HandleTable<int> table;
  EXPECT_EQ(table.Find(kNoHandle), nullptr);
  const uint64_t handle = table.Insert(1);
  EXPECT_EQ(table.Find(kNoHandle), nullptr);
  EXPECT_EQ(table.Find(handle + 1), nullptr);
  EXPECT_EQ(table.Find(handle + (1ull << 32)), nullptr);
  EXPECT_EQ(table.Find(UINT64_MAX), nullptr);
}

TEST(HandleTableTest, AFullTableGivesNoHandleAndRecoversWhenOneLeaves) {
  HandleTable<int> table(2);
  const uint64_t a = table.Insert(1);
  ASSERT_NE(table.Insert(2), kNoHandle);
  EXPECT_EQ(table.Insert(3), kNoHandle);
  EXPECT_EQ(table.size(), 2u);
  table.Erase(a);
  EXPECT_NE(table.Insert(4), kNoHandle);
}

TEST(HandleTableTest, AValueStaysWhereItIsWhileOthersCome) {
  HandleTable<int> table;
  const uint64_t handle = table.Insert(1);
  const int* where = table.Find(handle);
  for (int i = 0; i < 10'000; ++i) ASSERT_NE(table.Insert(i), kNoHandle);
  EXPECT_EQ(table.Find(handle), where);
}

TEST(HandleTableTest, ErasingDestroysTheValueAtOnce) {
  HandleTable<std::shared_ptr<int>> table;
  auto shared = std::make_shared<int>(1);
  const uint64_t handle = table.Insert(shared);
  EXPECT_EQ(shared.use_count(), 2);
  table.Erase(handle);
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(HandleTableTest, VisitsEveryValueOnceWithTheHandleThatFindsIt) {
  HandleTable<int> table;
  std::vector<uint64_t> handles;
  for (int i = 0; i < 5; ++i) handles.push_back(table.Insert(i));
  table.Erase(handles[2]);
  std::vector<int> seen;
  table.ForEach([&](uint64_t handle, int& value) {
    EXPECT_EQ(table.Find(handle), &value);
    seen.push_back(value);
  });
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 3, 4}));
}

TEST(HandleTableTest, NoHandleEverFindsAnothersValueWhateverTheOrderOfCalls) {
  constexpr uint64_t kSeed = 77;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  HandleTable<uint64_t> table(16);
  std::unordered_map<uint64_t, uint64_t> live;
  std::vector<uint64_t> given;
  for (uint64_t step = 1; step < 5'000; ++step) {
    if (random.Chance(1, 2)) {
      const uint64_t handle = table.Insert(step);
      ASSERT_EQ(handle == kNoHandle, live.size() == 16);
      if (handle == kNoHandle) continue;
      ASSERT_TRUE(live.emplace(handle, step).second);
      given.push_back(handle);
    } else if (!given.empty()) {
      const uint64_t handle = given[random.Below(given.size())];
      ASSERT_EQ(table.Erase(handle), live.erase(handle) == 1);
    }
    ASSERT_EQ(table.size(), live.size());
  }
  for (const uint64_t handle : given) {
    const auto found = live.find(handle);
    const uint64_t* value = table.Find(handle);
    ASSERT_EQ(value != nullptr, found != live.end());
    if (value != nullptr) {
      EXPECT_EQ(*value, found->second);
    }
  }
}

}  // namespace
}  // namespace esdp
