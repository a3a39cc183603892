// A peer that breaks the rules is told which one (RFC 5040 section 4.8), and nobody else suffers.

#include <string>
#include <vector>

#include "tests/fabric/qpip/qpip_fixture.h"

namespace esdp::fabric::qpip {
namespace {

constexpr Access kForReading{.remote_read = true};
constexpr Access kForWriting{.remote_write = true};

class RefusalTest : public QpipTest {};

// One frame as the first thing a peer says; memory stays as it is.
struct Offence {
  const char* name;
  Octets ulpdu;
  uint16_t reason;
};

std::vector<Offence> Offences() {
  const Octets ten(10, 'x');
  const Octets read = ReadRequestOf(7, 0, 10, 8, 0);
  return {
      {"DdpVersionOfUntagged", Untagged({.ddp_version = 0}, ten), 0x1206},
      {"DdpVersionOfTagged", Tagged(0, 1, 0, ten, true, 2), 0x1104},
      {"RdmapVersion", Untagged({.rdmap_version = 0}, ten), 0x0205},
      {"RdmapVersionOfWrite", Tagged(0, 1, 0, ten, true, 1, 3), 0x0205},
      {"ReservedOpcode", Untagged({.opcode = 8}, ten), 0x0206},
      {"WriteWithoutTag", Untagged({.opcode = 0}, ten), 0x0206},
      {"TaggedSend", Tagged(3, 1, 0, ten), 0x0206},
      {"SendOnTheReadQueue", Untagged({.queue = 1}, ten), 0x1201},
      {"SendOnNoQueue", Untagged({.queue = 3}, ten), 0x1201},
      {"SequenceZero", Untagged({.sequence = 0}, ten), 0x1203},
      {"SequenceAhead", Untagged({.sequence = 2}, ten), 0x1203},
      {"OffsetAhead", Untagged({.offset = 1}, ten), 0x1204},
      {"LongerThanItsReceive", Untagged({}, Octets(65, 'x')), 0x1205},
      {"ReadRequestTooLong", Untagged({.opcode = 1, .queue = 1}, read + Octets{0}), 0x1205},
      {"ReadRequestTooShort", Untagged({.opcode = 1, .queue = 1}, Octets(27, 0)), 0x02ff},
      {"ReadRequestInPieces", Untagged({.opcode = 1, .queue = 1, .last = false}, read), 0x02ff},
      {"ReadRequestWithOffset", Untagged({.opcode = 1, .queue = 1, .offset = 4}, read), 0x1204},
      {"ReadOfAnUnknownTag", Untagged({.opcode = 1, .queue = 1}, read), 0x0100},
      {"WriteToAnUnknownTag", Tagged(0, 1, 0, ten), 0x1100},
      {"ResponseToNoRead", Tagged(2, 1, 0, ten), 0x0206},
      {"InvalidatesAnUnknownTag", Untagged({.opcode = 4, .word = 77}, ten), 0x0100},
      {"TerminateTooLong", Untagged({.opcode = 7, .queue = 2}, Octets(65, 0)), 0x1205},
  };
}

TEST_F(RefusalTest, EveryMalformedSegmentIsToldItsReason) {
  for (const Offence& offence : Offences()) {
    SCOPED_TRACE(offence.name);
    Establish();
    PostReceive(1, 0, 64);

    ASSERT_TRUE(peer_->Send(Frame(offence.ulpdu)));

    const bool access = offence.reason >> 8 == 0x01 || offence.reason == 0x1100;
    ExpectTerminate(offence.reason, access ? Cause::kLocalAccess : Cause::kProtocol);
    EXPECT_EQ(NextCompletion().status, WorkStatus::kFlushed);
    EXPECT_EQ(MemoryAt(64, 64), Octets(64, 0)) << "behind the receive";
  }
  ExpectTheFabricWorks();
}

TEST_F(RefusalTest, AFrameTooShortForItsHeaderIsAnMpaError) {
  for (const size_t length : {1u, 2u, 13u, 17u}) {
    SCOPED_TRACE(length);
    Establish();
    // Looks untagged, so that 14 .. 17 are too short as well.
    ASSERT_TRUE(peer_->Send(Frame(Octets(length, 0x41))));
    ExpectTerminate(0x2003, Cause::kProtocol);
    EXPECT_EQ(terminate_.size(), 4u) << "an MPA error carries no headers";
  }
}

// R4.2.4
TEST_F(RefusalTest, ASendWithoutAReceiveIsToldThatThereIsNoBuffer) {
  Establish();
  ASSERT_TRUE(peer_->Send(Frame(Untagged({}, Text("nobody waits")))));
  ExpectTerminate(0x1202, Cause::kProtocol);
  const Octets expected = Octets{0x12, 0x02, 0xc0, 0x00} + Number(18 + 12, 2) + Untagged({}, {});
  EXPECT_EQ(terminate_, expected) << "the length and header of the segment come along";
}

TEST_F(RefusalTest, AWindowRefusesWhatItDoesNotShow) {
  struct Access {
    uint8_t opcode;
    uint64_t offset;
    size_t length;
    fabric::Access rights;
    uint16_t reason;
  };
  const std::vector<Access> accesses = {
      {0, 0, 33, kForWriting, 0x1101},         {0, 32, 1, kForWriting, 0x1101},
      {0, UINT64_MAX, 2, kForWriting, 0x1103}, {0, 0, 8, kForReading, 0x0102},
      {1, 0, 33, kForReading, 0x0101},         {1, 32, 1, kForReading, 0x0101},
      {1, UINT64_MAX, 2, kForReading, 0x0104}, {1, 0, 8, kForWriting, 0x0102},
  };
  for (const Access& access : accesses) {
    SCOPED_TRACE(testing::Message() << "opcode " << int{access.opcode} << " at " << access.offset
                                    << " of " << access.length);
    Establish();
    const uint32_t key = BindWindow(64, 32, access.rights);
    const Octets ulpdu = access.opcode == 0
                             ? Tagged(0, key, access.offset, Octets(access.length, 'x'))
                             : Untagged({.opcode = 1, .queue = 1},
                                        ReadRequestOf(5, 0, static_cast<uint32_t>(access.length),
                                                      key, access.offset));
    ASSERT_TRUE(peer_->Send(Frame(ulpdu)));
    ExpectTerminate(access.reason, Cause::kLocalAccess);
    EXPECT_EQ(MemoryAt(0, 256), Octets(256, 0));
  }
}

TEST_F(RefusalTest, ARefusedReadIsToldWithItsRequest) {
  Establish();
  const Octets request = ReadRequestOf(0x51, 0, 9, 0x52, 0x53);
  ASSERT_TRUE(peer_->Send(Frame(Untagged({.opcode = 1, .queue = 1}, request))));
  ExpectTerminate(0x0100, Cause::kLocalAccess);
  const Octets header = Untagged({.opcode = 1, .queue = 1}, {});
  EXPECT_EQ(terminate_, (Octets{0x01, 0x00, 0xe0, 0x00} + Number(46, 2) + header + request));
}

TEST_F(RefusalTest, TheWindowOfAnotherStreamIsRefused) {
  Establish();
  const uint32_t key = BindWindow(0, 64, kForWriting);
  const std::unique_ptr<RawPeer> owner = std::move(peer_);
  Establish();

  ASSERT_TRUE(peer_->Send(Frame(Tagged(0, key, 0, Text("stranger")))));

  ExpectTerminate(0x1102, Cause::kLocalAccess);
  ASSERT_TRUE(owner->Send(Frame(Tagged(0, key, 0, Text("owner")))));
  EXPECT_TRUE(PumpUntil([&] { return MemoryAt(0, 5) == Text("owner"); }));
}

TEST_F(RefusalTest, ATagThatWasInvalidatedIsStale) {
  Establish();
  PostReceive(1, 128, 64);
  const uint32_t key = BindWindow(0, 64, kForWriting);
  const uint32_t kept = BindWindow(0, 64, kForWriting);
  ASSERT_TRUE(peer_->Send(Frame(Untagged({.opcode = 6, .word = key}, Text("done")))));
  const Completion completion = NextCompletion();
  EXPECT_TRUE(completion.has_invalidated);
  EXPECT_EQ(completion.invalidated_key, key);
  ASSERT_TRUE(peer_->Send(Frame(Tagged(0, kept, 0, Text("fine")))));

  ASSERT_TRUE(peer_->Send(Frame(Tagged(0, key, 0, Text("late")))));

  ExpectTerminate(0x1100, Cause::kLocalAccess);
  EXPECT_EQ(MemoryAt(0, 4), Text("fine"));
}

TEST_F(RefusalTest, ARegionsOwnKeyCannotBeInvalidatedByThePeer) {
  Establish();
  PostReceive(1, 128, 64);
  const uint32_t key = fabric_->RegionKey(region_)->key;
  ASSERT_TRUE(peer_->Send(Frame(Untagged({.opcode = 4, .word = key}, {}))));
  ExpectTerminate(0x0109, Cause::kLocalAccess);
  EXPECT_EQ(NextCompletion().status, WorkStatus::kFlushed);
}

TEST_F(RefusalTest, MoreReadsThanAgreedAreRefused) {
  Establish({}, {.responder_resources = 2});
  const uint32_t key = BindWindow(0, kMemoryBytes, kForReading);
  // Large enough that the first answers cannot all have left.
  Octets frames;
  for (uint32_t i = 1; i <= 64; ++i) {
    frames = frames + Frame(Untagged({.opcode = 1, .queue = 1, .sequence = i},
                                     ReadRequestOf(i, 0, kMemoryBytes, key, 0)));
  }
  ASSERT_TRUE(peer_->Send(frames));
  ExpectTerminate(0x1202, Cause::kProtocol);
}

TEST_F(RefusalTest, AWriteCannotUseTheTagOfARead) {
  Establish();
  ASSERT_TRUE(peer_->Send(Frame(Tagged(0, 0, 0, {}))));
  ASSERT_TRUE(Post(Opcode::kRead, 1, 0, 100, {.key = 9, .address = 0}).ok());
  const auto request = peer_->ReceiveSegment();
  ASSERT_TRUE(request.has_value());
  const uint32_t sink = static_cast<uint32_t>(request->payload[0]) << 24 |
                        static_cast<uint32_t>(request->payload[1]) << 16 |
                        static_cast<uint32_t>(request->payload[2]) << 8 | request->payload[3];

  ASSERT_TRUE(peer_->Send(Frame(Tagged(0, sink, 0, Octets(100, 'x')))));

  ExpectTerminate(0x1100, Cause::kLocalAccess);
  EXPECT_EQ(MemoryAt(0, 100), Octets(100, 0));
  EXPECT_EQ(NextCompletion().status, WorkStatus::kFlushed);
}

}  // namespace
}  // namespace esdp::fabric::qpip
