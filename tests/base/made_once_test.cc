#include "impl/base/made_once.h"

#include <atomic>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace esdp {
namespace {

TEST(MadeOnceTest, IsMadeAtTheFirstCallAndIsTheSameAtEachLaterOne) {
  MadeOnce<int> once;
  int made = 0;
  const auto make = [&] { return std::make_unique<int>(++made); };
  int& first = once.Get(make);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(&once.Get(make), &first);
  EXPECT_EQ(made, 1);
  delete &first;
}

TEST(MadeOnceTest, ThreadsThatAskAtOnceHaveTheSameOneAndNoOtherIsLeft) {
  struct Counted {
    explicit Counted(std::atomic<int>& now) : now_(now) { ++now_; }
    ~Counted() { --now_; }
    std::atomic<int>& now_;
  };
  for (int round = 0; round < 200; ++round) {
    MadeOnce<Counted> once;
    std::atomic<int> now{0};
    std::vector<Counted*> seen(4);
    std::vector<std::thread> threads;
    for (Counted*& mine : seen) {
      threads.emplace_back(
          [&] { mine = &once.Get([&] { return std::make_unique<Counted>(now); }); });
    }
    for (std::thread& each : threads) each.join();
    for (const Counted* each : seen) EXPECT_EQ(each, seen[0]);
    EXPECT_EQ(now, 1);
    delete seen[0];
  }
}

TEST(MadeOnceTest, NobodyWaitsForTheOneThatMakesIt) {
  MadeOnce<int> once;
  int* inner = nullptr;
  // As in the child of a fork: this call is under way, and its thread never goes on.
  int& outer = once.Get([&] {
    inner = &once.Get([] { return std::make_unique<int>(2); });
    return std::make_unique<int>(1);
  });
  EXPECT_EQ(&outer, inner);
  EXPECT_EQ(outer, 2);
  delete inner;
}

TEST(MadeOnceTest, WhatCouldNotBeMadeIsMadeAtTheNextCall) {
  MadeOnce<int> once;
  EXPECT_THROW((void)once.Get([]() -> std::unique_ptr<int> { throw std::bad_alloc(); }),
               std::bad_alloc);
  int& made = once.Get([] { return std::make_unique<int>(7); });
  EXPECT_EQ(made, 7);
  delete &made;
}

}  // namespace
}  // namespace esdp
