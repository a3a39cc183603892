#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "esdp/context.h"
#include "esdp/file.h"
#include "gtest/gtest.h"
#include "tests/base/sanitized.h"
#include "tests/sockets/harness.h"

// Files whose length does not fit in 32 bits, or only just does: almost all of one is a hole, at both
// ends.

namespace esdp::contract {
namespace {

constexpr uint64_t k4GiB = uint64_t{1} << 32;

class LongFileTest : public PairTest {};
INSTANTIATE_TEST_SUITE_P(On, LongFileTest, ::testing::Values(World::kLocalThread), ParamName);

TEST_P(LongFileTest, EveryLengthAround4GiBGoesWhole) {
  if (kSanitized) GTEST_SKIP() << "8 GiB take minutes with a sanitizer";
  ASSERT_NO_FATAL_FAILURE(Connect());
  for (const uint64_t length : {k4GiB - 1, k4GiB + 1}) {
    const int source = memfd_create("source", MFD_CLOEXEC);
    const int target = memfd_create("target", MFD_CLOEXEC);
    ASSERT_EQ(0, ftruncate(source, static_cast<off_t>(length)));
    const std::array<uint64_t, 4> marks = {0, k4GiB / 2 - 1, k4GiB - 2, length - 1};
    for (const uint64_t mark : marks) {
      ASSERT_EQ(1, pwrite(source, "x", 1, static_cast<off_t>(mark)));
    }
    const OpId taken = server_.Accepted(
        server_.socket.RecvFile({.fd = target, .length = length, .sparse = true}, server_.Args()));
    const std::array<FileRange, 1> all = {FileRange{source, 0, length}};
    const OpId sent = client_.Accepted(client_.socket.SendFile({.ranges = all}, client_.Args()));
    ASSERT_TRUE(Pump([&] { return server_.Find(taken) != nullptr; }, absl::Seconds(50)));
    EndWell(client_, sent, length);
    const Event event = End(server_, taken);
    EXPECT_TRUE(event.ok()) << event.status();
    EXPECT_EQ(event.bytes, length);
    EXPECT_EQ(event.file_offset, length);
    EXPECT_EQ(static_cast<off_t>(length), lseek(target, 0, SEEK_END));
    for (const uint64_t mark : marks) {
      char byte = 0;
      EXPECT_EQ(1, pread(target, &byte, 1, static_cast<off_t>(mark)));
      EXPECT_EQ('x', byte) << mark;
    }
    // All else is zero: what is no hole has its mark, and nothing else of it was written.
    for (off_t at = 0; (at = lseek(target, at, SEEK_DATA)) >= 0;) {
      const off_t end = lseek(target, at, SEEK_HOLE);
      uint64_t marked = 0;
      for (const uint64_t mark : marks) {
        if (static_cast<off_t>(mark) >= at && static_cast<off_t>(mark) < end) ++marked;
      }
      EXPECT_GE(marked, 1u) << at;
      EXPECT_LE(end - at, 2 * 4096) << at;
      at = end;
    }
    close(source);
    close(target);
  }
}

}  // namespace
}  // namespace esdp::contract
