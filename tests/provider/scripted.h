#ifndef ESDP_TESTS_PROVIDER_SCRIPTED_H_
#define ESDP_TESTS_PROVIDER_SCRIPTED_H_

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "impl/provider/shard.h"
#include "impl/sdp/wire/codec.h"
#include "tests/provider/fake_fabric.h"
#include "tests/provider/shard_pair.h"

// A shard over a fabric that does what the test says: the order of things, and everything that can
// go wrong below.

namespace esdp::provider {

using fabric::Cause;
using fabric::RendezvousEvent;
using fabric::RendezvousType;
using fabric::WorkStatus;
namespace wire = sdp::wire;

class ScriptedTest : public testing::Test {
 protected:
  explicit ScriptedTest(Progress progress = Progress::kManual, const PeerBounds& bounds = {}) {
    auto fabric = std::make_unique<FakeFabric>();
    fabric_ = fabric.get();
    ShardOptions options;
    options.progress = progress;
    options.bounds = bounds;
    options.log = [this](const std::string& text) { log_ += text + "\n"; };
    side_.shard = *Shard::Create(std::move(fabric), side_.recorder, options);
  }

  void Poll() {
    while (side_.shard->Poll()) {
    }
  }

  ConnectionId StartConnect(const ConnectionOptions& options = {}) {
    return *side_.shard->Connect(Loopback(0), Loopback(5001), options,
                                 side_.shard->Now() + std::chrono::seconds(1));
  }

  RendezvousEvent EventOf(RendezvousType type, Cause cause = Cause::kNone) {
    RendezvousEvent event;
    event.type = type;
    event.queue_pair = queue_pair_ = fabric_->last_queue_pair();
    event.cause = cause;
    event.local = Loopback(40000);
    event.peer = Loopback(5001);
    event.initiator_depth = event.responder_resources = 4;
    return event;
  }
  static void Put(RendezvousEvent& event, const wire::Message& message) {
    event.private_data_bytes =
        static_cast<uint16_t>(wire::Encode(message, 0, std::span(event.private_data)));
  }
  static wire::Message HelloAck() {
    wire::Message message;
    message.base.buffers = 16;
    message.body = wire::HelloAck{.actual_receive_size = 16 * 1024 + 16};
    return message;
  }
  static wire::Message Hello() {
    wire::Message message;
    message.base.buffers = 16;
    wire::Hello hello;
    hello.desired_remote_receive_size = hello.local_receive_size = 16 * 1024 + 16;
    message.body = hello;
    return message;
  }

  ConnectionId Establish() {
    const ConnectionId connection = StartConnect();
    RendezvousEvent event = EventOf(RendezvousType::kEstablished);
    Put(event, HelloAck());
    fabric_->Raise(event);
    Poll();
    EXPECT_EQ(side_.recorder.connected().size(), 1u);
    return connection;
  }

  // With a peer that holds so many adverts, in the mode in which we show as many.
  ConnectionId EstablishPipelined(uint8_t adverts) {
    ConnectionOptions options;
    options.send_mode = ModeWish::kPipelined;
    const ConnectionId connection = StartConnect(options);
    wire::Message answer = HelloAck();
    std::get<wire::HelloAck>(answer.body).max_adverts = adverts;
    RendezvousEvent event = EventOf(RendezvousType::kEstablished);
    Put(event, answer);
    fabric_->Raise(event);
    Poll();
    EXPECT_EQ(side_.recorder.connected().size(), 1u);
    CompleteSends();
    acknowledged_ = 1;  // our change of mode
    Deliver({});
    Poll();
    return connection;
  }
  void CompleteSends() {
    while (fabric_->sends_unfinished() > 0) {
      fabric_->CompleteSend();
      Poll();
    }
  }
  void Deliver(wire::Message message, ConstBytes payload = {}, uint32_t invalidated_key = 0) {
    message.base.sequence = ++sequence_;
    message.base.buffers = 16;
    message.base.acknowledged = acknowledged_;
    std::vector<std::byte> bytes(wire::kHeaderBytesMax + payload.size());
    bytes.resize(wire::Encode(message, payload.size(), bytes));
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    fabric_->Deliver(queue_pair_, bytes, invalidated_key);
  }
  // The message that was sent as number `index`.
  wire::Message Sent(size_t index) {
    const FakeFabric::Posted posted = fabric_->sends().at(index);
    wire::Message message;
    EXPECT_FALSE(wire::Decode(posted.bytes, message));
    return message;
  }
  Memory& NewMemory(size_t bytes, Exposure exposure = Exposure::kPerOperation) {
    return memories_.emplace_back(side_, bytes, exposure);
  }
  Job& NewJob(Memory& memory, bool is_send, uint64_t offset, uint64_t length) {
    return jobs_.emplace_back(memory, is_send, offset, length);
  }
  std::optional<Recorder::Finished> Result(const Job& job) const {
    return side_.recorder.Find(job.transfer);
  }
  Failure Closed() {
    EXPECT_EQ(side_.recorder.closed().size(), 1u);
    return side_.recorder.closed().empty() ? Failure{} : side_.recorder.closed()[0].failure;
  }

  std::deque<Memory> memories_;
  std::deque<Job> jobs_;
  std::string log_;
  FakeFabric* fabric_ = nullptr;
  fabric::QueuePairId queue_pair_{};
  uint32_t sequence_ = 0;
  uint32_t acknowledged_ = 0;
  Side side_;
};

}  // namespace esdp::provider

#endif  // ESDP_TESTS_PROVIDER_SCRIPTED_H_
