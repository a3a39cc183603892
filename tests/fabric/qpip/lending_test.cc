// Which memory a fabric lends: what peers read, and nothing that may change before they have it.

#include <algorithm>

#include "tests/fabric/qpip/qpip_fixture.h"

namespace esdp::fabric::qpip {
namespace {

constexpr size_t kBytes = 40000;

class LendingTest : public QpipTest {
 protected:
  LendingTest() {
    Open({.lend_pages = true});
    Establish();
    Say(1);
    SayReady();
  }

  // Lets the side under test speak.
  void SayReady() { ASSERT_TRUE(peer_->Send(Frame(Tagged(0, 0, 0, {})))); }
  void Say(uint8_t what) { std::fill(memory_.begin(), memory_.end(), std::byte{what}); }
  void AskFor(uint32_t length) {
    const uint32_t key = BindWindow(0, kBytes, {.remote_read = true});
    const Octets request = ReadRequestOf(3, 0, length, key, 0);
    ASSERT_TRUE(peer_->Send(Frame(Untagged({.opcode = 1, .queue = 1}, request))));
    ASSERT_TRUE(PumpUntil([this] { return peer_->HasMore(); }));
  }
  void ExpectArrives(uint8_t what, size_t length) {
    const auto segment = peer_->ReceiveSegment();
    ASSERT_TRUE(segment.has_value());
    EXPECT_EQ(segment->payload, Octets(length, what));
  }
};

TEST_F(LendingTest, WhatAPeerReadsIsReadWhenItTakesIt) {
  AskFor(kBytes);
  Say(2);
  ExpectArrives(2, kBytes);
}

TEST_F(LendingTest, WhatIsShortIsCopied) {
  AskFor(16383);
  Say(2);
  ExpectArrives(1, 16383);
}

TEST_F(LendingTest, ASendThatIsCompleteNeedsItsMemoryNoMore) {
  ASSERT_TRUE(Post(Opcode::kSend, 1, 0, kBytes).ok());
  EXPECT_EQ(NextCompletion().status, WorkStatus::kSuccess);
  Say(2);
  ExpectArrives(1, kBytes);
}

TEST_F(LendingTest, AWriteThatIsCompleteNeedsItsMemoryNoMore) {
  const RemoteRange remote{.key = 7, .address = 0};
  ASSERT_TRUE(Post(Opcode::kWrite, 1, 0, kBytes, remote).ok());
  EXPECT_EQ(NextCompletion().status, WorkStatus::kSuccess);
  Say(2);
  ExpectArrives(1, kBytes);
}

}  // namespace
}  // namespace esdp::fabric::qpip
