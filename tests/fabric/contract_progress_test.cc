// CONTRACT.md, "Progress".

#include <array>

#include "tests/fabric/contract_harness.h"

namespace esdp::fabric {
namespace {

class ProgressContract : public ContractTest {
 protected:
  // Lets time pass and the other side work until this side's descriptor is readable.
  bool BecomesReadable(Endpoint& endpoint, Endpoint& other) {
    for (int i = 0; i < 200; ++i) {
      if (IsReadable(endpoint)) return true;
      other.Collect();
      LetTimePass();
    }
    return false;
  }
  // What is late, on a busy machine, is waited for.
  bool ComeToRest() {
    for (int i = 0; i < 100; ++i) {
      Settle();
      if (!IsReadable(*one_) && !IsReadable(*two_)) return true;
    }
    return false;
  }
};
INSTANTIATE_TEST_SUITE_P(On, ProgressContract, ::testing::ValuesIn(ContractVariants()), NameOf);

TEST_P(ProgressContract, PollFillsNoMoreThanItIsGiven) {
  const Link link = Connect();
  Memory source(*one_, 8);
  Memory target(*two_, 8);
  for (uint64_t i = 0; i < 5; ++i) ASSERT_POSTED(two_->Receive(link.two, i, {target.All()}));
  for (uint64_t i = 0; i < 5; ++i) ASSERT_POSTED(one_->Send(link.one, i, {source.All()}));
  for (uint64_t i = 0; i < 5; ++i) ExpectSuccess(*one_, link.one, i);
  // What is fetched from here on is fetched by hand.
  std::vector<Completion> polled(two_->completions.begin(), two_->completions.end());
  std::array<Completion, 3> three;
  EXPECT_EQ((*two_)->Poll({}), 0u);
  for (int i = 0; i < 200 && polled.size() < 5; ++i) {
    const size_t count = (*two_)->Poll(absl::MakeSpan(three).first(2));
    ASSERT_LE(count, 2u);
    polled.insert(polled.end(), three.begin(), three.begin() + static_cast<ptrdiff_t>(count));
    if (count == 0) LetTimePass();
  }

  ASSERT_EQ(polled.size(), 5u);
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(polled[i].work_id, i);
}

TEST_P(ProgressContract, TheDescriptorTellsOfArrivals) {
  if ((*one_)->fd() < 0) GTEST_SKIP() << "this fabric has no descriptor";
  const QueuePairId one = Create(*one_);
  const QueuePairId two = Create(*two_);
  Memory source(*one_, 8);
  Memory target(*two_, 8);
  ASSERT_POSTED(two_->Receive(two, 1, {target.All()}));

  ASSERT_POSTED(StartConnecting(one));
  EXPECT_TRUE(BecomesReadable(*two_, *one_)) << "a connect request";
  const RendezvousEvent request = NextEvent(*two_, RendezvousType::kConnectRequest);
  ASSERT_POSTED((*two_)->Accept(request.request, two, {}));
  EXPECT_TRUE(BecomesReadable(*one_, *two_)) << "kEstablished";
  NextEvent(*one_, RendezvousType::kEstablished);
  NextEvent(*two_, RendezvousType::kEstablished);
  ASSERT_POSTED(one_->Send(one, 2, {source.All()}));
  ExpectSuccess(*one_, one, 2);
  if (two_->completions.empty()) {  // the harness polls both sides: it may have come already
    EXPECT_TRUE(BecomesReadable(*two_, *one_)) << "a message";
    EXPECT_TRUE(IsReadable(*two_)) << "until it is fetched";
  }
  ExpectSuccess(*two_, two, 1);
}

TEST_P(ProgressContract, ADescriptorThatNobodyWaitedForTellsAgain) {
  if ((*one_)->fd() < 0) GTEST_SKIP() << "this fabric has no descriptor";
  const Link link = Connect();
  Memory source(*one_, 8);
  Memory target(*two_, 8);
  ASSERT_POSTED(two_->Receive(link.two, 1, {target.All()}));
  ASSERT_POSTED(two_->Receive(link.two, 2, {target.All()}));
  (void)(*two_)->ExpectWaits(false);
  ASSERT_POSTED(one_->Send(link.one, 1, {source.All()}));
  ExpectSuccess(*one_, link.one, 1);
  ExpectSuccess(*two_, link.two, 1);

  if ((*two_)->ExpectWaits(true)) two_->Collect();
  ASSERT_POSTED(one_->Send(link.one, 2, {source.All()}));
  ExpectSuccess(*one_, link.one, 2);
  if (two_->completions.empty()) {
    EXPECT_TRUE(BecomesReadable(*two_, *one_));
  }
  ExpectSuccess(*two_, link.two, 2);
}

// What has woken the fabric for one may have stood for the other, too.
TEST_P(ProgressContract, AMessageIsToldOfThoughAnotherOneWentWithItsQueuePair) {
  if ((*one_)->fd() < 0) GTEST_SKIP() << "this fabric has no descriptor";
  const std::array<Link, 2> links{Connect(), Connect()};
  Memory source(*one_, 8);
  Memory target(*two_, 8);
  for (const Link& link : links) {
    for (uint64_t i = 1; i <= 2; ++i) ASSERT_POSTED(two_->Receive(link.two, i, {target.All()}));
    ASSERT_POSTED(one_->Send(link.one, 1, {source.All()}));
    ExpectSuccess(*one_, link.one, 1);
    ExpectSuccess(*two_, link.two, 1);
  }
  for (int i = 0; i < 3; ++i) two_->Collect();

  for (const Link& link : links) ASSERT_POSTED(one_->Send(link.one, 2, {source.All()}));
  ASSERT_POSTED((*two_)->DestroyQueuePair(links[0].two));
  EXPECT_TRUE(BecomesReadable(*two_, *one_));
  ExpectSuccess(*two_, links[1].two, 2);
}

TEST_P(ProgressContract, AnEventIsToldOfThoughNobodyWaits) {
  if ((*one_)->fd() < 0) GTEST_SKIP() << "this fabric has no descriptor";
  const Address peer = Listening();
  two_->Collect();
  (void)(*two_)->ExpectWaits(false);
  ASSERT_POSTED((*one_)->Connect(Create(*one_), Address{.family = peer.family}, peer, {},
                                 (*one_)->Now() + kPatience));
  std::array<Completion, 1> none;
  int told = 0;  // rounds in which the descriptor told: a poll of them has fetched the request
  for (int i = 0; i < 200 && told < 3; ++i) {
    one_->Collect();
    LetTimePass();
    for (int j = 0; j < 100; ++j) EXPECT_EQ((*two_)->Poll(absl::MakeSpan(none)), 0u);
    told = IsReadable(*two_) ? told + 1 : 0;
  }
  EXPECT_EQ(told, 3);
  EXPECT_NE(NextEvent(*two_, RendezvousType::kConnectRequest).request, RequestId::kNone);
}

TEST_P(ProgressContract, TheDescriptorIsQuietAtRest) {
  if ((*one_)->fd() < 0) GTEST_SKIP() << "this fabric has no descriptor";
  EXPECT_TRUE(ComeToRest());

  const Link link = Connect();
  Memory source(*one_, 8);
  Memory target(*two_, 8);
  ASSERT_POSTED(two_->Receive(link.two, 1, {target.All()}));
  ASSERT_POSTED(one_->Send(link.one, 1, {source.All()}));
  ExpectSuccess(*two_, link.two, 1);
  ExpectSuccess(*one_, link.one, 1);

  EXPECT_TRUE(ComeToRest());
}

TEST_P(ProgressContract, TimeDoesNotGoBack) {
  Time last = (*one_)->Now();
  const Link link = Connect();
  Memory memory(*two_, 64);
  const RemoteRange key = (*two_)->RegionKey(memory.region()).value_or(RemoteRange{});
  for (int i = 0; i < 20; ++i) {
    ExpectReadAllowed(link, key, memory.Copy(0, 64));
    const Time now = (*one_)->Now();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST_P(ProgressContract, AConnectDeadlineIsInNextDeadline) {
  ASSERT_POSTED(StartConnecting(Create(*one_), {}, std::chrono::seconds(3)));

  if ((*one_)->limits().virtual_time) {
    EXPECT_EQ((*one_)->NextDeadline(), kTimeInfinite);
  } else {
    EXPECT_LE((*one_)->NextDeadline(), (*one_)->Now() + std::chrono::seconds(3));
  }
}

TEST_P(ProgressContract, AdvanceMovesVirtualTime) {
  if (!(*one_)->limits().virtual_time) GTEST_SKIP() << "time is real here";
  int rung = 0;
  (*two_)->SetDoorbell([&] { ++rung; });
  const Time start = (*one_)->Now();
  EXPECT_FALSE((*one_)->Advance(start + std::chrono::seconds(1)));
  EXPECT_EQ((*one_)->Now(), start + std::chrono::seconds(1));
  EXPECT_EQ((*two_)->Now(), (*one_)->Now());

  ASSERT_POSTED(StartConnecting(Create(*one_)));
  EXPECT_FALSE((*one_)->Advance((*one_)->Now()));
  EXPECT_EQ(rung, 0);
  const Time end = (*one_)->Now() + std::chrono::seconds(1);
  int steps = 0;
  while (rung == 0 && steps < 100) {
    ASSERT_TRUE((*one_)->Advance(end));
    ASSERT_LE((*one_)->Now(), end);
    ++steps;
  }
  EXPECT_EQ(rung, 1);
  EXPECT_EQ(NextEvent(*two_, RendezvousType::kConnectRequest).type,
            RendezvousType::kConnectRequest);
}

TEST_P(ProgressContract, WakeAtRingsTheDoorbellInTime) {
  if (!(*one_)->limits().virtual_time) GTEST_SKIP() << "time is real here";
  std::vector<Time> rung;
  (*one_)->SetDoorbell([&] {
    rung.push_back((*one_)->Now());
    one_->Collect();
  });
  const Time start = (*one_)->Now();
  const auto advance = [&] {
    while ((*two_)->Advance(start + std::chrono::seconds(5))) {
    }
  };
  (*one_)->WakeAt(start + std::chrono::seconds(1));
  (*one_)->WakeAt(start + std::chrono::seconds(2));
  advance();
  EXPECT_EQ(rung, std::vector{start + std::chrono::seconds(2)});

  (*one_)->WakeAt(start + std::chrono::seconds(6));
  (*one_)->WakeAt(kTimeInfinite);
  while ((*two_)->Advance(start + std::chrono::seconds(9))) {
  }
  EXPECT_EQ(rung.size(), 1u);
}

TEST_P(ProgressContract, WhatIsHereUnpolledIsTold) {
  const Link link = Connect();
  Memory source(*one_, 8);
  Memory target(*two_, 8);
  for (uint64_t i = 0; i < 3; ++i) ASSERT_POSTED(two_->Receive(link.two, i, {target.All()}));
  ASSERT_TRUE(ComeToRest());
  EXPECT_FALSE((*one_)->HasUnpolled());
  EXPECT_FALSE((*two_)->HasUnpolled());

  for (uint64_t i = 0; i < 3; ++i) ASSERT_POSTED(one_->Send(link.one, i, {source.All()}));
  LetTimePass();
  EXPECT_TRUE((*one_)->HasUnpolled() || IsReadable(*one_)) << "what the post has completed";
  // What is fetched from here on is fetched by hand.
  size_t found = one_->completions.size();
  Completion one;
  for (int i = 0; i < 200 && found < 3; ++i) {
    const bool told = (*one_)->HasUnpolled() || IsReadable(*one_);
    const size_t count = (*one_)->Poll(absl::MakeSpan(&one, 1));
    EXPECT_TRUE(told || count == 0) << "behind " << found;
    found += count;
    if (count == 0) LetTimePass();
  }
  EXPECT_EQ(found, 3u);
  one_->completions.clear();
  for (uint64_t i = 0; i < 3; ++i) ExpectSuccess(*two_, link.two, i);
  EXPECT_TRUE(ComeToRest());
  EXPECT_FALSE((*one_)->HasUnpolled());
  EXPECT_FALSE((*two_)->HasUnpolled());
}

TEST_P(ProgressContract, NothingHappensUnderAnotherCaller) {
  bool advancing = false;
  int early = 0;
  const auto doorbell = [&] { early += advancing ? 0 : 1; };
  (*one_)->SetDoorbell(doorbell);
  (*two_)->SetDoorbell(doorbell);
  const QueuePairId one = Create(*one_);
  Memory memory(*one_, 8);

  ASSERT_POSTED(one_->Receive(one, 1, {memory.All()}));
  ASSERT_POSTED(StartConnecting(one));
  ASSERT_POSTED((*one_)->DestroyQueuePair(one));
  EXPECT_EQ(NextCompletion(*one_, one).status, WorkStatus::kFlushed);
  EXPECT_EQ(early, 0);

  advancing = (*one_)->limits().virtual_time;  // elsewhere there is no Advance to ring in
  Settle();
  two_->events.clear();  // the request that was given up, if it came
  Connect();
  EXPECT_EQ(early, 0);
}

}  // namespace
}  // namespace esdp::fabric
