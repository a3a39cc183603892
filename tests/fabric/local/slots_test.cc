// What stands in a block: slots and their bytes, from one end to the other.

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "impl/base/random.h"
#include "impl/fabric/local/layout.h"
#include "impl/fabric/local/ring_space.h"
#include "impl/fabric/local/slot_reader.h"
#include "impl/fabric/local/slot_writer.h"

namespace esdp::fabric::local {
namespace {

TEST(RingSpaceTest, PiecesThatAreInUseNeverOverlap) {
  Random random(7);
  RingSpace space(kRingBytes);
  std::deque<RingSpace::Piece> in_use;
  for (int step = 0; step < 200'000; ++step) {
    const auto bytes = static_cast<uint32_t>(random.Between(1, kPieceMax));
    const auto piece = random.Between(0, 99) < 55 ? space.Find(bytes) : std::nullopt;
    if (piece) {
      space.Take(*piece);
      ASSERT_EQ(piece->bytes(), bytes);
      ASSERT_LE(piece->place() + piece->bytes(), kRingBytes);
      for (const RingSpace::Piece& other : in_use) {
        ASSERT_TRUE(piece->place() + piece->bytes() <= other.place() ||
                    other.place() + other.bytes() <= piece->place())
            << step;
      }
      in_use.push_back(*piece);
    } else if (!in_use.empty()) {
      space.GiveBack(in_use.front());
      in_use.pop_front();
    }
  }
}

TEST(RingSpaceTest, WithEverythingGivenBackItStartsAtTheBeginning) {
  RingSpace space(kRingBytes);
  for (int i = 0; i < 100; ++i) {
    const auto piece = space.Find(1000);
    ASSERT_TRUE(piece.has_value());
    EXPECT_EQ(piece->place(), 0u);
    space.Take(*piece);
    space.GiveBack(*piece);
    EXPECT_EQ(space.used(), 0u);
  }
}

TEST(RingSpaceTest, AllOfItCanBeInUse) {
  RingSpace space(kRingBytes);
  for (uint32_t used = 0; used < kRingBytes; used += kPieceOfLonger) {
    const auto piece = space.Find(kPieceOfLonger);
    ASSERT_TRUE(piece.has_value());
    space.Take(*piece);
  }
  EXPECT_FALSE(space.Find(1).has_value());
}

TEST(RingSpaceTest, WhatIsFoundAndNotTakenIsStillFree) {
  RingSpace space(kRingBytes);
  EXPECT_EQ(space.Find(1000)->place(), 0u);
  EXPECT_EQ(space.Find(kRingBytes)->place(), 0u);
  EXPECT_FALSE(space.Find(kRingBytes + 1).has_value());
  EXPECT_EQ(space.used(), 0u);
}

class SlotsTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Block> ZeroedBlock() { return std::make_unique<Block>(); }

  // A slot of `size` bytes that tell their place; false when there is no room for all of them.
  bool Put(uint32_t size, SlotHeader header) {
    const std::optional<Bytes> room = writer_.Reserve(size);
    if (!room || room->size() < size) return false;
    for (size_t i = 0; i < room->size(); ++i) (*room)[i] = ByteAt(header.length, i);
    writer_.Put(header, static_cast<uint32_t>(room->size()));
    return true;
  }
  static std::byte ByteAt(uint32_t seed, size_t i) {
    return static_cast<std::byte>((i + seed) * 0x9e3779b97f4a7c15ull >> 56);
  }

  void PutRaw(uint64_t lap, uint64_t kind, uint64_t flags, uint64_t bytes, uint64_t third) {
    own_->slots[0].words[kPayloadWord] = third;
    own_->slots[0].words[0] = lap | kind << 32 | flags << 40 | bytes << 48;
  }

  std::unique_ptr<Block> own_ = ZeroedBlock();
  std::unique_ptr<Block> peer_ = ZeroedBlock();
  SlotWriter writer_{*own_, *peer_};
  SlotReader reader_{*own_, *peer_};
};

TEST_F(SlotsTest, InTheRingWhatFollowsAHeadBeginsAtALine) {
  for (const uint32_t head : {0u, 1u, 16u, 63u, 64u, 100u}) {
    const std::optional<Bytes> room = writer_.Reserve(5000, head);
    ASSERT_TRUE(room.has_value());
    ASSERT_EQ(room->size(), 5000u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(room->data() + head) % RingSpace::kLine, 0u) << head;
    for (size_t i = 0; i < room->size(); ++i) (*room)[i] = ByteAt(head, i);
    writer_.Put({.kind = SlotKind::kSend, .length = 5000}, 5000);
    const std::optional<ReceivedSlot> slot = reader_.Front();
    ASSERT_TRUE(slot.has_value());
    ASSERT_EQ(slot->payload.size(), 5000u);
    for (size_t i = 0; i < slot->payload.size(); ++i) {
      ASSERT_EQ(slot->payload[i], ByteAt(head, i)) << head;
    }
    reader_.Pop();
    reader_.Tell();
  }
}

TEST_F(SlotsTest, SlotsArriveInOrderWithAllThatTheySay) {
  Random random(11);
  std::deque<SlotHeader> sent;
  uint32_t arrived = 0;
  for (uint32_t i = 0; i < 20'000; ++i) {
    SlotHeader header;
    header.kind = static_cast<SlotKind>(random.Between(1, 5));
    header.flags = random.Between(0, 1) == 0 ? 0 : kInvalidates;
    header.length = i;
    header.key = i * 3;
    header.address = uint64_t{i} << 33;
    const auto size = static_cast<uint32_t>(random.Between(0, 3) == 0 ? random.Between(0, kPieceMax)
                                                                      : random.Between(0, 200));
    if (Put(size, header)) sent.push_back(header);
    while (random.Between(0, 2) == 0) {
      const std::optional<ReceivedSlot> slot = reader_.Front();
      ASSERT_EQ(slot.has_value(), !sent.empty());
      if (!slot) break;
      EXPECT_EQ(slot->header.kind, sent.front().kind);
      EXPECT_EQ(slot->header.flags & ~kInRing, sent.front().flags);
      EXPECT_EQ(slot->header.length, sent.front().length);
      EXPECT_EQ(slot->header.key, sent.front().key);
      EXPECT_EQ(slot->header.address, sent.front().address);
      for (size_t at = 0; at < slot->payload.size(); ++at) {
        ASSERT_EQ(slot->payload[at], ByteAt(sent.front().length, at));
      }
      reader_.Pop();
      reader_.Tell();
      sent.pop_front();
      ++arrived;
    }
  }
  EXPECT_GT(arrived, 5'000u);
  EXPECT_FALSE(reader_.broken());
  EXPECT_FALSE(writer_.broken());
}

TEST_F(SlotsTest, SoManySlotsWaitAndNoMore) {
  for (uint32_t i = 0; i < kSlots; ++i) EXPECT_TRUE(Put(8, {}));
  EXPECT_FALSE(Put(8, {}));
  ASSERT_TRUE(reader_.Front().has_value());
  reader_.Pop();
  EXPECT_FALSE(Put(8, {})) << "it has not been told";
  reader_.Tell();
  EXPECT_TRUE(Put(8, {}));
}

TEST_F(SlotsTest, ASlotWithoutAPutIsNotThere) {
  ASSERT_TRUE(writer_.Reserve(50'000).has_value());
  EXPECT_FALSE(reader_.Front().has_value());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Put(kPieceMax, {})) << "nothing of the ring is lost";
}

// Beside a model: what is told are the slots before the oldest one that is kept.
TEST_F(SlotsTest, SlotsThatAreKeptAreNotGivenBack) {
  Random random(5);
  std::deque<uint64_t> kept;
  uint64_t put = 0;
  uint64_t popped = 0;
  for (int step = 0; step < 50'000; ++step) {
    if (random.Between(0, 1) == 0 && Put(8, {})) ++put;
    if (random.Between(0, 1) == 0 && reader_.Front().has_value()) {
      reader_.Pop();
      if (random.Between(0, 3) == 0) {
        reader_.Keep();
        kept.push_back(popped);
      }
      ++popped;
    }
    if (random.Between(0, 7) == 0 && !kept.empty()) {
      reader_.LetGo();
      kept.pop_front();
    }
    ASSERT_EQ(reader_.keeps(), !kept.empty());
    if (reader_.HasUntold()) reader_.Tell();
    ASSERT_EQ(peer_->taken.load(), kept.empty() ? popped : kept.front()) << step;
  }
  EXPECT_GT(put, 1000u);
}

TEST_F(SlotsTest, ASlotThatNamesBytesOutsideOfItIsBroken) {
  struct Wrong {
    uint64_t kind, flags, bytes, third;
  };
  const std::vector<Wrong> wrong = {
      {0, 0, 0, 0},
      {7, 0, 0, 0},
      {255, 0, 0, 0},
      {1, 0, kInlineMax + 1, 0},
      {1, 0, 0xffff, 0},
      {1, kInRing, 0, uint64_t{kPieceMax + 1} << 32},
      {1, kInRing, 0, kRingBytes | uint64_t{1} << 32},
      {1, kInRing, 0, (kRingBytes - 10) | uint64_t{11} << 32},
      {1, kInRing, 0, 0xffffffff | uint64_t{8} << 32},
      {1, kInRing, 0, 0xffffffffffffffff},
  };
  for (const Wrong& one : wrong) {
    SlotReader reader(*own_, *peer_);
    PutRaw(1, one.kind, one.flags, one.bytes, one.third);
    EXPECT_FALSE(reader.Front().has_value());
    EXPECT_TRUE(reader.broken()) << one.kind << ' ' << one.flags << ' ' << one.third;
  }
  SlotReader reader(*own_, *peer_);
  PutRaw(1, 1, kInRing, 0, (kRingBytes - 10) | uint64_t{10} << 32);
  EXPECT_TRUE(reader.Front().has_value());
}

TEST_F(SlotsTest, ASlotOfAnotherLapIsNotThere) {
  for (const uint64_t lap : {0u, 2u, 3u, 0xffffffffu}) {
    PutRaw(lap, 1, 0, 0, 0);
    EXPECT_FALSE(reader_.Front().has_value()) << lap;
    EXPECT_FALSE(reader_.broken());
  }
}

TEST_F(SlotsTest, WhoHasTakenWhatWasNeverThereIsFoundOut) {
  for (const uint64_t taken : {uint64_t{4}, ~uint64_t{0}, uint64_t{1} << 63}) {
    SlotWriter writer(*own_, *peer_);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(writer.Reserve(8).has_value());
      writer.Put({}, 8);
    }
    peer_->taken = taken;
    EXPECT_FALSE(writer.Refresh());
    EXPECT_TRUE(writer.broken()) << taken;
  }
}

TEST_F(SlotsTest, WhoGivesBackLessThanBeforeIsFoundOut) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Put(8, {}));
  peer_->taken = 2;
  EXPECT_TRUE(writer_.Refresh());
  peer_->taken = 1;
  EXPECT_FALSE(writer_.Refresh());
  EXPECT_TRUE(writer_.broken());
}

TEST_F(SlotsTest, WhatIsSaidToBePublishedAndIsNotThereIsNothingToWaitFor) {
  own_->published = 17;
  EXPECT_FALSE(reader_.HasMore());
  ASSERT_TRUE(Put(8, {}));
  EXPECT_TRUE(reader_.HasMore());
}

}  // namespace
}  // namespace esdp::fabric::local
