#ifndef ESDP_TESTS_PROVIDER_SEVERAL_FABRICS_H_
#define ESDP_TESTS_PROVIDER_SEVERAL_FABRICS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "impl/fabric/qpip/qpip_fabric.h"
#include "impl/provider/shard.h"
#include "tests/fabric/verbs/fake_system.h"
#include "tests/provider/shard_pair.h"

// A shard with RDMA devices that only the test sees, and qpip for what they do not reach.

namespace esdp::provider {

using fabric::verbs::FakeSystemTest;

struct Opened {
  bool two_devices = false;
  bool qpip = true;
};

class SeveralFabricsTest : public FakeSystemTest {
 protected:
  explicit SeveralFabricsTest(Opened opened = {}) {
    std::vector<std::unique_ptr<fabric::Fabric>> fabrics;
    fabrics.push_back(std::move(fabric_));
    if (opened.two_devices) {
      fabrics.push_back(*fabric::verbs::MakeVerbsFabric(
          {.device = "fake1", .manager = manager_, .calls = &calls_, .clock = &clock_}));
    }
    if (opened.qpip) fabrics.push_back(MakeQpip());
    here_.shard = *Shard::Create(std::move(fabrics), here_.recorder, Manual(&log_));
    there_.shard = *Shard::Create(MakeQpip(), there_.recorder, Manual(nullptr));
  }

  static ShardOptions Manual(std::vector<std::string>* log) {
    ShardOptions options;
    options.progress = Progress::kManual;
    if (log != nullptr) options.log = [log](const std::string& line) { log->push_back(line); };
    return options;
  }
  std::unique_ptr<fabric::Fabric> MakeQpip() {
    fabric::qpip::QpipOptions options;
    options.clock = &clock_;
    return *fabric::qpip::MakeQpipFabric(options);
  }

  template <typename Done>
  bool RunUntil(Done done) {
    for (int i = 0; i < 5000 && !done(); ++i) {
      if (!here_.shard->Poll() && !there_.shard->Poll()) poll(nullptr, 0, 1);
    }
    return done();
  }
  void RunAWhile() {
    for (int i = 0; i < 1000;
         ++i) {  // who spins looks rarely, above all at a fabric without connections
      (void)here_.shard->Poll();
      (void)there_.shard->Poll();
    }
  }

  uint16_t ListenThere() {
    const auto listener = there_.shard->Listen(Loopback(0), 4, {});
    return there_.shard->ListenerAddress(*listener)->port;
  }
  // What the connection manager tells of the last attempt.
  void Manager(rdma_cm_event_type type, int status = 0) {
    rdma_cm_event event{};
    event.event = type;
    event.status = status;
    event.id = system_.ids.back().get();
    system_.events.push_back(event);
    const uint64_t one = 1;
    ASSERT_EQ(write(system_.event_channel.fd, &one, sizeof one), ssize_t{sizeof one});
    RunAWhile();
  }
  ConnectionId Connect(uint16_t port) {
    const auto id =
        here_.shard->Connect({}, Loopback(port), {}, here_.shard->Now() + std::chrono::seconds(60));
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(ConnectionId::kNone);
  }

  std::vector<std::string> log_;
  Side here_;
  Side there_;
};

}  // namespace esdp::provider

#endif  // ESDP_TESTS_PROVIDER_SEVERAL_FABRICS_H_
