#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "impl/sdp/wire/codec.h"
#include "tests/provider/several_fabrics.h"

// Listeners on every device's addresses, of a Context with two devices of a system that has more.

namespace esdp::provider {
namespace {

namespace wire = sdp::wire;

constexpr uint16_t kPort = 7471;
constexpr uint16_t kPeerPort = 40'000;

class WildcardTest : public SeveralFabricsTest {
 protected:
  explicit WildcardTest(bool qpip = false)
      : SeveralFabricsTest({.two_devices = true, .qpip = qpip}) {
    strcpy(third_device_.name, "fake2");
    third_.device = &third_device_;
  }

  ListenerId Listen() {
    const auto listener = here_.shard->Listen(Address{.port = kPort}, 4, {});
    EXPECT_TRUE(listener.ok()) << listener.status();
    manager_listener_ = system_.ids.back().get();
    return listener.value_or(ListenerId::kNone);
  }

  static void Put(const wire::Message& message, ConstBytes payload, std::vector<std::byte>& bytes) {
    bytes.resize(wire::kHelloBytes + wire::kHeaderBytesMax);
    bytes.resize(wire::Encode(message, payload.size(), bytes));
    bytes.insert(bytes.end(), payload.begin(), payload.end());
  }

  // A peer's request, as it waits to be heard.
  rdma_cm_id* Ask(ibv_context& through) {
    rdma_cm_id* const id = system_.ids.emplace_back(std::make_unique<rdma_cm_id>()).get();
    id->channel = manager_listener_->channel;
    id->context = manager_listener_->context;
    id->verbs = &through;
    for (sockaddr_in* end : {&id->route.addr.src_sin, &id->route.addr.dst_sin}) {
      end->sin_family = AF_INET;
      end->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    id->route.addr.src_sin.sin_port = htons(kPort);
    id->route.addr.dst_sin.sin_port = htons(kPeerPort);
    wire::Message message;
    message.base.buffers = 16;
    wire::Hello hello;
    hello.desired_remote_receive_size = hello.local_receive_size = 16 * 1024 + 16;
    hello.local_port = kPeerPort;
    hello.source_address[12] = hello.destination_address[12] = 127;
    hello.source_address[15] = hello.destination_address[15] = 1;
    message.body = hello;
    std::vector<std::byte>& bytes = hellos_.emplace_back();
    Put(message, {}, bytes);
    rdma_cm_event event{};
    event.event = RDMA_CM_EVENT_CONNECT_REQUEST;
    event.listen_id = manager_listener_;
    event.param.conn.private_data = bytes.data();
    event.param.conn.private_data_len = static_cast<uint8_t>(bytes.size());
    event.param.conn.initiator_depth = event.param.conn.responder_resources = 4;
    Raise(event, id);
    return id;
  }
  void Raise(rdma_cm_event event, rdma_cm_id* id) {
    event.id = id;
    system_.events.push_back(event);
    const uint64_t one = 1;
    EXPECT_EQ(write(system_.event_channel.fd, &one, sizeof one), ssize_t{sizeof one});
  }
  void Establish(rdma_cm_id* id) {
    RunAWhile();
    rdma_cm_event event{};
    event.event = RDMA_CM_EVENT_ESTABLISHED;
    Raise(event, id);
    RunAWhile();
  }

  // A message of the peer's fills the first receive that the queue pair has.
  void Deliver(const rdma_cm_id* id, ConstBytes payload) {
    wire::Message message;
    message.body = wire::Data{};
    message.base.buffers = 16;
    message.base.sequence = ++sequence_;
    std::vector<std::byte> bytes;
    Put(message, payload, bytes);
    const auto receive = std::find_if(system_.receives.begin(), system_.receives.end(),
                                      [id](const auto& each) { return each.queue_pair == id->qp; });
    ASSERT_NE(receive, system_.receives.end());
    std::memcpy(std::bit_cast<std::byte*>(receive->entry.addr), bytes.data(), bytes.size());
    ibv_wc completion{};
    completion.wr_id = receive->work;
    completion.opcode = IBV_WC_RECV;
    completion.qp_num = id->qp->qp_num;
    completion.byte_len = static_cast<uint32_t>(bytes.size());
    system_.receives.erase(receive);
    (id->verbs == &system_.context ? system_.completions : system_.other_completions)
        .push_back(completion);
    RunAWhile();
  }

  bool SaysThat(const std::string& text) const {
    return std::any_of(log_.begin(), log_.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }

  ibv_device third_device_{};
  ibv_context third_{};
  rdma_cm_id* manager_listener_ = nullptr;
  std::deque<std::vector<std::byte>> hellos_;
  uint32_t sequence_ = 0;
};
ESDP_ON_BOTH_TRANSPORTS(WildcardTest);

TEST_P(WildcardTest, APeerThroughTheSecondDeviceIsAcceptedAndItsBytesFlowOverThatDevice) {
  (void)Listen();
  const rdma_cm_id* const id = Ask(system_.other_context);
  RunAWhile();
  EXPECT_EQ(system_.Count("accept"), 1u);
  EXPECT_EQ(system_.Count("reject"), 0u);
  ASSERT_NE(id->qp, nullptr);
  Establish(system_.ids.back().get());

  Memory memory(here_, 100);
  memory.Fill(3);
  const std::vector<std::byte> sent = memory.bytes();
  Deliver(id, sent);
  ASSERT_EQ(here_.recorder.incoming().size(), 1u);
  EXPECT_EQ(here_.recorder.fabrics(), std::vector<uint8_t>{1});
  Memory sink(here_, 100);
  Job receive(sink, false, 0, 100);
  Submit(here_, here_.recorder.incoming()[0], receive);
  ASSERT_TRUE(RunUntil([&] { return here_.recorder.Find(receive.transfer).has_value(); }));
  EXPECT_EQ(sink.bytes(), sent);

  const size_t before = system_.sent.size();
  Job send(memory, true, 0, 100);
  Submit(here_, here_.recorder.incoming()[0], send);
  RunAWhile();
  ASSERT_EQ(system_.sent.size(), before + 1);
  EXPECT_EQ(system_.sent_on.back(), id->qp);
}

TEST_P(WildcardTest, PeersThroughBothDevicesAreServedAtOnce) {
  (void)Listen();
  rdma_cm_id* const first = Ask(system_.context);
  rdma_cm_id* const second = Ask(system_.other_context);
  Establish(first);
  Establish(second);
  const std::vector<std::byte> bytes(10);
  Deliver(first, bytes);
  sequence_ = 0;
  Deliver(second, bytes);
  EXPECT_EQ(here_.recorder.fabrics(), (std::vector<uint8_t>{0, 1}));
}

TEST_P(WildcardTest, APeerThroughADeviceThatIsNotOpenIsRejectedWithTheReason) {
  (void)Listen();
  (void)Ask(third_);
  RunAWhile();
  EXPECT_EQ(system_.Count("reject"), 1u);
  EXPECT_EQ(system_.Count("destroy_id"), 1u);
  EXPECT_EQ(system_.Count("accept"), 0u);
  EXPECT_TRUE(
      SaysThat("a connection request from 127.0.0.1:40000 is rejected: it came through the "
               "RDMA device fake2"));
}

TEST_P(WildcardTest, ARequestThatIsNotHeardYetEndsWithItsListener) {
  const ListenerId listener = Listen();
  (void)Ask(system_.other_context);
  EXPECT_TRUE(here_.shard->StopListening(listener).ok());
  RunAWhile();
  EXPECT_EQ(system_.Count("accept"), 0u);
  EXPECT_EQ(system_.Count("reject"), 1u);
  EXPECT_EQ(system_.Count("destroy_id"), 2u);  // the request's, and the listener's once
  EXPECT_EQ(system_.queue_pairs.size(), 0u);
}

TEST_P(WildcardTest, ARequestThatComesAfterItsListenerIsRejected) {
  const ListenerId listener = Listen();
  EXPECT_TRUE(here_.shard->StopListening(listener).ok());
  const ListenerId other = *here_.shard->Listen(Address{.port = kPort + 1}, 4, {});
  (void)Ask(system_.other_context);
  RunAWhile();
  EXPECT_EQ(system_.Count("accept"), 0u);
  EXPECT_EQ(system_.Count("reject"), 1u);
  EXPECT_TRUE(here_.shard->StopListening(other).ok());
}

TEST_P(WildcardTest, ADeviceThatIsRemovedTakesItsRequestAndLeavesTheListenerToTheOthers) {
  (void)Listen();
  rdma_cm_event removed{};
  removed.event = RDMA_CM_EVENT_DEVICE_REMOVAL;
  Raise(removed, Ask(system_.other_context));
  rdma_cm_id* const connected = Ask(system_.other_context);
  Establish(connected);
  const std::vector<std::byte> bytes(10);
  Deliver(connected, bytes);
  ASSERT_EQ(here_.recorder.incoming().size(), 1u);
  Raise(removed, connected);
  RunAWhile();
  EXPECT_EQ(system_.Count("disconnect"), 1u);
  clock_.Pass(std::chrono::seconds(2));  // nor does a device that is gone flush anything
  ASSERT_TRUE(RunUntil([&] { return !here_.recorder.closed().empty(); }));
  EXPECT_NE(here_.recorder.closed()[0].failure.text.find("removed"), std::string::npos)
      << here_.recorder.closed()[0].failure.text;

  rdma_cm_id* const first = Ask(system_.context);
  Establish(first);
  sequence_ = 0;
  Deliver(first, bytes);
  EXPECT_EQ(here_.recorder.fabrics(), (std::vector<uint8_t>{1, 0}));
}

TEST_P(WildcardTest, OneListenerOfTheManagersServesAllDevicesAndAPortIsGivenOnce) {
  const ListenerId listener = Listen();
  EXPECT_EQ(system_.listens, std::vector{kPort});
  EXPECT_TRUE(absl::IsAlreadyExists(here_.shard->Listen(Address{.port = kPort}, 4, {}).status()));
  EXPECT_TRUE(here_.shard->StopListening(listener).ok());
  EXPECT_EQ(system_.Count("destroy_id"), 1u);
  (void)Listen();
  EXPECT_EQ(system_.listens, (std::vector{kPort, kPort}));
}

TEST_P(WildcardTest, AnyPortIsTheSameOneOnAllDevices) {
  const ListenerId listener = *here_.shard->Listen(Address{}, 4, {});
  manager_listener_ = system_.ids.back().get();
  EXPECT_EQ(system_.listens.size(), 1u);
  EXPECT_NE(here_.shard->ListenerAddress(listener)->port, 0);
  (void)Ask(system_.context);
  (void)Ask(system_.other_context);
  RunAWhile();
  EXPECT_EQ(system_.Count("accept"), 2u);
}

TEST_P(WildcardTest, AnAddressOfEitherDeviceIsListenedOnByThatDevice) {
  for (ibv_context* const device : {&system_.context, &system_.other_context}) {
    system_.bound_to = device;
    const auto listener = here_.shard->Listen(Loopback(0), 4, {});
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_EQ(here_.shard->FabricOf(*listener), device == &system_.context ? 0 : 1);
  }
  system_.bound_to = &third_;
  EXPECT_EQ(here_.shard->Listen(Loopback(0), 4, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// With qpip, which picks the port, and of which those of iWARP are heard through TCP.
class WildcardWithQpipTest : public WildcardTest {
 protected:
  WildcardWithQpipTest() : WildcardTest(true) {}
};
ESDP_ON_BOTH_TRANSPORTS(WildcardWithQpipTest);

TEST_P(WildcardWithQpipTest, TheDevicesListenOnTheSamePortWhereItIsNotTcps) {
  const ListenerId listener = *here_.shard->Listen(Address{}, 4, {});
  const uint16_t port = here_.shard->ListenerAddress(listener)->port;
  EXPECT_EQ(system_.listens, IsIwarp() ? std::vector<uint16_t>{} : std::vector{port});
  if (IsIwarp()) return;
  manager_listener_ = system_.ids.back().get();
  (void)Ask(system_.other_context);
  RunAWhile();
  EXPECT_EQ(system_.Count("accept"), 1u);
  (void)there_.shard->Connect({}, Loopback(port), {}, kTimeInfinite);
  ASSERT_TRUE(RunUntil([&] { return !here_.recorder.incoming().empty(); }));
  EXPECT_EQ(here_.recorder.fabrics(), std::vector<uint8_t>{2});
}

}  // namespace
}  // namespace esdp::provider
