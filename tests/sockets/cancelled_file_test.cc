#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "esdp/context.h"
#include "esdp/file.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"
#include "tests/sockets/scripted_files.h"

// Transfers of files that are cancelled, or late, in whatever state they are: each ends once, the bytes
// are those of the file in their order, and no slot is lost. A pool of four slots would be empty after
// the first ones that kept theirs.

namespace esdp::contract {
namespace {

constexpr int kMoments = 12;

class CancelledFileTest : public FileFaultTest {
 protected:
  void SetUp() override {
    FileFaultTest::SetUp();
    Fill(8 * kSlot);
  }
  // So many steps of whatever moves: the operation is read, on its way, or has ended by then.
  void Move(int steps) {
    int done = 0;
    ASSERT_TRUE(Pump([&] { return done++ >= steps; }));
  }
  // All that comes until there are so many bytes: those of the file, from this offset on.
  void ExpectNext(uint64_t from, uint64_t to) {
    if (from == to) return;
    Memory& place = Make(server_, to - from);
    EndWell(server_, server_.Recv(place.All(), RecvFlags::kWaitAll), to - from);
    EXPECT_TRUE(SameBytes(place.bytes, absl::MakeConstSpan(content_).subspan(from, to - from)));
  }
  // A whole one goes, through all the slots there are.
  void ExpectWhole() {
    const OpId receive = TakeAll(OnShortFile::kAbort);
    EndWell(client_, PostAll(OnShortFile::kAbort), content_.size());
    EndWell(server_, receive, content_.size());
    EXPECT_TRUE(SameBytes(Written(), content_));
  }
};
INSTANTIATE_TEST_SUITE_P(On, CancelledFileTest, ::testing::ValuesIn(Worlds()), ParamName);

TEST_P(CancelledFileTest, ASendThatIsCancelledAtAnyMomentLeavesAPrefixAndTheStreamWhole) {
  for (int moment = 0; moment < kMoments; ++moment) {
    const OpId op = PostAll(OnShortFile::kStop);
    Memory& first = Make(server_, kSlot + 1);
    const OpId receive = server_.Recv(first.All());
    Move(moment);
    (void)client_.socket.Cancel(op);  // NotFound: it has ended
    // What is on its way already goes: somebody has to take it.
    uint64_t arrived = 0;
    std::vector<std::byte> all;
    Memory& more = Make(server_, 8 * kSlot);
    OpId next = receive;
    Memory* place = &first;
    const auto take = [&] {
      if (server_.Find(next) == nullptr) return;
      const Event event = End(server_, next);
      EXPECT_TRUE(event.ok());
      all.insert(all.end(), place->bytes.begin(),
                 place->bytes.begin() + static_cast<ptrdiff_t>(event.bytes));
      arrived += event.bytes;
      place = &more;
      next = server_.Recv(more.All());
    };
    ASSERT_TRUE(Pump([&] { return take(), client_.Find(op) != nullptr; }));
    const Event event = End(client_, op);
    EXPECT_TRUE(event.ok() || event.kind == ErrorKind::kCancelled);
    // One byte behind it tells that nothing of the file is still to come.
    Memory& last = Make(client_, 1);
    last.bytes[0] = std::byte{0x5a};
    EndWell(client_, client_.Send(last.All()), 1);
    ASSERT_TRUE(Pump([&] { return take(), arrived == event.bytes + 1; }));
    EXPECT_EQ(all.back(), std::byte{0x5a});
    EXPECT_TRUE(SameBytes(absl::MakeConstSpan(all).first(event.bytes),
                          absl::MakeConstSpan(content_).first(event.bytes)));
    EXPECT_TRUE(server_.socket.Cancel(next).ok());
    EXPECT_EQ(End(server_, next).bytes, 0u);
  }
  ExpectWhole();
}

TEST_P(CancelledFileTest, AReceiveThatIsCancelledAtAnyMomentHasItsPrefixAndTheRestIsTheNextOnes) {
  for (int moment = 0; moment < kMoments; ++moment) {
    const OpId op = TakeAll(OnShortFile::kStop);
    const OpId sent = PostAll(OnShortFile::kAbort);
    Move(moment);
    (void)server_.socket.Cancel(op);  // NotFound: it has ended
    const Event event = End(server_, op);
    EXPECT_TRUE(event.ok() || event.kind == ErrorKind::kCancelled);
    EXPECT_EQ(event.file_offset, event.bytes);
    EXPECT_TRUE(SameBytes(Written(), absl::MakeConstSpan(content_).first(event.bytes)));
    ExpectNext(event.bytes, content_.size());
    EndWell(client_, sent, content_.size());
  }
  ExpectWhole();
}

TEST_P(CancelledFileTest, AReceiveThatIsLateAtAnyMomentHasItsPrefixAndTheRestIsTheNextOnes) {
  for (int moment = 0; moment < kMoments; ++moment) {
    close(target_);
    target_ = memfd_create("target", MFD_CLOEXEC);
    const absl::Time soon = server_.context.After(absl::Microseconds(20 * moment * moment));
    const OpId op = server_.Accepted(server_.socket.RecvFile(
        {.fd = target_, .length = content_.size(), .on_short = OnShortFile::kStop},
        {.queue = server_.queue, .deadline = soon}));
    const OpId sent = PostAll(OnShortFile::kAbort);
    const Event event = End(server_, op);
    EXPECT_TRUE(event.ok() || event.kind == ErrorKind::kDeadlineExceeded);
    EXPECT_EQ(event.file_offset, event.bytes);
    EXPECT_TRUE(SameBytes(Written(), absl::MakeConstSpan(content_).first(event.bytes)));
    ExpectNext(event.bytes, content_.size());
    EndWell(client_, sent, content_.size());
  }
  ExpectWhole();
}

TEST_P(CancelledFileTest, AMediumThatIsFullAtAnySlotStopsWithThePrefixThatIsWritten) {
  for (const int error : {ENOSPC, EDQUOT, EFBIG, EIO}) {
    for (uint64_t slot = 0; slot < 8; ++slot) {
      receiving_.write = [&](std::span<const std::byte>, uint64_t offset) -> int64_t {
        return offset >= slot * kSlot ? -error : 0;
      };
      const OpId op = TakeAll(OnShortFile::kStop);
      const OpId sent = PostAll(OnShortFile::kAbort);
      const Event event = End(server_, op);
      EXPECT_EQ(event.kind, error == EIO ? ErrorKind::kFile : ErrorKind::kNoSpace);
      EXPECT_EQ(event.sys_errno, error);
      EXPECT_EQ(event.file_offset, slot * kSlot);
      EXPECT_TRUE(SameBytes(Written(), absl::MakeConstSpan(content_).first(slot * kSlot)));
      ExpectNext(event.bytes, content_.size());
      EndWell(client_, sent, content_.size());
    }
  }
  receiving_.write = nullptr;
  ExpectWhole();
}

TEST_P(CancelledFileTest, AReadThatFailsAtAnySlotStopsWithTheExactCount) {
  for (const FileStrategy strategy :
       {FileStrategy::kPipelined, FileStrategy::kPlain, FileStrategy::kDirect}) {
    for (uint64_t slot = 0; slot < 8; ++slot) {
      sending_.read = [&](int, std::span<std::byte>, uint64_t offset) -> int64_t {
        return offset >= slot * kSlot ? -EIO : 0;
      };
      const OpId op = PostAll(OnShortFile::kStop, strategy);
      ExpectNext(0, slot * kSlot);
      const Event event = End(client_, op);
      EXPECT_EQ(event.kind, ErrorKind::kFile);
      EXPECT_EQ(event.sys_errno, EIO);
      EXPECT_EQ(event.bytes, slot * kSlot);
    }
  }
  sending_.read = nullptr;
  ExpectWhole();
}

}  // namespace
}  // namespace esdp::contract
