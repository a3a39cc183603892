#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"

// How many connections there may be, and how much of a Context one of them may take.

namespace esdp::contract {
namespace {

using absl::StatusCode;

class LimitsTest : public PairTest {
 protected:
  void SetUp() override {}
  void Open(const ContextLimits& limits) {
    ContextOptions options = OptionsOf(world());
    options.limits = limits;
    options.log = [this](std::string_view line) {
      const std::lock_guard lock(log_mutex_);
      log_ += std::string(line) + "\n";
    };
    ASSERT_NO_FATAL_FAILURE(server_.Open(options));
    options = OptionsOf(world(), &server_.context);
    options.limits = limits;
    ASSERT_NO_FATAL_FAILURE(client_.Open(options));
  }
  // One more connection; those before are kept.
  void ConnectAnother(const Address& address) {
    if (client_.socket.id() != SocketId::kNone) {
      kept_.push_back(std::move(client_.socket));
      kept_.push_back(std::move(server_.socket));
    }
    ASSERT_NO_FATAL_FAILURE(ConnectTo(address));
  }
  // An attempt of the client's that is rejected.
  Event Rejected(const Address& address) {
    Socket socket = *client_.context.CreateSocket(Family::kIpv4);
    return End(client_, client_.Accepted(socket.Connect(address, client_.Args())));
  }
  void ExpectTold(const Event& event, const std::string& option) {
    EXPECT_EQ(event.kind, ErrorKind::kRejected);
    EXPECT_NE(event.status().message().find(option), absl::string_view::npos) << event.status();
    const std::lock_guard lock(log_mutex_);
    EXPECT_NE(log_.find(option), std::string::npos) << log_;
  }
  void CloseBoth() {
    const OpId one = client_.Close(CloseMode::kAbort);
    const OpId other = server_.Close(CloseMode::kAbort);
    (void)End(client_, one);
    (void)End(server_, other);
  }
  void TearDown() override {
    kept_.clear();
    PairTest::TearDown();
  }

  std::vector<Socket> kept_;
  std::mutex log_mutex_;
  std::string log_;
};
ESDP_ON_EVERY_WORLD(LimitsTest);

TEST_P(LimitsTest, ConnectionsOfOneAddressAreBounded) {
  ASSERT_NO_FATAL_FAILURE(Open({.connections_per_address_max = 2}));
  const Address address = Listen();
  for (int i = 0; i < 2; ++i) ASSERT_NO_FATAL_FAILURE(ConnectAnother(address));
  ExpectTold(Rejected(address), "connections_per_address_max");
  EXPECT_EQ(server_.context.Stats().rejected_address, 1u);
  Carry(client_, Make(client_, 10'000), server_, Make(server_, 10'000), 10'000);
  CloseBoth();
  ASSERT_NO_FATAL_FAILURE(ConnectAnother(address)) << "one has gone";
  EXPECT_EQ(server_.context.Stats().rejected_address, 1u);
}

TEST_P(LimitsTest, ConnectionsInAllAreBounded) {
  ASSERT_NO_FATAL_FAILURE(Open({.connections_max = 2}));
  const Address address = Listen();
  for (int i = 0; i < 2; ++i) ASSERT_NO_FATAL_FAILURE(ConnectAnother(address));
  Socket third = *client_.context.CreateSocket(Family::kIpv4);
  const auto refused = third.Connect(address, client_.Args());
  EXPECT_TRUE(Refuses(refused, ErrorKind::kMemory, StatusCode::kResourceExhausted));
  EXPECT_NE(refused.status().message().find("connections_max"), absl::string_view::npos);
  CloseBoth();
  ASSERT_NO_FATAL_FAILURE(ConnectAnother(address)) << "one has gone";
}

TEST_P(LimitsTest, WhoComesTooFastIsRejected) {
  ASSERT_NO_FATAL_FAILURE(Open({.accept_rate = 1, .accept_burst = 2}));
  const Address address = Listen({}, /*backlog=*/1);
  for (int i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(ConnectAnother(address));
    CloseBoth();
  }
  ExpectTold(Rejected(address), "accept_rate");
  EXPECT_EQ(server_.context.Stats().rejected_rate, 1u);
}

TEST(LimitOptionsTest, WhatIsOutOfRangeIsRefusedByName) {
  const std::pair<ContextLimits, const char*> wrong[] = {
      {{.connections_max = 0}, "connections_max"},
      {{.connections_per_address_max = (1 << 20) + 1}, "connections_per_address_max"},
      {{.accept_rate = 0}, "accept_rate"},
      {{.accept_burst = 0}, "accept_burst"},
      {{.spare_connections_max = (1 << 20) + 1}, "spare_connections_max"},
      {{.file_pool_max = 4096}, "file_pool_max"},
      {{.file_threads = 65}, "file_threads"},
  };
  for (const auto& [limits, name] : wrong) {
    const auto opened = Context::Open({.fabric = "qpip", .limits = limits});
    EXPECT_TRUE(Refuses(opened, ErrorKind::kInvalidArgument, StatusCode::kInvalidArgument));
    EXPECT_NE(opened.status().message().find(name), absl::string_view::npos) << opened.status();
  }
}

TEST(LimitOptionsTest, DiagnoseTellsEachWithItsValue) {
  const DiagnosticsReport report = Context::Diagnose(
      {.fabric = "qpip", .half_open_max = 7, .limits = {.connections_max = 12'345}});
  const auto value = [&](const std::string& name) -> uint64_t {
    const auto found = std::find_if(report.limits.begin(), report.limits.end(),
                                    [&](const LimitReport& limit) { return limit.name == name; });
    return found == report.limits.end() ? 0 : found->value;
  };
  EXPECT_EQ(value("connections_max"), 12'345u);
  EXPECT_EQ(value("half_open_max"), 7u);
  const ContextLimits defaults;
  EXPECT_EQ(value("connections_per_address_max"), defaults.connections_per_address_max);
  EXPECT_EQ(value("accept_rate"), defaults.accept_rate);
  EXPECT_EQ(value("accept_burst"), defaults.accept_burst);
  EXPECT_EQ(value("moves_max"), ContextOptions().moves_max);
  EXPECT_NE(report.ToString().find("limit connections_max: 12345 ("), std::string::npos)
      << report.ToString();
  for (const LimitReport& limit : report.limits) EXPECT_FALSE(limit.text.empty()) << limit.name;
}

}  // namespace
}  // namespace esdp::contract
