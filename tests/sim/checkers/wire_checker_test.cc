// That the checker of the wire can fail: each conversation has one fault, and it finds it.

#include "tests/sim/checkers/wire_fixture.h"

namespace esdp::simulation {
namespace {

namespace wire = sdp::wire;
using fabric::sim::Frame;
using fabric::sim::FrameKind;

TEST_F(WireCheckerTest, FindsAGapInTheSequence) {
  Send(FrameOf(wire::Data{}, 1));
  EXPECT_TRUE(findings_.empty());
  Send(FrameOf(wire::Data{}, 3));
  EXPECT_TRUE(findings_.Mention("MSeq 3 follows 1"));
}

TEST_F(WireCheckerTest, FindsPayloadThatLeavesTooFewCredits) {
  Send(FrameOf(wire::Data{}, 1, 10));
  Send(FrameOf(wire::Data{}, 2, 10));
  EXPECT_TRUE(findings_.empty());
  Send(FrameOf(wire::Data{}, 3, 10));
  EXPECT_TRUE(findings_.Mention("overdraws its credits with Data"));
}

TEST_F(WireCheckerTest, FindsAMessageWithoutAnyCredit) {
  for (uint32_t i = 1; i <= 4; ++i) Send(FrameOf(wire::Data{}, i));
  EXPECT_TRUE(findings_.empty());
  EXPECT_EQ(marks_.Count("the last credit used"), 1u);
  Send(FrameOf(wire::Data{}, 5));
  EXPECT_TRUE(findings_.Mention("overdraws"));
}

TEST_F(WireCheckerTest, ANewHeaderGivesNewCredits) {
  for (uint32_t i = 1; i <= 4; ++i) Carry(kOne, kTwo, FrameOf(wire::Data{}, i));
  Carry(kTwo, kOne, FrameOf(wire::Data{}, 1, 0, 4));
  Send(FrameOf(wire::Data{}, 5, 1));
  EXPECT_TRUE(findings_.empty());
}

TEST_F(WireCheckerTest, FindsASecondAdvertWhereOneIsTaken) {
  Send(FrameOf(wire::SrcAvail{100, 1, 0}, 1, 1));
  EXPECT_TRUE(findings_.empty());
  Send(FrameOf(wire::SrcAvail{100, 1, 0}, 2, 1));
  EXPECT_TRUE(findings_.Mention("more SrcAvails than the peer takes"));
}

TEST_F(WireCheckerTest, AnAdvertEndsWhenItIsReadOrGivenBack) {
  Carry(kOne, kTwo, FrameOf(wire::SrcAvail{100, 1, 0}, 1, 1));
  Carry(kTwo, kOne, FrameOf(wire::RdmaRdCompl{40}, 1, 0, 1));
  Carry(kTwo, kOne, FrameOf(wire::RdmaRdCompl{59}, 2, 0, 1));
  Carry(kOne, kTwo, FrameOf(wire::SrcAvail{100, 1, 0}, 2, 1, 2));
  Carry(kTwo, kOne, FrameOf(wire::RdmaRdCompl{40}, 3, 0, 2));
  Carry(kTwo, kOne, FrameOf(wire::SendSm{}, 4, 0, 2));
  Carry(kOne, kTwo, FrameOf(wire::SrcAvail{100, 1, 0}, 3, 1, 4));
  EXPECT_TRUE(findings_.empty()) << findings_.texts()[0];
  EXPECT_EQ(marks_.Count("SendSm after a part was read"), 1u);
  EXPECT_EQ(marks_.Count("an advert read in parts"), 2u);
}

TEST_F(WireCheckerTest, FindsMoreReadThanWasAdvertised) {
  Carry(kOne, kTwo, FrameOf(wire::SrcAvail{100, 1, 0}, 1, 1));
  Carry(kTwo, kOne, FrameOf(wire::RdmaRdCompl{100}, 1, 0, 1));
  EXPECT_TRUE(findings_.Mention("more than was advertised"));
}

TEST_F(WireCheckerTest, FindsAnAnswerToNoAdvert) {
  Carry(kTwo, kOne, FrameOf(wire::SendSm{}, 1));
  EXPECT_TRUE(findings_.Mention("answers an advert that is not there"));
}

TEST_F(WireCheckerTest, FindsBytesBehindDisConn) {
  Send(FrameOf(wire::DisConn{}, 1));
  Send(FrameOf(wire::Data{}, 2));
  EXPECT_TRUE(findings_.empty());
  Send(FrameOf(wire::Data{}, 3, 1));
  EXPECT_TRUE(findings_.Mention("user bytes after DisConn"));
}

TEST_F(WireCheckerTest, FindsAnAcknowledgementOfWhatHasNotArrived) {
  Send(FrameOf(wire::Data{}, 1, 0, 1));
  EXPECT_TRUE(findings_.Mention("acknowledges a message that has not arrived"));
}

TEST_F(WireCheckerTest, FindsWhatIsNoMessage) {
  Send({.kind = FrameKind::kSend, .payload = std::vector<std::byte>(16)});
  EXPECT_TRUE(findings_.Mention("sends what is no message"));
}

TEST_F(WireCheckerTest, AConnectionWithAHostilePeerIsNotJudged) {
  checker_.Disregard(7);
  Send(FrameOf(wire::Data{}, 30));
  EXPECT_TRUE(findings_.empty());
}

}  // namespace
}  // namespace esdp::simulation
