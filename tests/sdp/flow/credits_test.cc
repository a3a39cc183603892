#include "impl/sdp/flow/credits.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace esdp::sdp {
namespace {

// Credits after set-up with this many buffers on each side.
Credits Started(uint16_t ours, uint16_t peers) {
  Credits credits;
  for (int i = 0; i < ours; ++i) credits.OnReceivePosted();
  credits.Start(peers);
  return credits;
}

wire::BaseHeader Header(uint32_t sequence, uint32_t acknowledged, uint16_t buffers) {
  wire::BaseHeader header;
  header.sequence = sequence;
  header.acknowledged = acknowledged;
  header.buffers = buffers;
  return header;
}

wire::BaseHeader Send(Credits& credits, bool payload = true, bool bare = false) {
  wire::BaseHeader header;
  credits.Stamp(header, payload, bare);
  return header;
}

// A message that is reposted at once.
void Arrives(Credits& credits, const wire::BaseHeader& header, bool bare = false) {
  credits.OnReceiveTaken();
  ASSERT_EQ(credits.OnHeader(header, bare), nullptr);
  credits.OnReceivePosted();
}

// R4.2.1
TEST(CreditsTest, StartWithWhatTheHelloAnnounced) { EXPECT_EQ(Started(8, 5).available(), 5); }

// R4.1.1, R4.1.2
TEST(CreditsTest, TheFirstMessageBehindTheHelloHasSequenceOne) {
  Credits credits = Started(8, 8);

  EXPECT_EQ(Send(credits).sequence, 1u);
  EXPECT_EQ(Send(credits).sequence, 2u);
}

// R4.2.1
TEST(CreditsTest, AreTheAnnouncedBuffersLessWhatIsUnderWay) {
  Credits credits = Started(8, 64);
  for (int i = 0; i < 10; ++i) Send(credits);

  Arrives(credits, Header(1, 7, 60));

  EXPECT_EQ(credits.available(), 57);
}

// R4.3.2
TEST(CreditsTest, FewAnnouncedBuffersLeaveOneCreditForAnUpdate) {
  Credits credits = Started(8, 5);
  for (int i = 0; i < 4; ++i) Send(credits);

  EXPECT_EQ(credits.available(), 1);
  EXPECT_FALSE(credits.MaySendPayload());
  EXPECT_FALSE(credits.MaySendControl()) << "it would give the peer nothing";
  credits.OnReceivePosted();
  EXPECT_TRUE(credits.MaySendControl());
}

// R4.2.2, R4.3.1, R4.3.2, R4.3.3, R4.3.4
TEST(CreditsTest, ThreeCarryPayloadTwoOnlyControlNoneNothing) {
  Credits credits = Started(8, 3);
  EXPECT_TRUE(credits.MaySendPayload());
  Send(credits);
  EXPECT_FALSE(credits.MaySendPayload());
  EXPECT_TRUE(credits.MaySendControl());
  Send(credits);
  credits.OnReceivePosted();
  Send(credits);

  credits.OnReceivePosted();

  EXPECT_EQ(credits.available(), 0);
  EXPECT_FALSE(credits.MaySendControl());
  EXPECT_EQ(credits.UpdateDue(), Credits::Update::kNone);
}

TEST(CreditsTest, NeverGoBelowNoneWhateverThePeerTells) {
  Credits credits = Started(8, 8);
  for (int i = 0; i < 6; ++i) Send(credits);

  Arrives(credits, Header(1, 0, 2));

  EXPECT_EQ(credits.available(), 0);
}

// R4.1.1, R4.1.6
TEST(CreditsTest, SequenceNumbersWrapInBothDirections) {
  Credits credits;
  for (int i = 0; i < 8; ++i) credits.OnReceivePosted();
  credits.Start(8, 0xfffffffd);
  EXPECT_EQ(Send(credits).sequence, 0xfffffffeu);
  EXPECT_EQ(Send(credits).sequence, 0xffffffffu);
  EXPECT_EQ(Send(credits).sequence, 0u);
  EXPECT_EQ(Send(credits).sequence, 1u);
  EXPECT_EQ(Send(credits).sequence, 2u);

  Arrives(credits, Header(0xfffffffe, 0xfffffffe, 5));

  EXPECT_EQ(credits.available(), 1) << "four are under way";
  Arrives(credits, Header(0xffffffff, 1, 5));
  Arrives(credits, Header(0, 1, 5));
  EXPECT_EQ(credits.acknowledged_by_peer(), 1u);
  EXPECT_EQ(Send(credits).acknowledged, 0u);
}

// R4.1.4
TEST(CreditsTest, AMessageOutOfSequenceIsAViolation) {
  for (const uint32_t sequence : {0u, 2u, 0xffffffffu}) {
    Credits credits = Started(8, 8);
    credits.OnReceiveTaken();
    EXPECT_NE(credits.OnHeader(Header(sequence, 0, 8), false), nullptr) << sequence;
  }
}

// R4.1.7
TEST(CreditsTest, AnAcknowledgementOfWhatWasNeverSentIsAViolation) {
  Credits credits = Started(8, 8);
  Send(credits);
  credits.OnReceiveTaken();

  EXPECT_NE(credits.OnHeader(Header(1, 2, 8), false), nullptr);
}

// R4.1.7
TEST(CreditsTest, AnAcknowledgementThatGoesBackTakesCreditsButNoNews) {
  Credits credits = Started(8, 8);
  Send(credits);
  Send(credits);
  Arrives(credits, Header(1, 2, 8));

  Arrives(credits, Header(2, 1, 8));

  EXPECT_EQ(credits.acknowledged_by_peer(), 2u);
  EXPECT_EQ(credits.available(), 7);
}

// R4.4.1
TEST(CreditsTest, AnUpdateIsDueWhenThePeerIsAtOneAndThereIsSomethingToGive) {
  Credits credits = Started(3, 8);
  credits.OnReceiveTaken();
  ASSERT_EQ(credits.OnHeader(Header(1, 0, 8), false), nullptr);
  credits.OnReceiveTaken();
  ASSERT_EQ(credits.OnHeader(Header(2, 0, 8), false), nullptr);
  EXPECT_EQ(credits.UpdateDue(), Credits::Update::kNone) << "nothing to give";

  credits.OnReceivePosted();

  EXPECT_EQ(credits.UpdateDue(), Credits::Update::kNow);
}

// R4.4.2
TEST(CreditsTest, AnUpdateIsDueWhenAThirdOfTheBuffersIsNewsToThePeer) {
  Credits credits = Started(16, 8);
  uint32_t sequence = 0;
  for (int i = 0; i < 5; ++i) Arrives(credits, Header(++sequence, 0, 8));
  EXPECT_EQ(credits.UpdateDue(), Credits::Update::kNone);

  Arrives(credits, Header(++sequence, 0, 8));

  EXPECT_EQ(credits.UpdateDue(), Credits::Update::kNow);
  Send(credits, false, true);
  EXPECT_EQ(credits.UpdateDue(), Credits::Update::kNone);
}

// R4.4.3
TEST(CreditsTest, ABareUpdateCallsForNoneInReturn) {
  Credits credits = Started(3, 8);

  Arrives(credits, Header(1, 0, 8), /*bare=*/true);

  EXPECT_EQ(credits.UpdateDue(), Credits::Update::kNone);
}

// R4.4.4
TEST(CreditsTest, TwoSidesThatOnlyRestoreEachOthersBareDataComeToRest) {
  Credits credits = Started(2, 8);
  uint32_t sequence = 0;
  int prompt = 0;
  for (int round = 0; round < 100; ++round) {
    Arrives(credits, Header(++sequence, credits.last_sent(), 2), /*bare=*/true);
    if (credits.UpdateDue() != Credits::Update::kNow) break;
    Send(credits, false, true);
    ++prompt;
  }

  EXPECT_LE(prompt, 10);
  EXPECT_EQ(credits.UpdateDue(), Credits::Update::kLater) << "the duty is still there";
  const uint32_t first = credits.LaterBy();
  Send(credits, false, true);
  EXPECT_GT(credits.LaterBy(), first);
  credits.OnReceivePosted();
  Arrives(credits, Header(++sequence, credits.last_sent(), 2), /*bare=*/true);
  EXPECT_EQ(credits.UpdateDue(), Credits::Update::kNow) << "a buffer more is real news";
}

// R4.4.6
TEST(CreditsTest, AStalledSenderAsksOnceWhenThePeerMayBelieveThatItOwesNothing) {
  Credits credits = Started(8, 3);
  EXPECT_EQ(credits.EscapeDue(), Credits::Update::kNone) << "three carry payload";
  Send(credits, false, true);
  EXPECT_EQ(credits.EscapeDue(), Credits::Update::kNow);

  Credits quiet = Started(8, 3);
  Send(quiet, true, false);
  EXPECT_EQ(quiet.EscapeDue(), Credits::Update::kNone) << "the peer heard payload and must answer";
}

TEST(CreditsTest, ASecondEscapeIsLeftForLater) {
  Credits credits = Started(8, 3);
  Send(credits, false, true);
  Send(credits, false, true);
  credits.OnEscape();

  Arrives(credits, Header(1, 1, 3));

  EXPECT_EQ(credits.available(), 2);
  EXPECT_EQ(credits.EscapeDue(), Credits::Update::kLater) << "the answer may have crossed it";
}

// R7.4.4
TEST(CreditsTest, AHeldAcknowledgementStaysWhereItIsUntilReleased) {
  Credits credits = Started(8, 8);
  Arrives(credits, Header(1, 0, 8));
  Arrives(credits, Header(2, 0, 8));
  credits.HoldAcknowledgement(1);
  Arrives(credits, Header(3, 0, 8));
  EXPECT_EQ(Send(credits).acknowledged, 1u);

  credits.ReleaseAcknowledgement();

  EXPECT_EQ(Send(credits).acknowledged, 3u);
}

// R4.2.3
TEST(CreditsTest, EveryHeaderTellsTheBuffersThatArePosted) {
  Credits credits = Started(8, 8);
  credits.OnReceiveTaken();
  ASSERT_EQ(credits.OnHeader(Header(1, 0, 8), false), nullptr);

  EXPECT_EQ(Send(credits).buffers, 7);
}

}  // namespace
}  // namespace esdp::sdp
