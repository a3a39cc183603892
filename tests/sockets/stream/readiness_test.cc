#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "esdp/context.h"
#include "impl/fabric/sim/sim_fabric.h"
#include "impl/fabric/sim/world.h"
#include "impl/provider/shard.h"
#include "impl/sockets/context/context_access.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/context/log_limit.h"
#include "impl/sockets/socket/socket_state.h"

// What a stream keeps of its readiness, whoever asks for it.

namespace esdp::sockets {
namespace {

class ReadinessTest : public ::testing::Test {
 protected:
  struct Host {
    std::shared_ptr<ContextState> state;
    Context context;
    EventQueue queue;

    OpArgs args() { return {.queue = queue}; }
    std::shared_ptr<SocketState> NewSocket() {
      auto socket = std::make_shared<SocketState>(state, state->NewSocketId(), Family::kIpv4,
                                                  SocketOptions{});
      state->Add(socket);
      return socket;
    }
  };

  void SetUp() override {
    for (Host* host : {&client_, &server_}) Open(*host);
    auto listener = server_.NewSocket();
    ASSERT_TRUE(listener->Bind(*Address::Parse("10.0.0.2:7000")).ok());
    ASSERT_TRUE(listener->Listen(1).ok());
    ASSERT_TRUE(listener->Accept(1, server_.args()).ok());
    near_ = client_.NewSocket();
    ASSERT_TRUE(near_->Connect(listener->local(), client_.args()).ok());
    ASSERT_TRUE(Until([&] { return near_->stream().connected(); }));
    Event accepted;
    ASSERT_TRUE(Until([&] { return *server_.queue.TryDequeue({&accepted, 1}) == 1; }));
    far_ = server_.state->untaken().Take(accepted.accepted);
    ASSERT_NE(far_, nullptr);
    listener_ = std::move(listener);
  }
  void TearDown() override {
    for (auto* socket : {&near_, &far_, &listener_}) {
      if (*socket != nullptr) (*socket)->Drop();
    }
  }

  void Open(Host& host) {
    ContextOptions options;
    options.fabric = "sim";
    options.progress = Progress::kManual;
    const auto make = [&](provider::Observer& observer, const provider::ShardOptions& wanted)
        -> absl::StatusOr<std::unique_ptr<provider::Shard>> {
      return provider::Shard::Create(*fabric::sim::MakeSimFabric(world_), observer, wanted);
    };
    host.state = *ContextState::Open(options, {Transport::kSim}, make,
                                     std::make_shared<LogLimit>(options.log, options.log_burst));
    host.context = ContextAccess::Make(host.state);
    host.queue = *host.context.CreateQueue({.depth = 64});
  }
  bool Until(const std::function<bool()>& done) {
    for (int i = 0; i < 10'000; ++i) {
      if (done()) return true;
      (void)world_->Step(world_->Now() + std::chrono::milliseconds(1));
      for (Host* host : {&client_, &server_}) (void)host->context.Progress();
    }
    return false;
  }
  uint32_t Bits() { return far_->stream().polls().Bits(); }
  void Send(uint64_t bytes) {
    const std::string text(bytes, 'x');
    ASSERT_TRUE(near_->stream()
                    .PostSendCopy(std::as_bytes(std::span(text)),
                                  TransferFlags::Of(SendFlags::kNone), client_.args())
                    .ok());
  }

  std::shared_ptr<fabric::sim::World> world_ =
      std::make_shared<fabric::sim::World>(fabric::sim::WorldOptions{});
  Host client_, server_;
  std::shared_ptr<SocketState> near_, far_, listener_;
};

constexpr uint32_t kReset = kPollReadable | kPollWritable | kPollPeerEnded | kPollFailed;

TEST_F(ReadinessTest, AStreamKeepsWhatItWatches) {
  far_->stream().polls().Watch();
  ASSERT_TRUE(Until([&] { return Bits() == kPollWritable; }));
  Send(10);
  ASSERT_TRUE(Until([&] { return Bits() == (kPollReadable | kPollWritable); }));
  near_->Abort();
  EXPECT_TRUE(Until([&] { return Bits() == kReset; }));
}

TEST_F(ReadinessTest, AStreamThatWatchesNothingKnowsOfItsEnd) {
  Send(10);
  near_->Abort();
  ASSERT_TRUE(Until([&] { return Bits() != 0; }));
  EXPECT_EQ(Bits(), kReset);
}

}  // namespace
}  // namespace esdp::sockets
