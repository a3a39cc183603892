#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "esdp/context.h"
#include "gtest/gtest.h"
#include "tests/sockets/harness.h"
#include "tests/sockets/raw_stream.h"

// Peers of qpip who begin to connect and do not go on, beside one who does.

namespace esdp::contract {
namespace {

class HalfOpenTest : public PairTest {
 protected:
  static constexpr int kBacklog = 4;
  static constexpr int kStrangers = 3 * kBacklog;

  std::unique_ptr<RawStream> Stranger(const Octets& says) {
    auto raw = std::make_unique<RawStream>(
        [this](const std::function<bool()>& done) { return Pump(done); });
    EXPECT_TRUE(raw->Connect(address_.port()));
    raw->Write(says);
    return raw;
  }
  // Asks for the model of peers, where the first frame is a sign that the initiator is ready: an
  // empty RDMA Write (RFC 6581). Until then there is no connection.
  static Octets RequestOfAPeer() {
    Octets request = MpaRequest(HonestHello());
    request[20] |= 0x80;
    request[22] |= 0x80;
    return request;
  }

  // The server again, with a log.
  void Logs() {
    ContextOptions options = OptionsOf(world());
    options.log = [log = log_](std::string_view line) {
      const std::lock_guard lock(log->mutex);
      log->text += line;
    };
    server_ = Side();
    ASSERT_NO_FATAL_FAILURE(server_.Open(options));
  }
  bool HasLogged(const std::string& text) {
    const std::lock_guard lock(log_->mutex);
    return log_->text.find(text) != std::string::npos;
  }

  struct Log {
    std::mutex mutex;
    std::string text;
  };
  const std::shared_ptr<Log> log_ = std::make_shared<Log>();  // the context lives longer than this
  Address address_;
};
ESDP_ON_TCP_WORLDS(HalfOpenTest);

TEST_P(HalfOpenTest, TheyKeepNobodyOut) {
  address_ = Listen({}, kBacklog);
  std::vector<std::unique_ptr<RawStream>> strangers;
  for (int i = 0; i < kStrangers; ++i) {
    strangers.push_back(Stranger(RequestOfAPeer()));
    EXPECT_GE(strangers.back()->Read(20 + 4 + 196).size(), 20u + 4u + 196u) << "no HelloAck";
    strangers.push_back(Stranger({}));
  }
  ASSERT_NO_FATAL_FAILURE(ConnectTo(address_));
  Carry(client_, Make(client_, 100'000), server_, Make(server_, 100'000), 100'000);
  for (auto& stranger : strangers) EXPECT_FALSE(stranger->ended()) << "there was room for all";
}

TEST_P(HalfOpenTest, OneThatBreaksOffIsLoggedByItsAddress) {
  ASSERT_NO_FATAL_FAILURE(Logs());
  address_ = Listen();
  RawStream raw([this](const std::function<bool()>& done) { return Pump(done); });
  ASSERT_TRUE(raw.Connect(address_.port()));
  const std::string peer = "set-up with 127.0.0.1:" + std::to_string(raw.port()) + " failed: ";
  raw.Write(RequestOfAPeer());
  raw.Reset();
  EXPECT_TRUE(Pump([&] { return HasLogged(peer); }));
  EXPECT_FALSE(HasLogged("0.0.0.0"));
}

TEST_P(HalfOpenTest, AFloodOfLinesIsLimitedAndWhatWasLeftOutIsTold) {
  ASSERT_NO_FATAL_FAILURE(Logs());
  address_ = Listen();
  constexpr int kFlood = 100;
  for (int i = 0; i < kFlood; ++i) {
    RawStream raw([this](const std::function<bool()>& done) { return Pump(done); });
    ASSERT_TRUE(raw.Connect(address_.port()));
    raw.Write(RequestOfAPeer());
    raw.Reset();
  }
  EXPECT_TRUE(Pump([&] { return HasLogged("more like it were left out)"); }));
  const std::lock_guard lock(log_->mutex);
  int lines = 0;
  for (size_t at = 0; (at = log_->text.find("set-up with", at)) != std::string::npos; ++at) ++lines;
  EXPECT_LT(lines, kFlood);
}

}  // namespace
}  // namespace esdp::contract
