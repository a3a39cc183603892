// Peers that write into their blocks what they like. Nothing comes of it but the end of their own
// connection: no byte changes that they were not shown, nothing crashes and nothing waits.

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "impl/base/random.h"
#include "impl/fabric/local/socket_message.h"
#include "tests/base/descriptor_passing.h"
#include "tests/fabric/local/raw_end.h"

namespace esdp::fabric::local {
namespace {

class HostileTest : public ::testing::Test {
 protected:
  HostileTest() {
    const char* const text = std::getenv("ESDP_SEED");
    const uint64_t seed = text == nullptr ? 1 : std::strtoull(text, nullptr, 0);
    RecordProperty("seed", std::to_string(seed));
    random_ = Random(seed);
  }

  // The next slot of that lap, well formed or nearly.
  void PutSlot(RawEnd& end, uint64_t number) {
    Slot& slot = end.block().slots[number % kSlots];
    const bool honest = random_.Between(0, 3) != 0;
    const uint64_t kind = honest ? random_.Between(1, 6) : random_.Between(0, 255);
    const uint64_t flags = honest ? random_.Between(0, 1) : random_.Between(0, 255);
    const uint64_t bytes = honest ? random_.Between(0, kInlineMax) : random_.Next() & 0xffff;
    const uint64_t in_ring =
        random_.Between(0, 1) == 0 ? random_.Between(0, kPieceMax) : random_.Between(0, 2000);
    const uint64_t carried = (flags & kInRing) != 0 ? in_ring : bytes;
    const uint32_t length =
        honest ? static_cast<uint32_t>(carried) : static_cast<uint32_t>(random_.Next());
    const RemoteRange shown = victim_.shown();
    const uint64_t key = random_.Between(0, 3) != 0 ? shown.key : random_.Next() & 0xffffffff;
    const uint64_t address = random_.Between(0, 3) != 0 ? random_.Between(0, Victim::kShown + 8)
                                                        : shown.address - random_.Next();
    slot.words[1] = length | key << 32;
    slot.words[2] = address;
    slot.words[kPayloadWord] =
        honest ? random_.Between(0, kRingBytes - kPieceMax) | in_ring << 32 : random_.Next();
    slot.words[0] =
        static_cast<uint32_t>(number / kSlots + 1) | kind << 32 | flags << 40 | bytes << 48;
    end.block().published = number + 1;
  }

  void ScribbleWords(RawEnd& end) {
    Block& block = end.block();
    for (uint64_t i = random_.Between(1, 8); i > 0; --i) {
      const std::array<std::atomic<uint64_t>*, 6> words{&block.armed,     &block.starved,
                                                        &block.end,       &block.taken,
                                                        &block.published, &block.messages};
      const uint64_t value = random_.Between(0, 1) == 0 ? random_.Between(0, 70) : random_.Next();
      *words[random_.Between(0, words.size() - 1)] = value;
    }
  }

  Random random_{1};
  Victim victim_;
};

TEST_F(HostileTest, RandomBlocksEndTheirOwnConnection) {
  for (int life = 0; life < 200; ++life) {
    RawEnd end = victim_.Meet();
    std::byte* const base = end.memory.mapping.base();
    for (int round = 0; round < 50 && !victim_.ended(); ++round) {
      for (int i = 0; i < 100; ++i) {
        const uint64_t limit = random_.Between(0, 1) == 0 ? offsetof(Block, ring) : sizeof(Block);
        base[random_.Between(0, limit - 1)] = static_cast<std::byte>(random_.Next());
      }
      for (uint32_t i = 0; i < kSlots; ++i) {  // so that some are looked at
        auto& first = end.block().slots[i].words[0];
        first = (first & ~uint64_t{0xffffffff}) | random_.Between(1, 3);
      }
      victim_.Poll();
    }
    ASSERT_TRUE(victim_.NothingElseHasChanged()) << "life " << life;
  }
}

TEST_F(HostileTest, SlotsThatAreNearlyRightReachNothingThatWasNotShown) {
  int endings = 0;
  for (int life = 0; life < 400; ++life) {
    RawEnd end = victim_.Meet();
    for (uint64_t number = 0; number < 2'000 && !victim_.ended();) {
      for (uint64_t batch = random_.Between(1, kSlots); batch > 0; --batch) PutSlot(end, number++);
      victim_.Poll();
      // So that answers have room.
      if (random_.Between(0, 3) == 0) end.block().taken = random_.Between(0, 6);
    }
    endings += victim_.ended();
    ASSERT_TRUE(victim_.NothingElseHasChanged()) << "life " << life;
  }
  EXPECT_GT(endings, 300);
  EXPECT_TRUE(victim_.has_been_lent());
}

TEST_F(HostileTest, WordsThatContradictThemselvesKeepNobodyAwake) {
  for (int life = 0; life < 100; ++life) {
    RawEnd end = victim_.Meet();
    for (int round = 0; round < 50 && !victim_.ended(); ++round) {
      ScribbleWords(end);
      victim_.Poll();
    }
    for (int i = 0; i < 40; ++i) victim_.Poll();
    pollfd descriptor{victim_.fabric().fd(), POLLIN, 0};
    EXPECT_EQ(poll(&descriptor, 1, 0), 0) << "life " << life;
  }
}

TEST_F(HostileTest, APeerThatWakesWithoutEndHoldsUpNoPoll) {
  RawEnd end = victim_.Meet();
  for (int i = 0; i < 200; ++i) {
    while (send(end.socket.number(), "w", 1, MSG_DONTWAIT) == 1) {
    }
    victim_.Poll();
  }
  EXPECT_FALSE(victim_.ended());
}

TEST_F(HostileTest, AMessageThatIsNeverFinishedWaits) {
  RawEnd end = victim_.Meet();
  Slot& slot = end.block().slots[0];
  slot.words[1] = 900;
  slot.words[0] = 1 | uint64_t{1} << 32 | uint64_t{10} << 48;
  for (int i = 0; i < 20; ++i) victim_.Poll();
  EXPECT_FALSE(victim_.ended());
  end.socket = {};
  for (int i = 0; i < 20; ++i) victim_.Poll();
  EXPECT_TRUE(victim_.ended());
}

// This peer may not be read: what it says of its memory is not even looked for.
TEST_F(HostileTest, AWriteOfBytesThatLieNowhereEndsTheConnection) {
  const std::vector<std::vector<uint64_t>> sources = {
      {}, {0, 0x1000, 100}, {7, 0, 100}, {0, 0, 50, 0, 0, 51}, {0, 0, ~uint64_t{0}}, {1, 2}};
  for (const std::vector<uint64_t>& words : sources) {
    RawEnd end = victim_.Meet();
    Slot& slot = end.block().slots[0];
    for (size_t i = 0; i < words.size(); ++i) slot.words[kPayloadWord + i] = words[i];
    slot.words[1] = 100 | uint64_t{victim_.shown().key} << 32;
    slot.words[2] = victim_.shown().address;
    slot.words[0] = 1 | uint64_t{6} << 32 | uint64_t{8 * words.size()} << 48;
    for (int i = 0; i < 40 && !victim_.ended(); ++i) victim_.Poll();
    EXPECT_TRUE(victim_.ended()) << words.size();
  }
  EXPECT_TRUE(victim_.NothingElseHasChanged());
}

// --- files that are passed ---

class HostileFileTest : public HostileTest {
 protected:
  struct Message {
    uint64_t kind = 1;
    uint64_t number = 1;
    uint64_t length = kBytes;
  };
  static constexpr uint64_t kBytes = 8192;

  static bool Send(RawEnd& end, const Message& message, const Descriptor* file,
                   size_t bytes = sizeof(Message)) {
    ++end.block().messages;
    return SendUntold(end, message, file, bytes);
  }
  static bool SendUntold(const RawEnd& end, const Message& message, const Descriptor* file,
                         size_t bytes = sizeof(Message)) {
    return SendMessage(end.socket.number(), std::as_bytes(std::span(&message, 1)).first(bytes),
                       file);
  }
  bool Ends() {
    for (int i = 0; i < 40 && !victim_.ended(); ++i) victim_.Poll();
    return victim_.ended();
  }
  bool EndsBy(const Message& message, const Descriptor* file, size_t bytes = sizeof(Message)) {
    RawEnd end = victim_.Meet();
    EXPECT_TRUE(Send(end, message, file, bytes));
    return Ends();
  }

  const WritableMemory sealed_ = *MakeWritableMemory(kBytes, 0);
};

TEST_F(HostileFileTest, WhatIsNoSealedMemoryOfThatLengthEndsTheConnection) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const Descriptor pipe(ends[0]);
  const Descriptor other(ends[1]);
  const Descriptor unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.number(), kBytes), 0);
  const Descriptor shrinks(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(shrinks.number(), kBytes), 0);
  ASSERT_EQ(fcntl(shrinks.number(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
  const Descriptor folder(open("/proc", O_RDONLY | O_CLOEXEC));
  const size_t before = OpenDescriptors();
  for (const Descriptor* file : {&pipe, &unsealed, &shrinks, &folder}) {
    EXPECT_TRUE(EndsBy({}, file));
  }
  for (const uint64_t length : {uint64_t{0}, kBytes - 1, kBytes + 1, 2 * kBytes, ~uint64_t{0}}) {
    EXPECT_TRUE(EndsBy({.length = length}, &sealed_.file)) << length;
  }
  EXPECT_LE(OpenDescriptors(), before + 4) << "those of the last connection";
  EXPECT_TRUE(victim_.NothingElseHasChanged());
}

TEST_F(HostileFileTest, AMessageThatCannotBeEndsTheConnection) {
  EXPECT_TRUE(EndsBy({}, nullptr)) << "no file";
  EXPECT_TRUE(EndsBy({.number = 0}, &sealed_.file));
  EXPECT_TRUE(EndsBy({.kind = 3}, &sealed_.file));
  EXPECT_TRUE(EndsBy({.kind = 2}, nullptr)) << "taken back, and never passed";
  EXPECT_TRUE(EndsBy({.kind = 2}, &sealed_.file));
  EXPECT_TRUE(EndsBy({}, &sealed_.file, 1)) << "a file with what only wakes";
  EXPECT_TRUE(EndsBy({}, nullptr, 7));
  RawEnd end = victim_.Meet();
  EXPECT_TRUE(Send(end, {}, &sealed_.file));
  EXPECT_TRUE(Send(end, {}, &sealed_.file)) << "the same number";
  EXPECT_TRUE(Ends());
}

TEST_F(HostileFileTest, AFileThatWasNotToldOfIsNotTaken) {
  const RawEnd one = victim_.Meet();
  const size_t before = OpenDescriptors();
  EXPECT_TRUE(SendUntold(one, {}, &sealed_.file, 1)) << "with what only wakes";
  EXPECT_FALSE(Ends());
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_TRUE(SendUntold(one, {}, &sealed_.file));
  EXPECT_TRUE(Ends());
  EXPECT_LE(OpenDescriptors(), before);
}

TEST_F(HostileFileTest, AFloodOfFilesEndsTheConnectionAndLeavesNoDescriptor) {
  const size_t before = OpenDescriptors();
  {
    RawEnd end = victim_.Meet();
    for (uint64_t number = 1; number <= 2 * PeerRegions::kRegionsMax && !victim_.ended();) {
      if (Send(end, {.number = number}, &sealed_.file)) {
        ++number;
      } else {
        victim_.Poll();
      }
    }
    EXPECT_TRUE(Ends());
  }
  EXPECT_LE(OpenDescriptors(), before + 1);
}

// Nothing of it is there before somebody reads it.
TEST_F(HostileFileTest, AFileBeyondTheBudgetIsNotMappedAndHarmsNobody) {
  const auto vast = MakeWritableMemory(PeerRegions::kBytesMax + 4096, 0);
  ASSERT_TRUE(vast.ok()) << vast.status();
  RawEnd end = victim_.Meet();
  ASSERT_TRUE(Send(end, {.length = PeerRegions::kBytesMax + 4096}, &vast->file));
  EXPECT_FALSE(Ends());
}

// --- before there is a connection -----------------------------------------------------------------

class HostileRequestTest : public HostileTest {
 protected:
  // Whatever was sent is taken in, or thrown away.
  void Settle() {
    for (int i = 0; i < 40; ++i) victim_.Poll();
  }
  bool IsTurnedAway(const Hello& hello, const Descriptor* block) {
    const uint32_t before = victim_.requests();
    const Descriptor socket = ConnectTo(victim_.address()).socket;
    EXPECT_TRUE(SendHello(socket.number(), hello, block));
    Settle();
    char word = 0;
    return victim_.requests() == before && recv(socket.number(), &word, 1, MSG_DONTWAIT) == 0;
  }
};

TEST_F(HostileRequestTest, ARequestThatClaimsWhatIsNotSoIsTurnedAway) {
  const WritableMemory memory = *Channel::MakeBlock();
  const Hello good = Victim::Request(victim_.address());
  EXPECT_TRUE(IsTurnedAway(good, nullptr)) << "without a block";
  Hello wrong = good;
  wrong.magic[0] = 'E';
  EXPECT_TRUE(IsTurnedAway(wrong, &memory.file)) << "of another protocol";
  wrong = good;
  wrong.layout += 1;
  EXPECT_TRUE(IsTurnedAway(wrong, &memory.file)) << "of another layout";
  wrong = good;
  wrong.kind = HelloKind::kAccept;
  EXPECT_TRUE(IsTurnedAway(wrong, &memory.file)) << "an answer";
  wrong = good;
  wrong.private_data_bytes = kPrivateDataMax + 1;
  EXPECT_TRUE(IsTurnedAway(wrong, &memory.file)) << "too much private data";
  wrong = good;
  wrong.to.port += 1;
  EXPECT_TRUE(IsTurnedAway(wrong, &memory.file)) << "for another port";
  wrong = good;
  wrong.from.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1};
  EXPECT_TRUE(IsTurnedAway(wrong, &memory.file)) << "from another host";
  wrong = good;
  wrong.from.port = 0;
  EXPECT_TRUE(IsTurnedAway(wrong, &memory.file)) << "from no port";
  EXPECT_FALSE(IsTurnedAway(good, &memory.file));
}

TEST_F(HostileRequestTest, RandomRequestsLeaveNothingBehind) {
  Settle();
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 300; ++i) {
    const Descriptor socket = ConnectTo(victim_.address()).socket;
    std::vector<char> bytes(random_.Between(0, 2 * sizeof(Hello)));
    for (char& byte : bytes) byte = static_cast<char>(random_.Next());
    (void)send(socket.number(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    victim_.Poll();
  }
  Settle();
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_EQ(victim_.requests(), 0u);
}

TEST_F(HostileRequestTest, AFloodOfDescriptorsIsClosed) {
  Settle();
  const size_t before = OpenDescriptors();
  const WritableMemory memory = *Channel::MakeBlock();
  for (const int count : {2, 4, 5, 64, 253}) {
    const Descriptor socket = ConnectTo(victim_.address()).socket;
    Hello hello = Victim::Request(victim_.address());
    std::vector<int> numbers(static_cast<size_t>(count), memory.file.number());
    ASSERT_TRUE(PassDescriptors(socket.number(), std::as_bytes(std::span(&hello, 1)), numbers));
    Settle();
    EXPECT_EQ(victim_.requests(), 0u) << count;
  }
  EXPECT_EQ(OpenDescriptors(), before + 1);
}

TEST_F(HostileRequestTest, MemoryThatIsNoBlockFailsTheAccept) {
  const Descriptor plain(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(plain.number(), sizeof(Block)), 0);
  EXPECT_FALSE(IsTurnedAway(Victim::Request(victim_.address()), &plain));
}

TEST_F(HostileRequestTest, ThoseThatSayNothingDoNotKeepOthersOut) {
  std::vector<Descriptor> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(ConnectTo(victim_.address()).socket);
  Settle();
  const RawEnd end = victim_.Meet();
  EXPECT_TRUE(end.socket.is_open());
}

}  // namespace
}  // namespace esdp::fabric::local
