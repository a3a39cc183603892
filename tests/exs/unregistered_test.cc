#include <algorithm>
#include <array>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "impl/exs/library.h"
#include "tests/exs/pair.h"

namespace esdp::exs {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;

// Large transfers of memory that nobody registered: in pieces, of which few are registered at a
// time.
class UnregisteredTest : public ExsTest {
 protected:
  void SetUp() override {
    ExsTest::SetUp();
    ASSERT_NO_FATAL_FAILURE(Connect());
    other_ = exs_qcreate(64);
    pins().TakeMost();
  }
  void TearDown() override {
    pins().SetLimit(UINT64_MAX);
    ExsTest::TearDown();
    EXPECT_EQ(0, exs_qdelete(other_));
    EXPECT_EQ(0u, pins().now()) << "is registered still";
  }
  static Pins& pins() { return Library::Current()->pins(); }
  void PostSend(const std::vector<uint8_t>& from, uintptr_t handle = 1, int flags = 0) {
    ASSERT_EQ(0, exs_send(client_, from.data(), from.size(), flags, queue_, Handle(handle),
                          EXS_MHANDLE_UNREGISTERED));
  }
  void PostReceive(std::vector<uint8_t>& to, uintptr_t handle = 1, int flags = MSG_WAITALL) {
    ASSERT_EQ(0, exs_recv(server_, to.data(), to.size(), flags, other_, Handle(handle),
                          EXS_MHANDLE_UNREGISTERED));
  }
  static uint64_t LengthOf(const exs_event_t& event) {
    return event.exs_evt_union.exs_evt_xfer.exs_evt_length;
  }
  // A socket's transfers that were copied, as their memory could not be registered.
  static uint64_t Failures(int fd) {
    uint64_t count = 0;
    socklen_t len = sizeof(count);
    EXPECT_EQ(0, exs_getsockopt(fd, SOL_EXSX, EXSX_SO_REGISTER_FAILURES, &count, &len));
    return count;
  }

  exs_qhandle_t other_ = EXS_QHANDLE_INVALID;
};

TEST_F(UnregisteredTest, WhateverItsLengthASendAndAReceiveRegisterOneMebibyteEachAtATime) {
  const std::vector<uint8_t> from = Pattern(20 * kMiB + 12345);
  std::vector<uint8_t> to(from.size());
  ASSERT_NO_FATAL_FAILURE(PostReceive(to));
  ASSERT_NO_FATAL_FAILURE(PostSend(from));
  const exs_event_t sent = Next();
  const exs_event_t received = Next(other_);
  for (const exs_event_t& event : {sent, received}) {
    EXPECT_EQ(0, event.exs_evt_errno);
    EXPECT_EQ(from.size(), LengthOf(event));
    EXPECT_NE(0u, event.exs_evt_flags & EXSX_EVF_ZEROCOPY);
  }
  EXPECT_EQ(from, to);
  EXPECT_LE(pins().TakeMost(), 2 * kMiB);
  EXPECT_EQ(0u, Failures(client_) + Failures(server_));
}

TEST_F(UnregisteredTest, ManyPostsAreBoundedTogetherAndKeepTheirOrder) {
  std::vector<std::vector<uint8_t>> from;
  std::vector<std::vector<uint8_t>> to;
  for (size_t i = 0; i < 24; ++i) {
    const size_t size = i % 4 == 0 ? 3 * kMiB : i % 4 == 1 ? 200'000 : i % 4 == 2 ? 900'000 : 100;
    from.push_back(Pattern(size, static_cast<uint8_t>(i)));
    to.emplace_back(size);
    ASSERT_NO_FATAL_FAILURE(PostSend(from[i], i));
    ASSERT_NO_FATAL_FAILURE(PostReceive(to[i], i));
  }
  for (size_t i = 0; i < 24; ++i) {
    const exs_event_t sent = Next();
    const exs_event_t received = Next(other_);
    EXPECT_EQ(Handle(i), sent.exs_evt_ahandle);
    EXPECT_EQ(Handle(i), received.exs_evt_ahandle);
    EXPECT_EQ(from[i].size(), LengthOf(sent));
    EXPECT_EQ(from[i].size(), LengthOf(received));
    EXPECT_EQ(from[i], to[i]) << i;
  }
  EXPECT_LE(pins().TakeMost(), 10 * kMiB);
}

TEST_F(UnregisteredTest, WhatCannotBeRegisteredIsCopiedAndCounted) {
  for (const uint64_t limit : {uint64_t{0}, uint64_t{64 * 1024}, uint64_t{300'000}}) {
    SCOPED_TRACE(limit);
    pins().SetLimit(limit);
    const uint64_t sends = Failures(client_);
    const uint64_t receives = Failures(server_);
    for (const size_t size : {size_t{100'000}, size_t{800'000}, size_t{5 * kMiB}}) {
      const std::vector<uint8_t> from = Pattern(size);
      std::vector<uint8_t> to(from.size());
      ASSERT_NO_FATAL_FAILURE(PostSend(from, 1));
      ASSERT_NO_FATAL_FAILURE(PostSend(from, 2));
      ASSERT_NO_FATAL_FAILURE(PostReceive(to, 3));
      EXPECT_EQ(0, Next(other_).exs_evt_errno);
      EXPECT_EQ(from, to);
      std::ranges::fill(to, uint8_t{0});
      ASSERT_NO_FATAL_FAILURE(PostReceive(to, 4));
      EXPECT_EQ(0, Next(other_).exs_evt_errno);
      EXPECT_EQ(from, to);
      for (const uintptr_t handle : {1u, 2u}) {
        const exs_event_t sent = Next();
        EXPECT_EQ(Handle(handle), sent.exs_evt_ahandle);
        EXPECT_EQ(0, sent.exs_evt_errno);
        EXPECT_EQ(size, LengthOf(sent));
        if (size > limit) {
          EXPECT_NE(0u, sent.exs_evt_flags & EXSX_EVF_COPIED);
        }
      }
    }
    EXPECT_GT(Failures(client_), sends);
    EXPECT_GT(Failures(server_), receives);
    EXPECT_LE(pins().TakeMost(), limit);
  }
}

TEST_F(UnregisteredTest, WithoutWaitallAReceiveEndsWithWhatIsThere) {
  const std::vector<uint8_t> from = Pattern(70'000);
  for (const uint64_t limit : {UINT64_MAX, uint64_t{0}}) {
    pins().SetLimit(limit);
    std::vector<uint8_t> to(5 * kMiB);
    ASSERT_NO_FATAL_FAILURE(PostReceive(to, 1, 0));
    ASSERT_NO_FATAL_FAILURE(PostSend(from));
    uint64_t got = LengthOf(Next(other_));
    EXPECT_GT(got, 0u);
    while (got < from.size()) {
      std::vector<uint8_t> rest(kMiB);
      ASSERT_NO_FATAL_FAILURE(PostReceive(rest, 1, 0));
      const uint64_t more = LengthOf(Next(other_));
      std::copy_n(rest.begin(), more, to.begin() + static_cast<ptrdiff_t>(got));
      got += more;
    }
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin()));
    EXPECT_EQ(0, Next().exs_evt_errno);
  }
}

TEST_F(UnregisteredTest, TheEndOfTheStreamEndsAReceiveWithWhatHasCome) {
  const std::vector<uint8_t> from = Pattern(3 * kMiB + 5);
  std::vector<uint8_t> to(8 * kMiB);
  std::vector<uint8_t> behind(2 * kMiB);
  ASSERT_NO_FATAL_FAILURE(PostReceive(to, 1));
  ASSERT_NO_FATAL_FAILURE(PostReceive(behind, 2));
  ASSERT_NO_FATAL_FAILURE(PostSend(from));
  ASSERT_EQ(0, exs_shutdown(client_, EXS_SHUT_WR, 0, queue_, nullptr));
  const exs_event_t first = Next(other_);
  EXPECT_EQ(0, first.exs_evt_errno);
  EXPECT_EQ(from.size(), LengthOf(first));
  EXPECT_NE(0u, first.exs_evt_flags & EXSX_EVF_EOF);
  EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin()));
  const exs_event_t second = Next(other_);
  EXPECT_EQ(Handle(2), second.exs_evt_ahandle);
  EXPECT_EQ(0u, LengthOf(second));
  EXPECT_NE(0u, second.exs_evt_flags & EXSX_EVF_EOF);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(0, Next().exs_evt_errno);
}

TEST_F(UnregisteredTest, AnUrgentByteIsTheLastOfItsSendAndEndsTheReceiveThatGetsIt) {
  const std::vector<uint8_t> from = Pattern(3 * kMiB);
  const std::vector<uint8_t> more = Pattern(4 * kMiB, 9);
  std::vector<uint8_t> to(5 * kMiB);
  std::vector<uint8_t> rest(4 * kMiB);
  ASSERT_NO_FATAL_FAILURE(PostReceive(to, 1));
  ASSERT_NO_FATAL_FAILURE(PostReceive(rest, 2));
  ASSERT_NO_FATAL_FAILURE(PostSend(from, 1, MSG_OOB));
  ASSERT_NO_FATAL_FAILURE(PostSend(more, 2));
  const exs_event_t urgent = Next(other_);
  EXPECT_EQ(from.size(), LengthOf(urgent));
  EXPECT_NE(0u, urgent.exs_evt_flags & EXSX_EVF_URGENT);
  EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin()));
  EXPECT_EQ(more.size(), LengthOf(Next(other_)));
  EXPECT_EQ(more, rest);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(0, Next().exs_evt_errno);
}

TEST_F(UnregisteredTest, MessagesOfManyRangesAreSentAndReceivedInPieces) {
  std::vector<uint8_t> from = Pattern(9 * kMiB);
  std::vector<uint8_t> to(from.size());
  const exs_mhandle_t memory = exs_mregister(from.data(), from.size(), 0);
  ASSERT_GE(memory, 0);
  const std::array<size_t, 6> cuts = {0, 10, 3 * kMiB, 3 * kMiB, 5 * kMiB, 9 * kMiB};
  std::vector<exs_iovec_t> out;
  std::vector<exs_iovec_t> in;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const size_t length = cuts[i + 1] - cuts[i];
    out.push_back(
        {from.data() + cuts[i], length, i % 2 == 0 ? EXS_MHANDLE_UNREGISTERED : memory, 0, {}});
    in.push_back({to.data() + cuts[i], length, EXS_MHANDLE_UNREGISTERED, 0, {}});
  }
  for (const uint64_t limit : {UINT64_MAX, uint64_t{0}}) {
    pins().SetLimit(limit);
    std::ranges::fill(to, uint8_t{0});
    exs_msghdr_t sent = {out.data(), out.size(), {}};
    exs_msghdr_t received = {in.data(), in.size(), {}};
    ASSERT_EQ(0, exs_sendmsg(client_, &sent, 0, queue_, Handle(1)));
    ASSERT_EQ(0, exs_recvmsg(server_, &received, MSG_WAITALL, other_, Handle(2)));
    for (const exs_qhandle_t queue : {queue_, other_}) {
      const exs_event_t event = Next(queue);
      EXPECT_EQ(0, event.exs_evt_errno);
      EXPECT_EQ(from.size(), event.exs_evt_union.exs_evt_xfermsg.exs_evt_length);
    }
    EXPECT_EQ(from, to);
  }
  EXPECT_LE(pins().TakeMost(), 2 * kMiB);
  while (exs_mderegister(memory) != 0 && errno == EBUSY) absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(UnregisteredTest, ACancelEndsASendThatThePeerDoesNotReadAndWhatFollowsGoesOn) {
  const std::vector<uint8_t> from = Pattern(8 * kMiB);
  const std::vector<uint8_t> mark = Pattern(100'000, 200);
  for (const uint64_t limit : {UINT64_MAX, uint64_t{0}}) {
    pins().SetLimit(limit);
    ASSERT_NO_FATAL_FAILURE(PostSend(from, 1));
    ASSERT_NO_FATAL_FAILURE(PostSend(mark, 2));
    EXPECT_EQ(1, exs_cancel(client_, Handle(1), EXS_CAF_AHANDLE));
    const uint64_t most = 2 * kMiB;
    std::vector<uint8_t> to(most);
    ASSERT_NO_FATAL_FAILURE(PostReceive(to, 1, 0));
    uint64_t got = LengthOf(Next(other_));
    const exs_event_t stopped = Next();
    EXPECT_EQ(Handle(1), stopped.exs_evt_ahandle);
    EXPECT_EQ(ECANCELED, stopped.exs_evt_errno);
    ASSERT_LE(LengthOf(stopped) + mark.size(), most);
    while (got < LengthOf(stopped) + mark.size()) {
      std::vector<uint8_t> rest(most);
      ASSERT_NO_FATAL_FAILURE(PostReceive(rest, 1, 0));
      const uint64_t more = LengthOf(Next(other_));
      std::copy_n(rest.begin(), more, to.begin() + static_cast<ptrdiff_t>(got));
      got += more;
    }
    const auto at = to.begin() + static_cast<ptrdiff_t>(LengthOf(stopped));
    EXPECT_TRUE(std::equal(to.begin(), at, from.begin()));
    EXPECT_TRUE(std::equal(mark.begin(), mark.end(), at));
    EXPECT_EQ(0, Next().exs_evt_errno);
  }
}

TEST_F(UnregisteredTest, ACancelOfAReceiveTellsWhatHasComeAndTheNextGoesOnBehindIt) {
  const std::vector<uint8_t> from = Pattern(2 * kMiB + 100);
  for (const uint64_t limit : {UINT64_MAX, uint64_t{0}}) {
    pins().SetLimit(limit);
    std::vector<uint8_t> to(8 * kMiB);
    ASSERT_NO_FATAL_FAILURE(PostReceive(to, 1));
    ASSERT_NO_FATAL_FAILURE(PostSend(from, 1));
    ASSERT_EQ(0, Next().exs_evt_errno);
    ASSERT_EQ(1, exs_cancel(server_, Handle(1), EXS_CAF_AHANDLE));
    const exs_event_t event = Next(other_);
    EXPECT_EQ(ECANCELED, event.exs_evt_errno);
    ASSERT_LE(LengthOf(event), from.size());
    std::vector<uint8_t> rest(from.size() - LengthOf(event) + 1);
    const uint8_t last = 77;
    ASSERT_NO_FATAL_FAILURE(PostReceive(rest, 2));
    ASSERT_NO_FATAL_FAILURE(Send(client_, &last, 1));
    EXPECT_EQ(0, Next(other_).exs_evt_errno);
    EXPECT_EQ(last, rest.back());
    const auto at = from.begin() + static_cast<ptrdiff_t>(LengthOf(event));
    EXPECT_TRUE(std::equal(from.begin(), at, to.begin()));
    EXPECT_TRUE(std::equal(at, from.end(), rest.begin()));
  }
}

TEST_F(UnregisteredTest, AnAbortAtAnyMomentEndsEverythingAndCloseComesLast) {
  const std::vector<uint8_t> from = Pattern(8 * kMiB);
  std::vector<uint8_t> to(8 * kMiB);
  std::vector<uint8_t> behind(2 * kMiB);
  int in_time = 0;  // aborts; where this thread is kept waiting all may have moved before
  for (int moment = 0; moment < 120; ++moment) {
    SCOPED_TRACE(moment);
    pins().SetLimit(moment % 3 == 0 ? 0 : UINT64_MAX);
    ASSERT_NO_FATAL_FAILURE(PostReceive(to, 1));
    ASSERT_NO_FATAL_FAILURE(PostReceive(behind, 2));
    ASSERT_NO_FATAL_FAILURE(PostSend(from, 1));
    ASSERT_NO_FATAL_FAILURE(PostSend(behind, 2));
    const absl::Time until = absl::Now() + moment / 2 * absl::Microseconds(20);
    while (absl::Now() < until) continue;
    const bool sender = moment % 2 == 0;
    const exs_qhandle_t queue = sender ? queue_ : other_;
    int& closed = sender ? client_ : server_;
    ASSERT_EQ(0, exs_close(closed, EXSX_CLOSE_ABORT, queue, Handle(3)));
    std::array<exs_event_t, 3> events;
    timeval bound{20, 0};
    ASSERT_EQ(3, exs_qdequeue(queue, events.data(), -3, &bound));
    for (uintptr_t i = 0; i < 3; ++i) EXPECT_EQ(Handle(i + 1), events[i].exs_evt_ahandle);
    EXPECT_EQ(EXS_EVT_CLOSE, events[2].exs_evt_type);
    EXPECT_EQ(0, events[2].exs_evt_errno);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(events[i].exs_evt_errno == 0 || events[i].exs_evt_errno == ECANCELED)
          << events[i].exs_evt_errno;
    }
    const bool aborted = events[1].exs_evt_errno == ECANCELED;
    in_time += aborted ? 1 : 0;
    ASSERT_EQ(2, exs_qdequeue(sender ? other_ : queue_, events.data(), -2, &bound));
    // The last of it may have come, and its end not been told.
    const int there = events[1].exs_evt_errno;
    EXPECT_TRUE(there == ECONNRESET || there == 0) << there;
    ASSERT_EQ(0, exs_close(sender ? server_ : client_, 0, EXS_QHANDLE_INVALID, nullptr));
    client_ = server_ = -1;
    EXPECT_EQ(0u, pins().now());
    ASSERT_NO_FATAL_FAILURE(Connect());
  }
  EXPECT_GT(in_time, 0);
}

TEST_F(UnregisteredTest, ACancelAtAnyMomentLeavesTheStreamWhole) {
  const std::vector<uint8_t> from = Pattern(4 * kMiB);
  std::vector<uint8_t> to(from.size());
  for (int moment = 0; moment < 60; ++moment) {
    SCOPED_TRACE(moment);
    pins().SetLimit(moment % 3 == 0 ? 0 : UINT64_MAX);
    ASSERT_NO_FATAL_FAILURE(PostReceive(to, 1));
    ASSERT_NO_FATAL_FAILURE(PostSend(from, 1));
    const absl::Time until = absl::Now() + moment * absl::Microseconds(20);
    while (absl::Now() < until) continue;
    ASSERT_GE(exs_cancel(client_, nullptr, EXS_CAF_FILDES), 0);
    const exs_event_t sent = Next();
    EXPECT_TRUE(sent.exs_evt_errno == 0 || sent.exs_evt_errno == ECANCELED);
    const std::vector<uint8_t> rest(from.size() - LengthOf(sent), 0xee);
    if (!rest.empty()) {
      ASSERT_NO_FATAL_FAILURE(PostSend(rest, 2));
      EXPECT_EQ(0, Next().exs_evt_errno);
    }
    EXPECT_EQ(from.size(), LengthOf(Next(other_)));
    const auto at = to.begin() + static_cast<ptrdiff_t>(LengthOf(sent));
    EXPECT_TRUE(std::equal(to.begin(), at, from.begin()));
    EXPECT_TRUE(std::equal(at, to.end(), rest.begin()));
  }
}

TEST_F(UnregisteredTest, AGracefulCloseSendsTheRestAndEndsWhatIsReceived) {
  const std::vector<uint8_t> from = Pattern(6 * kMiB);
  std::vector<uint8_t> to(from.size());
  std::vector<uint8_t> never(3 * kMiB);
  ASSERT_EQ(0, exs_recv(client_, never.data(), never.size(), MSG_WAITALL, queue_, Handle(1),
                        EXS_MHANDLE_UNREGISTERED));
  ASSERT_EQ(0, exs_recv(client_, never.data(), 1, 0, queue_, Handle(2), EXS_MHANDLE_UNREGISTERED));
  ASSERT_NO_FATAL_FAILURE(PostSend(from, 3));
  ASSERT_EQ(0, exs_close(client_, 0, queue_, Handle(4)));
  ASSERT_NO_FATAL_FAILURE(PostReceive(to));
  EXPECT_EQ(0, Next(other_).exs_evt_errno);
  EXPECT_EQ(from, to);
  ASSERT_EQ(0, exs_close(server_, 0, EXS_QHANDLE_INVALID, nullptr));
  std::array<exs_event_t, 4> events;
  timeval bound{20, 0};
  ASSERT_EQ(4, exs_qdequeue(queue_, events.data(), -4, &bound));
  for (const exs_event_t& event : events) {
    const bool receive = event.exs_evt_type == EXS_EVT_RECV;
    EXPECT_EQ(receive ? ECANCELED : 0, event.exs_evt_errno);
  }
  EXPECT_EQ(Handle(4), events[3].exs_evt_ahandle);
  client_ = server_ = -1;
}

TEST_F(UnregisteredTest, AnUnheardCloseLetsItLeave) {
  const std::vector<uint8_t> from = Pattern(6 * kMiB);
  std::vector<uint8_t> to(from.size() + 1);
  ASSERT_NO_FATAL_FAILURE(PostSend(from));
  ASSERT_EQ(0, exs_close(client_, 0, EXS_QHANDLE_INVALID, nullptr));
  client_ = -1;
  ASSERT_NO_FATAL_FAILURE(PostReceive(to));
  EXPECT_EQ(0, Next().exs_evt_errno);
  EXPECT_EQ(from.size(), LengthOf(Next(other_)));
  EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin()));
}

TEST_F(UnregisteredTest, TheCountOfFailuresIsOnlyRead) {
  uint64_t count = 0;
  EXPECT_ERRNO(EINVAL,
               exs_setsockopt(client_, SOL_EXSX, EXSX_SO_REGISTER_FAILURES, &count, sizeof(count)));
}

}  // namespace
}  // namespace esdp::exs
