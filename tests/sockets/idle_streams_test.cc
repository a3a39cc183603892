#include <sys/resource.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "esdp/stream.h"
#include "gtest/gtest.h"

// Streams that nobody uses cost no processor time. Each Context looks after silent peers once in half
// of keep_alive_idle, for all of them in one wake-up.

namespace esdp {
namespace {

constexpr size_t kStreams = 1000;
constexpr auto kLook = absl::Seconds(3);

class IdleStreamsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  // So many connections, over each of which a byte has gone either way.
  void Connect(size_t count) {
    StreamListener listener =
        StreamListener::Listen(far_context_, Address::Loopback(Family::kIpv4, 0)).value();
    const Address at = Address::Loopback(Family::kIpv4, listener.local().port());
    std::thread accepting([&] {
      for (size_t i = 0; i < count; ++i) far_.push_back(listener.Accept().value());
    });
    for (size_t i = 0; i < count; ++i) near_.push_back(Stream::Connect(near_context_, at).value());
    accepting.join();
    for (size_t i = 0; i < count; ++i) {
      Pass(near_[i], far_[i]);
      Pass(far_[i], near_[i]);
    }
  }
  static void Pass(Stream& from, Stream& to) {
    std::byte one{1};
    ASSERT_TRUE(from.Write(absl::MakeConstSpan(&one, 1)).ok());
    ASSERT_EQ(to.Read(absl::MakeSpan(&one, 1)).value_or(0), 1u);
  }
  // How often threads of this process went to sleep, which those that wake up do again.
  static long Sleeps() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
  }
  static double CpuSeconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  }

  Context near_context_ = Context::Open({.fabric = "qpip"}).value();
  Context far_context_ = Context::Open({.fabric = "qpip"}).value();
  std::vector<Stream> near_, far_;
};

TEST_F(IdleStreamsTest, AThousandOfThemWakeAThreadNoOftenerThanOne) {
  ASSERT_NO_FATAL_FAILURE(Connect(kStreams));
  absl::SleepFor(absl::Seconds(1));  // what was under way comes to its end
  const long before = Sleeps();
  const double cpu_before = CpuSeconds();
  absl::SleepFor(kLook);
  const long sleeps = Sleeps() - before;
  std::printf("%zu idle Streams: %ld wake-ups and %.6f s of processor in 3 s\n", 2 * kStreams,
              sleeps, CpuSeconds() - cpu_before);
  EXPECT_LE(sleeps, 9) << "this thread's own is one, and each Context may have looked";
}

}  // namespace
}  // namespace esdp
