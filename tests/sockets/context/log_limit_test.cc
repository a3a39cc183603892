#include "impl/sockets/context/log_limit.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace esdp::sockets {
namespace {

using Lines = std::vector<std::string>;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kBurst = 3;

class LogLimitTest : public testing::Test {
 protected:
  void Start() {
    limit_.Start([this] { return now_; }, [this](Time at) { rings_at_ = at; });
  }
  void Log(int port) {
    limit_.Log("a connection request from 10.0.0.9:" + std::to_string(port) + " is rejected");
  }
  void Pass(Duration time) {
    now_ += time;
    if (!rings_at_ || *rings_at_ > now_) return;
    rings_at_.reset();
    limit_.TellLeftOut();
  }
  Lines Taken() {
    Lines taken;
    taken.swap(lines_);
    return taken;
  }

  Lines lines_;
  LogLimit limit_{[this](std::string_view line) { lines_.emplace_back(line); }, kBurst};
  Time now_ = Time{} + seconds(1000);
  std::optional<Time> rings_at_;
};

TEST_F(LogLimitTest, ABurstGoesAndThenOneLineASecondTellsHowManyWereLeftOut) {
  Start();
  for (int i = 0; i < 1000; ++i) Log(i);
  EXPECT_EQ(Taken().size(), kBurst);
  Pass(seconds(1));
  EXPECT_EQ(Taken(), Lines{"a connection request from 10.0.0.9:999 is rejected (996 more like it "
                           "were left out)"});
  for (int i = 0; i < 5; ++i) Log(i);
  EXPECT_EQ(Taken(), Lines{});
  Pass(milliseconds(999));
  EXPECT_EQ(Taken(), Lines{});
  Pass(milliseconds(1));
  EXPECT_EQ(Taken(), Lines{"a connection request from 10.0.0.9:4 is rejected (4 more like it were "
                           "left out)"});
}

TEST_F(LogLimitTest, OneThatIsLeftOutAloneIsToldAsItIs) {
  Start();
  for (int i = 0; i < 4; ++i) Log(i);
  (void)Taken();
  Pass(seconds(1));
  EXPECT_EQ(Taken(), Lines{"a connection request from 10.0.0.9:3 is rejected"});
  EXPECT_FALSE(rings_at_);
}

TEST_F(LogLimitTest, AfterAQuietTimeABurstGoesAgain) {
  Start();
  for (int i = 0; i < 100; ++i) Log(i);
  Pass(seconds(1));
  (void)Taken();
  Pass(seconds(60));
  for (int i = 0; i < 100; ++i) Log(i);
  EXPECT_EQ(Taken().size(), kBurst);
}

TEST_F(LogLimitTest, NoKindOfLineHidesAnother) {
  Start();
  for (int i = 0; i < 1000; ++i) Log(i);
  (void)Taken();
  limit_.Log("connections wait at [::1]:5001: too many open files");
  EXPECT_EQ(Taken(), Lines{"connections wait at [::1]:5001: too many open files"});
}

TEST_F(LogLimitTest, AddressesOfIpv6AreAlike) {
  Start();
  for (const char* host : {"[fe80::1%2]", "[2001:db8::a]", "[::1]", "[fe80::ab]", "[fd00::c]"}) {
    limit_.Log("set-up with " + std::string(host) + ":5 failed");
  }
  EXPECT_EQ(Taken().size(), kBurst);
}

TEST_F(LogLimitTest, ManyKindsShareTheirRoomAndQuietOnesMakeSome) {
  Start();
  const auto kind = [](size_t i) {
    return std::string(1 + i / 26, 'a') + static_cast<char>('a' + i % 26);
  };
  for (size_t i = 0; i < 1000; ++i) limit_.Log(kind(i));
  EXPECT_LE(Taken().size(), LogLimit::kKindsMax + kBurst);
  Pass(seconds(1));
  EXPECT_EQ(Taken().size(), 1u);
  Pass(seconds(60));
  for (size_t i = 1000; i < 1010; ++i) limit_.Log(kind(i));
  EXPECT_EQ(Taken().size(), 10u);
}

TEST_F(LogLimitTest, WhatIsLeftOutAtTheEndIsTold) {
  Start();
  for (int i = 0; i < 100; ++i) Log(i);
  (void)Taken();
  limit_.Freeze();
  Log(100);
  EXPECT_EQ(Taken(), Lines{});
  limit_.Stop();
  EXPECT_EQ(Taken(),
            Lines{"a connection request from 10.0.0.9:100 is rejected (97 more like it were "
                  "left out)"});
  Log(101);
  EXPECT_EQ(Taken().size(), 1u);
}

TEST_F(LogLimitTest, BeforeTheStartAndWithoutALimitAllGo) {
  for (int i = 0; i < 100; ++i) Log(i);
  EXPECT_EQ(Taken().size(), 100u);
  LogLimit all([this](std::string_view line) { lines_.emplace_back(line); }, 0);
  all.Start([this] { return now_; }, [](Time) { FAIL(); });
  for (int i = 0; i < 100; ++i) all.Log("the same");
  EXPECT_EQ(Taken().size(), 100u);
}

}  // namespace
}  // namespace esdp::sockets
