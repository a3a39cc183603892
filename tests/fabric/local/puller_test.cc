// Windows that are shown, and reads of them without the peer's help.

#include <sys/mman.h>
#include <unistd.h>

#include <numeric>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "impl/fabric/local/read_puller.h"
#include "impl/fabric/local/write_puller.h"
#include "impl/fabric/soft/region_table.h"
#include "tests/fabric/local/channel_pair.h"

namespace esdp::fabric::local {
namespace {

constexpr uint32_t kKey = 0x5eed;
using Outcome = ReadPuller::Outcome;

// The peer is this process: its memory can be read by the same call.
class PullerTest : public ::testing::Test {
 protected:
  PullerTest() : pair_(MakeChannelPair()), process_(pair_[0]->socket()) {
    for (size_t i = 0; i < source_.size(); ++i)
      source_[i] = static_cast<std::byte>(i * 7 + i / 256);
    region_ = *regions_.Register(target_.data(), target_.size(), {.local_write = true});
  }

  WindowTable& shown() { return pair_[1]->windows(); }
  const WindowTable& seen() const { return pair_[0]->peers_windows(); }

  static ShownWindow Own(const std::byte* address, uint64_t length) {
    return {.address = reinterpret_cast<uint64_t>(address), .length = length};
  }

  // A read into pieces of the target.
  soft::SendSlot& Post(const std::vector<uint32_t>& lengths, uint64_t address = 0) {
    std::vector<ScatterEntry> entries;
    uint32_t at = 0;
    for (const uint32_t length : lengths) {
      entries.push_back({region_, target_.data() + at, length});
      at += length;
    }
    soft::SendSlot slot;
    slot.opcode = Opcode::kRead;
    slot.remote = {kKey, address};
    sends_.PushBack(slot, entries.data(), static_cast<uint32_t>(entries.size()), regions_);
    return sends_.At(sends_.end() - 1);
  }
  Outcome Pull(const soft::SendSlot& read, size_t budget = 1 << 20) {
    return puller_.Pull(read, sends_.entries(), seen(), process_, pair_[0]->peers_regions(),
                        budget);
  }
  bool HasCome(size_t from, size_t bytes) const {
    return std::equal(target_.begin(), target_.begin() + static_cast<ptrdiff_t>(bytes),
                      source_.begin() + static_cast<ptrdiff_t>(from));
  }

  std::array<std::unique_ptr<Channel>, 2> pair_;
  PeerProcess process_;
  std::vector<std::byte> source_ = std::vector<std::byte>(300'000);
  std::vector<std::byte> target_ = std::vector<std::byte>(300'000);
  soft::RegionTable regions_;
  RegionId region_ = RegionId::kNone;
  soft::WorkQueue<soft::SendSlot> sends_;
  ReadPuller puller_;
};

TEST_F(PullerTest, WhatIsShownIsReadIntoEveryEntry) {
  ASSERT_TRUE(Show(shown(), kKey, Own(source_.data(), source_.size())));
  EXPECT_EQ(Pull(Post({100, 0, 5000, 1, 70'000}, 1000)), Outcome::kDone);
  EXPECT_TRUE(HasCome(1000, 75'101));
}

TEST_F(PullerTest, MoreEntriesThanTheSystemTakesAtOnceAreReadOneAfterTheOther) {
  ASSERT_TRUE(Show(shown(), kKey, Own(source_.data(), source_.size())));
  EXPECT_EQ(Pull(Post(std::vector<uint32_t>(40, 1001))), Outcome::kDone);
  EXPECT_TRUE(HasCome(0, 40 * 1001));
}

TEST_F(PullerTest, NoMoreIsReadAtOnceThanTheBudgetAllows) {
  ASSERT_TRUE(Show(shown(), kKey, Own(source_.data(), source_.size())));
  const soft::SendSlot& read = Post({100'000, 50'000});
  EXPECT_EQ(Pull(read, 64'000), Outcome::kMore);
  EXPECT_EQ(target_[64'000], std::byte{0});
  EXPECT_EQ(Pull(read, 64'000), Outcome::kMore);
  EXPECT_EQ(Pull(read, 64'000), Outcome::kDone);
  EXPECT_TRUE(HasCome(0, 150'000));
}

TEST_F(PullerTest, WhatIsNotShownIsAskedFor) {
  EXPECT_EQ(Pull(Post({100})), Outcome::kAsk) << "no window";
  ASSERT_TRUE(Show(shown(), kKey, Own(source_.data(), 1000)));
  EXPECT_EQ(Pull(Post({1001})), Outcome::kAsk) << "too long";
  EXPECT_EQ(Pull(Post({1}, 1000)), Outcome::kAsk) << "behind it";
  EXPECT_EQ(Pull(Post({10}, ~uint64_t{0} - 4)), Outcome::kAsk) << "before it";
  EXPECT_EQ(Pull(Post({1000})), Outcome::kDone);
  Hide(shown(), kKey);
  EXPECT_EQ(Pull(Post({1000})), Outcome::kAsk) << "withdrawn";
}

TEST_F(PullerTest, AWindowThatIsWithdrawnInTheMiddleIsAskedFor) {
  ASSERT_TRUE(Show(shown(), kKey, Own(source_.data(), source_.size())));
  const soft::SendSlot& read = Post({150'000});
  EXPECT_EQ(Pull(read, 64'000), Outcome::kMore);
  Hide(shown(), kKey);
  EXPECT_EQ(Pull(read), Outcome::kAsk);
}

TEST_F(PullerTest, AWindowOverMemoryThatIsNotThereIsAskedFor) {
  for (const uint64_t wild : {uint64_t{0}, uint64_t{16}, ~uint64_t{0} - 4096, uint64_t{1} << 63}) {
    ASSERT_TRUE(Show(shown(), kKey, Own(reinterpret_cast<const std::byte*>(wild), ~uint64_t{0})));
    EXPECT_EQ(Pull(Post({5000})), Outcome::kAsk) << wild;
    Hide(shown(), kKey);
  }
  EXPECT_EQ(target_[0], std::byte{0});
}

TEST_F(PullerTest, APeerThatMayNotBeReadIsAsked) {
  ASSERT_TRUE(Show(shown(), kKey, Own(source_.data(), source_.size())));
  process_.ForbidReading();
  EXPECT_EQ(Pull(Post({100})), Outcome::kAsk);
}

class FilePullerTest : public PullerTest {
 protected:
  static constexpr size_t kFileBytes = 3 << 20;
  static constexpr uint64_t kNumber = 77;

  FilePullerTest() : memory_(*MakeWritableMemory(kFileBytes, 0)) {
    process_.ForbidReading();
    for (size_t i = 0; i < source_.size(); ++i) memory_.mapping.base()[kAt + i] = source_[i];
    own_.number = kNumber;
    own_.file = Descriptor(dup(memory_.file.number()));
    own_.file_bytes = kFileBytes;
    own_.base = memory_.mapping.base();
    EXPECT_TRUE(Show(shown(), kKey, {.region = kNumber, .address = kAt, .length = 300'000}));
  }

  static constexpr size_t kAt = (1 << 20) - 5000;  // over the end of what is made resident at once

  WritableMemory memory_;
  SharedRegion own_;
};

TEST_F(FilePullerTest, AWindowOfAFileIsCopiedWithoutTheSystem) {
  ASSERT_TRUE(pair_[1]->Pass(own_));
  ASSERT_TRUE(pair_[0]->DrainSocket(true));
  EXPECT_EQ(Pull(Post({100, 0, 5000, 1, 70'000}, 1000)), Outcome::kDone);
  EXPECT_TRUE(HasCome(1000, 75'101));
}

TEST_F(FilePullerTest, AFileThatHasNotComeYetIsLookedForBeforeThePeerIsAsked) {
  ASSERT_TRUE(pair_[1]->Pass(own_));
  const soft::SendSlot& read = Post({100'000});
  EXPECT_EQ(Pull(read), Outcome::kNotPassed);
  ASSERT_TRUE(pair_[0]->DrainSocket(true));
  EXPECT_EQ(Pull(read), Outcome::kDone);
  EXPECT_TRUE(HasCome(0, 100'000));
}

TEST_F(FilePullerTest, AWindowThatIsWithdrawnDuringTheCopyIsAskedFor) {
  ASSERT_TRUE(pair_[1]->Pass(own_));
  ASSERT_TRUE(pair_[0]->DrainSocket(true));
  const soft::SendSlot& read = Post({150'000});
  EXPECT_EQ(Pull(read, 64'000), Outcome::kMore);
  Hide(shown(), kKey);
  EXPECT_EQ(Pull(read), Outcome::kAsk);
  EXPECT_EQ(Pull(Post({100})), Outcome::kAsk);
}

TEST_F(FilePullerTest, AWindowBehindTheFilesEndIsAskedFor) {
  ASSERT_TRUE(pair_[1]->Pass(own_));
  ASSERT_TRUE(pair_[0]->DrainSocket(true));
  for (const uint64_t at : {kFileBytes - 10, kFileBytes, ~uint64_t{0} - 5}) {
    Hide(shown(), kKey);
    ASSERT_TRUE(Show(shown(), kKey, {.region = kNumber, .address = at, .length = 1000}));
    EXPECT_EQ(Pull(Post({1000})), Outcome::kAsk) << at;
  }
}

TEST_F(FilePullerTest, ARegionThatIsTakenBackIsUnmapped) {
  ASSERT_TRUE(pair_[1]->Pass(own_));
  ASSERT_TRUE(pair_[1]->Pass(own_)) << "once is enough";
  ASSERT_TRUE(pair_[0]->DrainSocket(true));
  EXPECT_EQ(pair_[0]->peers_regions().size(), 1u);
  pair_[1]->TakeBack(kNumber);
  pair_[1]->TakeBack(kNumber);
  ASSERT_TRUE(pair_[0]->DrainSocket(true));
  EXPECT_EQ(pair_[0]->peers_regions().size(), 0u);
  EXPECT_FALSE(pair_[0]->IsBroken());
}

// A write of it would be one of bytes that are not there.
TEST_F(FilePullerTest, WhatTheOtherEndWouldNotMapIsNotPassed) {
  ASSERT_TRUE(pair_[1]->Pass(own_));
  own_.number = kNumber + 1;
  own_.file_bytes = PeerRegions::kBytesMax - kFileBytes + 1;
  EXPECT_FALSE(pair_[1]->Pass(own_));
  pair_[1]->TakeBack(kNumber);
  EXPECT_TRUE(pair_[1]->Pass(own_)) << "there is room again";
}

TEST_F(FilePullerTest, ARegionThatCouldNotBeTakenBackIsCountedAsOneThatIsThere) {
  while (pair_[1]->Pass(own_)) ++own_.number;  // until the socket is full
  ASSERT_GT(own_.number, kNumber);
  pair_[1]->TakeBack(kNumber);
  ASSERT_TRUE(pair_[0]->DrainSocket(true));
  for (size_t i = 0; i < 2 * PeerRegions::kRegionsMax; ++i) {
    if (pair_[1]->Pass(own_)) ++own_.number;
    ASSERT_TRUE(pair_[0]->DrainSocket(true));
  }
  EXPECT_EQ(pair_[0]->peers_regions().size(), PeerRegions::kRegionsMax);
  EXPECT_FALSE(pair_[0]->IsBroken());
}

// --- writes ---

class WritePullerTest : public FilePullerTest {
 protected:
  using Outcome = WritePuller::Outcome;

  WritePullerTest() { process_ = PeerProcess(pair_[0]->socket()); }

  bool Begin(const std::vector<WriteSource>& sources, uint32_t length) {
    return writes_.Begin(std::as_bytes(std::span(sources)), length);
  }
  Outcome Take(size_t length, size_t budget = 1 << 20) {
    const size_t pulled = writes_.pulled();
    return writes_.Pull(Bytes(target_.data() + pulled, length - pulled), process_,
                        pair_[0]->peers_regions(), budget);
  }
  WriteSource Here(size_t from, uint64_t length) const {
    return {.address = reinterpret_cast<uint64_t>(source_.data() + from), .length = length};
  }
  static WriteSource InFile(size_t from, uint64_t length) {
    return {.region = kNumber, .address = kAt + from, .length = length};
  }

  WritePuller writes_;
};

TEST_F(WritePullerTest, BytesComeFromFilesAndFromTheProcess) {
  ASSERT_TRUE(pair_[1]->Pass(own_));
  ASSERT_TRUE(pair_[0]->DrainSocket(true));
  ASSERT_TRUE(
      Begin({Here(0, 1000), InFile(1000, 70'000), Here(71'000, 1), InFile(71'001, 9)}, 71'010));
  EXPECT_EQ(Take(71'010), Outcome::kDone);
  EXPECT_TRUE(HasCome(0, 71'010));
}

TEST_F(WritePullerTest, NoMoreIsTakenAtOnceThanTheBudgetAllows) {
  ASSERT_TRUE(Begin({Here(0, 100'000), Here(100'000, 50'000)}, 150'000));
  EXPECT_EQ(Take(150'000, 120'000), Outcome::kMore);
  EXPECT_EQ(writes_.pulled(), 120'000u);
  EXPECT_EQ(target_[120'000], std::byte{0});
  EXPECT_EQ(Take(150'000, 120'000), Outcome::kDone);
  EXPECT_TRUE(HasCome(0, 150'000));
}

TEST_F(WritePullerTest, SourcesThatAreNoneAreRefused) {
  EXPECT_FALSE(Begin({}, 0));
  EXPECT_FALSE(Begin({}, 5));
  EXPECT_FALSE(Begin({Here(0, 4)}, 5)) << "too few bytes";
  EXPECT_FALSE(Begin({Here(0, 4), Here(0, 2)}, 5)) << "too many";
  EXPECT_FALSE(Begin({Here(0, 5), Here(0, 0)}, 5)) << "nothing";
  EXPECT_FALSE(Begin({Here(0, 6), Here(0, ~uint64_t{0})}, 5)) << "a sum that wraps";
  EXPECT_FALSE(
      Begin(std::vector<WriteSource>(kWriteSourcesMax + 1, Here(0, 1)), kWriteSourcesMax + 1));
  EXPECT_FALSE(writes_.Begin(ConstBytes(source_).first(sizeof(WriteSource) + 1), 1));
}

TEST_F(WritePullerTest, BytesThatAreNotThereFail) {
  ASSERT_TRUE(Begin({InFile(0, 100)}, 100));
  EXPECT_EQ(Take(100), Outcome::kNotPassed);
  ASSERT_TRUE(pair_[1]->Pass(own_));
  ASSERT_TRUE(pair_[0]->DrainSocket(true));
  EXPECT_EQ(Take(100), Outcome::kDone);
  ASSERT_TRUE(Begin({{.region = kNumber, .address = kFileBytes, .length = 100}}, 100));
  EXPECT_EQ(Take(100), Outcome::kFailed) << "behind the file's end";
  ASSERT_TRUE(Begin({{.address = 16, .length = 100}}, 100));
  EXPECT_EQ(Take(100), Outcome::kFailed) << "no memory";
  process_.ForbidReading();
  ASSERT_TRUE(Begin({Here(0, 100)}, 100));
  EXPECT_EQ(Take(100), Outcome::kFailed) << "not to be read";
}

// --- windows, proofs ---

TEST_F(PullerTest, SoManyWindowsAreShownAndTheirPlacesAreUsedAgain) {
  for (uint32_t key = 1; key <= kWindowsShown; ++key) {
    EXPECT_TRUE(Show(shown(), key, Own(source_.data(), key)));
  }
  EXPECT_FALSE(Show(shown(), 99, Own(source_.data(), 1)));
  Hide(shown(), 7);
  EXPECT_TRUE(Show(shown(), 99, Own(source_.data(), 1)));
  EXPECT_FALSE(FindShown(seen(), 7).has_value());
  EXPECT_EQ(FindShown(seen(), 8)->length, 8u);
  EXPECT_FALSE(FindShown(seen(), 0).has_value());
}

TEST_F(PullerTest, OnlyTheNonceItselfIsAProof) {
  const Nonce nonce{0x1234567890abcdef, 0xfedcba0987654321};
  EXPECT_FALSE(pair_[0]->IsProved(nonce));
  const auto read = process_.ReadNonce(reinterpret_cast<uint64_t>(&nonce));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read, nonce);
  pair_[1]->Prove({nonce[0], nonce[1] + 1});
  EXPECT_FALSE(pair_[0]->IsProved(nonce));
  pair_[1]->Prove(*read);
  EXPECT_TRUE(pair_[0]->IsProved(nonce));
  EXPECT_FALSE(process_.ReadNonce(16).has_value());
}

}  // namespace
}  // namespace esdp::fabric::local
