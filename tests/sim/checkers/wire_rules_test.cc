// That the checkers of modes, receive buffers, urgent bytes and other queue pairs can fail: each
// conversation has one fault, and it is found.

#include "tests/sim/checkers/wire_fixture.h"

namespace esdp::simulation {
namespace {

namespace wire = sdp::wire;
using fabric::sim::Frame;
using fabric::sim::FrameKind;
using fabric::sim::WireEnd;

// --- modes ---------------------------------------------------------------------------------------

TEST_F(FullWireCheckerTest, AConversationInEveryModeIsLeftAlone) {
  Say(kOne, wire::SrcAvail{100, 1, 0}, 1);
  Say(kTwo, wire::RdmaRdCompl{99}, 0, wire::kFlagReqPipe);
  SayMode(wire::Mode::kPipelined);
  Say(kTwo, wire::SinkAvail{5000, 2, 0, 0});
  Frame write{.kind = FrameKind::kWrite};
  checker_.OnTransmit(kOne, write);
  Say(kOne, wire::RdmaWrCompl{5000});
  SayMode(wire::Mode::kCombined);
  Say(kTwo, wire::Data{});
  SayMode(wire::Mode::kBuffered);
  Say(kTwo, wire::ModeChange{true, wire::Mode::kCombined});
  Say(kOne, wire::ChRcvBuf{8192});
  Say(kTwo, wire::ChRcvBufAck{8192});
  EXPECT_TRUE(findings_.empty()) << findings_.texts()[0];
}

TEST_F(FullWireCheckerTest, FindsASrcAvailInBuffered) {
  SayMode(wire::Mode::kBuffered);
  Say(kOne, wire::SrcAvail{100, 1, 0}, 1);
  ExpectFound("SrcAvail in Buffered");
}

TEST_F(FullWireCheckerTest, FindsASrcAvailWithoutUserBytesInCombined) {
  Say(kOne, wire::SrcAvail{100, 1, 0});
  ExpectFound("SrcAvail without user bytes in Combined");
}

TEST_F(FullWireCheckerTest, FindsASrcAvailWithUserBytesInPipelined) {
  SayMode(wire::Mode::kPipelined);
  Say(kOne, wire::SrcAvail{100, 1, 0}, 1);
  ExpectFound("SrcAvail with user bytes in Pipelined");
}

TEST_F(FullWireCheckerTest, FindsASinkAvailOutsidePipelinedUnlessItCrossesTheChange) {
  SayMode(wire::Mode::kPipelined);
  Frame change = Leave(kOne, wire::ModeChange{false, wire::Mode::kCombined});
  Frame crossing = Next(kTwo, wire::SinkAvail{5000, 2, 0, 0});
  Arrive(kTwo, change);
  checker_.OnTransmit(kTwo, crossing);
  EXPECT_TRUE(findings_.empty()) << findings_.texts()[0];
  EXPECT_EQ(marks_.Count("a SinkAvail crosses the end of Pipelined"), 1u);
  Leave(kTwo, wire::SinkAvail{5000, 2, 0, 0});
  ExpectFound("SinkAvail in Combined");
}

TEST_F(FullWireCheckerTest, FindsAnRdmaWriteOutsidePipelined) {
  Frame write{.kind = FrameKind::kWrite};
  checker_.OnTransmit(kOne, write);
  ExpectFound("an RDMA write in Combined");
}

TEST_F(FullWireCheckerTest, FindsAModeChangeThatIsNotItsSendersToOrder) {
  SayMode(wire::Mode::kBuffered);
  SayMode(wire::Mode::kCombined);
  ExpectFound("ModeChange from Buffered to Combined");
}

TEST_F(FullWireCheckerTest, FindsAModeChangeThatNamesTheModeThatIs) {
  SayMode(wire::Mode::kCombined);
  ExpectFound("ModeChange from Combined to Combined");
}

TEST_F(FullWireCheckerTest, FindsAModeChangeBeforeTheLastOneIsAcknowledged) {
  SayMode(wire::Mode::kPipelined);
  SayMode(wire::Mode::kCombined);
  SayMode(wire::Mode::kPipelined);
  ExpectFound("another ModeChange before the last one is acknowledged");
}

TEST_F(FullWireCheckerTest, FindsReqPipeWhereItMeansNothing) {
  Say(kTwo, wire::Data{}, 1, wire::kFlagReqPipe);
  ExpectFound("REQ_PIPE on Data");
}

TEST_F(WireCheckerTest, FindsWhatDeployedPeersDoNotKnow) {
  const wire::Body bodies[] = {wire::ModeChange{false, wire::Mode::kPipelined},
                               wire::ChRcvBuf{8192}, wire::SuspComm{65536 + 4000}};
  uint32_t sequence = 0;
  for (const wire::Body& body : bodies) {
    Send(FrameOf(body, ++sequence));
    EXPECT_EQ(findings_.count(), sequence) << sequence;
    EXPECT_TRUE(findings_.Mention("beyond what deployed peers know"));
  }
}

TEST_F(WireCheckerTest, FindsAnInvalidateTowardsADeployedPeer) {
  Carry(kOne, kTwo, FrameOf(wire::SrcAvail{100, 1, 0}, 1, 1));
  Frame frame = FrameOf(wire::RdmaRdCompl{99}, 1, 0, 1);
  frame.has_key = true;
  checker_.OnTransmit(kTwo, frame);
  EXPECT_TRUE(findings_.Mention("RdmaRdCompl beyond what deployed peers know"));
}

// --- receive buffers of another size -------------------------------------------------------------

TEST_F(FullWireCheckerTest, FindsAMessageThatIsLargerThanTheBuffer) {
  Say(kOne, wire::Data{}, 4080);
  EXPECT_TRUE(findings_.empty());
  Say(kOne, wire::Data{}, 4081);
  ExpectFound("Data of 4097 bytes for a buffer of 4096");
}

TEST_F(FullWireCheckerTest, FindsALargerMessageThatMayMeetASmallBuffer) {
  Say(kOne, wire::ChRcvBuf{8192});
  Say(kTwo, wire::ChRcvBufAck{8192});
  for (uint32_t i = 0; i < 100; ++i) Say(kTwo, wire::Data{}), Say(kOne, wire::Data{}, 10);
  EXPECT_TRUE(findings_.empty()) << findings_.texts()[0];
  Say(kOne, wire::Data{}, 8176);
  EXPECT_TRUE(findings_.empty()) << "the hundred and first finds a large one";
  EXPECT_EQ(marks_.Count("a message larger than the first buffers"), 1u);
}

TEST_F(FullWireCheckerTest, FindsALargerMessageTooEarly) {
  Say(kOne, wire::ChRcvBuf{8192});
  Say(kTwo, wire::ChRcvBufAck{8192});
  Say(kOne, wire::Data{}, 8176);
  ExpectFound("Data of 8192 bytes for a buffer of 4096");
}

TEST_F(FullWireCheckerTest, FindsALargerMessageBehindARequestForSmallerBuffers) {
  Say(kOne, wire::ChRcvBuf{1040});
  Say(kOne, wire::Data{}, 1025);
  ExpectFound("Data of 1041 bytes for a buffer of 1040");
}

TEST_F(FullWireCheckerTest, FindsASecondRequest) {
  Say(kOne, wire::ChRcvBuf{8192});
  Say(kOne, wire::ChRcvBuf{8192});
  ExpectFound("ChRcvBuf before the last one is answered");
}

TEST_F(FullWireCheckerTest, FindsARequestBehindTheAnswer) {
  Say(kOne, wire::ChRcvBuf{8192});
  Say(kTwo, wire::ChRcvBufAck{4096});
  EXPECT_EQ(marks_.Count("a resize refused"), 1u);
  Say(kOne, wire::ChRcvBuf{8192});
  ExpectFound("ChRcvBuf though one was answered");
}

TEST_F(FullWireCheckerTest, FindsAnAnswerToNoRequestAndOneThatWasNotAskedFor) {
  Say(kTwo, wire::ChRcvBufAck{4096});
  ExpectFound("ChRcvBufAck: an answer to no request");
  Say(kOne, wire::ChRcvBuf{8192});
  Say(kTwo, wire::ChRcvBufAck{9000});
  EXPECT_TRUE(findings_.Mention("ChRcvBufAck: 9000 is not from 4096 to 8192"));
}

TEST_F(FullWireCheckerTest, FindsTheAcceptingSideAnsweringWhereBothHaveAsked) {
  Frame one = Leave(kOne, wire::ChRcvBuf{8192});
  Frame two = Leave(kTwo, wire::ChRcvBuf{8192});
  Arrive(kTwo, one);
  Arrive(kOne, two);
  Say(kOne, wire::ChRcvBufAck{8192});
  EXPECT_TRUE(findings_.empty()) << findings_.texts()[0];
  Say(kTwo, wire::ChRcvBufAck{8192});
  ExpectFound("ChRcvBufAck: an answer to no request");
}

// --- urgent bytes --------------------------------------------------------------------------------

TEST_F(FullWireCheckerTest, FindsUrgentBytesThatAreNotAnnouncedOrTwice) {
  Say(kOne, wire::Data{}, 1, wire::kFlagOobPresent);
  ExpectFound("an urgent byte that was not announced");
  Say(kOne, wire::Data{}, 1, wire::kFlagOobPresent | wire::kFlagOobPending);
  Say(kOne, wire::Data{}, 0, wire::kFlagOobPending);
  EXPECT_EQ(findings_.count(), 1u);
  Say(kOne, wire::Data{}, 1, wire::kFlagOobPresent | wire::kFlagOobPending);
  EXPECT_TRUE(findings_.Mention("OOB_PEND while another urgent byte is announced"));
}

TEST_F(FullWireCheckerTest, FindsAnUrgentByteWithoutUserBytes) {
  Say(kOne, wire::Data{}, 0, wire::kFlagOobPresent | wire::kFlagOobPending);
  ExpectFound("OOB_PRES on Data without user bytes");
}

TEST_F(FullWireCheckerTest, FindsAnUrgentByteAnnouncedTooFarAhead) {
  Say(kOne, wire::Data{}, 0, wire::kFlagOobPending);
  for (int i = 0; i < 20; ++i) Say(kTwo, wire::Data{}), Say(kOne, wire::Data{}, 4000);
  EXPECT_TRUE(findings_.empty()) << findings_.texts()[0];
  Say(kOne, wire::Data{}, 1, wire::kFlagOobPresent);
  ExpectFound("an urgent byte announced 80001 bytes ahead");
}

// --- another queue pair --------------------------------------------------------------------------

TEST_F(FullWireCheckerTest, FindsWhatIsSaidBehindSuspComm) {
  Say(kOne, wire::SuspComm{65536 + 4000});
  Say(kOne, wire::Data{});
  EXPECT_TRUE(findings_.empty()) << findings_.texts()[0];
  Say(kOne, wire::Data{}, 1);
  ExpectFound("Data behind SuspComm");
  Say(kTwo, wire::SuspCommAck{});
  Say(kTwo, wire::SendSm{});
  EXPECT_TRUE(findings_.Mention("SendSm behind SuspCommAck"));
}

TEST_F(FullWireCheckerTest, FindsRdmaBehindSuspComm) {
  Say(kOne, wire::SuspComm{65536 + 4000});
  Frame read{.kind = FrameKind::kReadRequest};
  checker_.OnTransmit(kOne, read);
  ExpectFound("RDMA behind SuspComm");
}

TEST_F(FullWireCheckerTest, FindsSuspCommAckOfNothing) {
  Say(kTwo, wire::SuspCommAck{});
  ExpectFound("SuspCommAck: an answer to no SuspComm");
}

TEST_F(FullWireCheckerTest, AConnectionThatMovesBeginsAnewAndIsStillTheSame) {
  Say(kOne, wire::SuspComm{65536 + 4000});
  Say(kTwo, wire::SuspCommAck{});
  constexpr WireEnd kNew{3, 8, true, 4000};
  Declare(kNew, {4, 8, false, 4000}, 4, 8);
  EXPECT_EQ(checker_.FirstOf(8), 7u);
  Frame first = FrameOf(wire::Data{}, 1);
  checker_.OnTransmit(kNew, first);
  EXPECT_TRUE(findings_.empty()) << findings_.texts()[0];
  checker_.Disregard(8);
  Send(FrameOf(wire::Data{}, 30));
  EXPECT_TRUE(findings_.empty()) << "of the same connection";
}

// Whoever was asked to move connects: the sides change places, and an urgent byte stays announced.
TEST_F(FullWireCheckerTest, AnUrgentByteStaysAnnouncedWhenTheConnectionMoves) {
  Say(kOne, wire::Data{}, 0, wire::kFlagOobPending);
  Say(kOne, wire::SuspComm{65536 + 4000});
  Say(kTwo, wire::SuspCommAck{});
  constexpr WireEnd kOneMoved{3, 8, false, 4000}, kTwoMoved{4, 8, true, 4000};
  Declare(kTwoMoved, kOneMoved, 100, 8);
  sent_ = arrived_ = {};
  Frame byte = Next(kOneMoved, wire::Data{}, 1, wire::kFlagOobPresent);
  checker_.OnTransmit(kOneMoved, byte);
  EXPECT_TRUE(findings_.empty()) << findings_.texts()[0];
  byte = Next(kTwoMoved, wire::Data{}, 1, wire::kFlagOobPresent);
  checker_.OnTransmit(kTwoMoved, byte);
  ExpectFound("an urgent byte that was not announced");
}

}  // namespace
}  // namespace esdp::simulation
