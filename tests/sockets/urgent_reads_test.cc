#include <poll.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "esdp/stream.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// Streams that meet urgent bytes as TCP does: apart, or in line behind a mark.

namespace esdp::contract {
namespace {

class UrgentReadsTest : public PairTest {
 protected:
  void SetUp() override {
    PairTest::SetUp();
    Connect();
    near_ = Stream::Of(client_.context, std::move(client_.socket)).value();
    far_ = Stream::Of(server_.context, std::move(server_.socket), {.urgent = UrgentBytes::kApart})
               .value();
  }
  void TearDown() override {
    near_ = Stream();
    far_ = Stream();
    PairTest::TearDown();
  }
  void Write(std::string_view text, bool urgent = false) {
    std::vector<std::byte> bytes;
    for (const char each : text) bytes.push_back(std::byte(each));
    const WriteArgs args = {.wait = false, .urgent = urgent};
    EXPECT_EQ(near_.Write(bytes, args).value_or(0), text.size());
    Settle();
  }
  // Nothing where a read would wait, "." at the end.
  std::string Read(size_t room = 100, bool peek = false) {
    std::vector<std::byte> bytes(room);
    const auto read = far_.Read(absl::MakeSpan(bytes), {.peek = peek, .wait = false});
    Settle();
    if (!read.ok()) return read.status().code() == kWaits ? "" : read.status().ToString();
    if (*read == 0) return ".";
    return {reinterpret_cast<const char*>(bytes.data()), *read};
  }
  // "-" where there is none, "?" where it has not come.
  std::string Urgent(bool peek = false) {
    const auto read = far_.ReadUrgent(peek);
    Settle();
    if (read.ok()) return {static_cast<char>(*read)};
    return KindOf(read.status()) == ErrorKind::kWouldBlock ? "?" : "-";
  }
  bool AtMark() { return far_.AtUrgentMark().value(); }
  void BeInLine() { ASSERT_TRUE(far_.SetOptions({.urgent = UrgentBytes::kInLine}).ok()); }
  short Shows() {
    pollfd one = {.fd = far_.fd().value(), .events = POLLIN | POLLPRI | POLLRDHUP, .revents = 0};
    Settle();
    return poll(&one, 1, 0) >= 0 ? one.revents : short{-1};
  }

  static constexpr auto kWaits = absl::StatusCode::kResourceExhausted;
  Stream near_, far_;
};

TEST_P(UrgentReadsTest, AByteAloneIsReadApartOnce) {
  EXPECT_EQ(Urgent(), "-");
  EXPECT_FALSE(AtMark());
  Write("x", true);
  EXPECT_TRUE(AtMark());
  EXPECT_EQ(Urgent(/*peek=*/true), "x");
  EXPECT_EQ(Urgent(), "x");
  EXPECT_EQ(Urgent(), "-");
  EXPECT_TRUE(AtMark());
  EXPECT_EQ(Read(), "");
  EXPECT_FALSE(AtMark());
  Write("next");
  EXPECT_EQ(Read(), "next");
}

TEST_P(UrgentReadsTest, ItComesAheadOfWhatIsUnreadAndReadsEndBeforeItsPlace) {
  Write("abc", true);
  Write("d");
  EXPECT_FALSE(AtMark());
  EXPECT_EQ(Urgent(), "c");
  EXPECT_EQ(far_.readiness().bytes, 2u);
  EXPECT_EQ(Read(1), "a");
  EXPECT_EQ(Read(), "b");
  EXPECT_TRUE(AtMark());
  EXPECT_EQ(Read(), "d");
  EXPECT_FALSE(AtMark());
}

TEST_P(UrgentReadsTest, ReadsEndBeforeItsPlaceAlsoWhereNobodyAskedForIt) {
  Write("abc", true);
  Write("de");
  std::vector<std::byte> bytes(4);
  EXPECT_EQ(far_.Read(absl::MakeSpan(bytes), {.min = 4}).value_or(0), 2u);
  EXPECT_EQ(Urgent(), "c");
  EXPECT_EQ(Read(1), "d");
  EXPECT_EQ(Urgent(), "-");
  EXPECT_EQ(Read(), "e");
}

TEST_P(UrgentReadsTest, BehindWhichAReadHasGoneOnItIsGone) {
  Write("x", true);
  EXPECT_EQ(Read(), "");
  EXPECT_EQ(Urgent(/*peek=*/true), "x");  // nothing was behind it
  Write("y");
  EXPECT_EQ(Read(), "y");
  EXPECT_EQ(Urgent(), "-");
}

TEST_P(UrgentReadsTest, InLineTheNextReadBeginsWithIt) {
  BeInLine();
  Write("abc", true);
  Write("d");
  EXPECT_EQ(Urgent(), "-");
  EXPECT_EQ(Read(), "ab");
  EXPECT_TRUE(AtMark());
  EXPECT_EQ(far_.readiness().bytes, 2u);
  EXPECT_EQ(Read(), "cd");
  EXPECT_FALSE(AtMark());
  Write("x", true);
  EXPECT_TRUE(AtMark());
  EXPECT_EQ(Read(), "x");
  EXPECT_FALSE(far_.readiness().urgent);
}

TEST_P(UrgentReadsTest, OfTwoTheLastIsTheUrgentOne) {
  Write("abc", true);
  Write("de", true);
  EXPECT_EQ(Urgent(), "e");
  EXPECT_EQ(Read(), "abcd");
  EXPECT_TRUE(AtMark());
  EXPECT_EQ(Read(), "");
  Write("x", true);
  EXPECT_TRUE(AtMark());
  Write("y", true);
  EXPECT_EQ(Urgent(), "y");
  EXPECT_EQ(Read(), "");
}

TEST_P(UrgentReadsTest, AReadMayStayBeforeTheMarkThatItMeets) {
  BeInLine();
  Write("x", true);
  Write("y");
  std::vector<std::byte> bytes(4);
  const ReadArgs args = {.wait = false, .until_mark = true};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(KindOf(far_.Read(absl::MakeSpan(bytes), args).status()), ErrorKind::kWouldBlock);
    EXPECT_TRUE(AtMark());
  }
  EXPECT_EQ(Read(1), "x");
  EXPECT_EQ(far_.Read(absl::MakeSpan(bytes), args).value_or(0), 1u);
}

TEST_P(UrgentReadsTest, APeekSeesWhatAReadWouldGet) {
  Write("abc", true);
  Write("d");
  EXPECT_EQ(Read(100, /*peek=*/true), "ab");
  EXPECT_EQ(Read(1, /*peek=*/true), "a");
  EXPECT_EQ(Read(), "ab");
  EXPECT_EQ(Read(100, /*peek=*/true), "d");
  EXPECT_TRUE(AtMark());
  EXPECT_EQ(Urgent(), "c");
  EXPECT_EQ(Read(), "d");
}

TEST_P(UrgentReadsTest, OneThatIsAnnouncedAndHasNotComeIsToBeWaitedFor) {
  const std::vector<std::byte> bytes(65536);
  size_t sent = 0;
  do {
    EXPECT_TRUE(Pump([&] {
      const auto written = near_.Write(bytes, {.wait = false});
      sent += written.value_or(0);
      return !written.ok();
    }));
    Settle();
  } while (near_.readiness().writable);
  size_t taken = 0;
  std::vector<std::byte> memory(65536);
  const auto take = [&] {
    taken += far_.Read(absl::MakeSpan(memory), {.wait = false}).value_or(0);
  };
  EXPECT_TRUE(Pump([&] {
    take();
    const std::byte mark{7};
    return near_.Write({&mark, 1}, {.wait = false, .urgent = true}).ok();
  }));
  std::string urgent;
  EXPECT_TRUE(Pump([&] {
    urgent = Urgent();
    if (urgent != "\7") take();
    return urgent == "\7";
  }));
  EXPECT_TRUE(Pump([&] {
    take();
    return taken == sent;
  }));
  EXPECT_TRUE(AtMark());
}

TEST_P(UrgentReadsTest, TheDescriptorShowsItUntilItIsRead) {
  EXPECT_EQ(Shows(), 0);
  Write("x", true);
  EXPECT_EQ(Shows() & POLLPRI, POLLPRI);
  EXPECT_EQ(Urgent(/*peek=*/true), "x");
  EXPECT_EQ(Shows() & POLLPRI, POLLPRI);
  EXPECT_EQ(Urgent(), "x");
  EXPECT_EQ(Shows(), 0);
  Write("abc", true);
  EXPECT_EQ(Shows(), POLLIN | POLLPRI);
  EXPECT_EQ(Read(), "ab");
  EXPECT_EQ(Shows() & POLLPRI, POLLPRI);
  EXPECT_EQ(Read(), "");  // it has passed it
  EXPECT_EQ(Shows(), 0);
  EXPECT_EQ(Urgent(), "c");
}

TEST_P(UrgentReadsTest, OneBeforeTheEndIsShownAndRead) {
  Write("x", true);
  EXPECT_TRUE(near_.ShutdownWrite().ok());
  EXPECT_TRUE(Pump([&] { return far_.readiness().peer_ended; }));
  EXPECT_EQ(Shows(), POLLIN | POLLPRI | POLLRDHUP);
  EXPECT_EQ(Urgent(), "x");
  EXPECT_EQ(Shows(), POLLIN | POLLRDHUP);
  EXPECT_EQ(Read(), ".");
  EXPECT_EQ(Urgent(), "-");
}

TEST_P(UrgentReadsTest, AmongOthersItIsNothingSpecial) {
  ASSERT_TRUE(far_.SetOptions({}).ok());
  Write("x", true);
  EXPECT_EQ(Urgent(), "-");
  EXPECT_FALSE(AtMark());
  EXPECT_TRUE(far_.readiness().urgent);
  EXPECT_EQ(Read(), "x");
  EXPECT_EQ(Stream().ReadUrgent().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Stream().AtUrgentMark().status().code(), absl::StatusCode::kNotFound);
}

ESDP_ON_EVERY_WORLD(UrgentReadsTest);

}  // namespace
}  // namespace esdp::contract
