#include "impl/switch/shim/registrations.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace esdp::switching {
namespace {

using Waits = Registrations::Hold::Waits;

epoll_event Event(uint32_t events, uint64_t data) {
  return {.events = events, .data = {.u64 = data}};
}

std::vector<int> SetsOf(Registrations& registrations, int number) {
  std::vector<int> sets;
  for (const Registration& each : registrations) {
    if (each.number == number) sets.push_back(each.set);
  }
  return sets;
}

TEST(RegistrationsTest, WhatSetsWereToldIsKnownUntilTheyAreToldOtherwise) {
  Registrations registrations;
  const epoll_event in = Event(EPOLLIN, 1), out = Event(EPOLLOUT | EPOLLONESHOT, 2);
  registrations.Note(10, EPOLL_CTL_ADD, 5, &in);
  registrations.Note(11, EPOLL_CTL_ADD, 5, &in);
  registrations.Note(10, EPOLL_CTL_ADD, 6, &in);
  registrations.Note(11, EPOLL_CTL_MOD, 5, &out);
  EXPECT_EQ(SetsOf(registrations, 5), (std::vector{10, 11}));
  EXPECT_EQ(registrations[1].events, uint32_t{EPOLLOUT | EPOLLONESHOT});
  EXPECT_EQ(registrations[1].data, 2u);

  registrations.Note(10, EPOLL_CTL_DEL, 5, nullptr);
  EXPECT_EQ(SetsOf(registrations, 5), std::vector{11});
  registrations.Note(10, EPOLL_CTL_DEL, 5, nullptr);
  EXPECT_EQ(SetsOf(registrations, 6), std::vector{10}) << "of another number";
  registrations.Forget(5);
  EXPECT_EQ(SetsOf(registrations, 5), std::vector<int>{});
  EXPECT_EQ(SetsOf(registrations, 6), std::vector{10});
  EXPECT_FALSE(registrations.lost_one());
}

TEST(RegistrationsTest, OneThatThereIsNoRoomForIsLostAndToldOf) {
  Registrations registrations;
  const epoll_event in = Event(EPOLLIN, 0);
  for (int set = 0; set < static_cast<int>(Registrations::size()); ++set) {
    registrations.Note(100 + set, EPOLL_CTL_ADD, 5, &in);
  }
  EXPECT_FALSE(registrations.lost_one());
  registrations.Note(99, EPOLL_CTL_ADD, 5, &in);
  EXPECT_TRUE(registrations.lost_one());
}

TEST(RegistrationsTest, WhoDoesNotWaitDoesWithoutWhileAnotherHoldsIt) {
  Registrations registrations;
  {
    const Registrations::Hold first(registrations, Waits::kNo);
    EXPECT_TRUE(first.has());
    const Registrations::Hold second(registrations, Waits::kNo);
    EXPECT_FALSE(second.has());
  }
  EXPECT_TRUE(Registrations::Hold(registrations, Waits::kNo).has());
}

TEST(RegistrationsTest, AHandlerTakesOverWhatTheCallHoldsThatItHasInterrupted) {
  Registrations registrations;
  const Registrations::Hold interrupted(registrations, Waits::kNo);
  const Registrations::Hold handler(registrations, Waits::kYes);
  EXPECT_TRUE(handler.has());
}

TEST(RegistrationsTest, ThreadsNoteOneBehindTheOther) {
  Registrations registrations;
  constexpr int kRounds = 20000;
  int told = 0;  // by who has a hold alone
  const auto tell = [&](int number) {
    const epoll_event in = Event(EPOLLIN, 0);
    for (int i = 0; i < kRounds; ++i) {
      for (;;) {
        const Registrations::Hold hold(registrations, Waits::kNo);
        if (!hold.has()) continue;
        registrations.Note(10, i % 2 == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, number, &in);
        ++told;
        break;
      }
    }
  };
  std::thread other(tell, 5);
  tell(6);
  other.join();
  EXPECT_EQ(told, 2 * kRounds);
  EXPECT_EQ(SetsOf(registrations, 5), std::vector<int>{});
  EXPECT_EQ(SetsOf(registrations, 6), std::vector<int>{});
}

}  // namespace
}  // namespace esdp::switching
