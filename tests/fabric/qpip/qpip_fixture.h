#ifndef ESDP_TESTS_FABRIC_QPIP_QPIP_FIXTURE_H_
#define ESDP_TESTS_FABRIC_QPIP_QPIP_FIXTURE_H_

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "impl/fabric/qpip/qpip_fabric.h"
#include "tests/fabric/qpip/raw_peer.h"

namespace esdp::fabric::qpip {

// One qpip fabric and one raw peer.
class QpipTest : public ::testing::Test {
 protected:
  static constexpr size_t kMemoryBytes = 256 * 1024;

  QpipTest() { Open({}); }

  void Open(const QpipOptions& options) {
    events_.clear();
    completions_.clear();
    fabric_ = *MakeQpipFabric(options);
    memory_.assign(kMemoryBytes, std::byte{0});
    region_ = *fabric_->Register(memory_.data(), memory_.size(), {true, true, true});
    listener_ = *fabric_->Listen(Host(Family::kIpv4), 64);
  }

  static Address Host(Family family) {
    Address address;
    address.family = family;
    if (family == Family::kIpv4) address.bytes[12] = 127;
    address.bytes[15] = 1;
    return address;
  }
  uint16_t Port() { return fabric_->ListenerAddress(listener_)->port; }

  void Pump() {
    std::array<Completion, 16> batch;
    RendezvousEvent event;
    while (fabric_->PollRendezvous(event)) events_.push_back(event);
    const size_t count = fabric_->Poll(absl::MakeSpan(batch));
    completions_.insert(completions_.end(), batch.begin(),
                        batch.begin() + static_cast<ptrdiff_t>(count));
    while (fabric_->PollRendezvous(event)) events_.push_back(event);
  }
  bool PumpUntil(const std::function<bool()>& done, int milliseconds = 5000) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      Pump();
    }
    return true;
  }
  std::unique_ptr<RawPeer> MakePeer() {
    return std::make_unique<RawPeer>([this] { Pump(); });
  }

  std::optional<RendezvousEvent> NextEvent(RendezvousType type) {
    const auto find = [&] {
      return std::find_if(events_.begin(), events_.end(),
                          [&](const RendezvousEvent& event) { return event.type == type; });
    };
    if (!PumpUntil([&] { return find() != events_.end(); })) return std::nullopt;
    const auto found = find();
    const RendezvousEvent event = *found;
    events_.erase(found);
    return event;
  }
  Completion NextCompletion() {
    if (!PumpUntil([&] { return !completions_.empty(); })) {
      ADD_FAILURE() << "no completion came";
      return {};
    }
    const Completion completion = completions_.front();
    completions_.pop_front();
    return completion;
  }

  // The raw peer connects and is accepted; what it asked for and was given is returned by Reply().
  void Establish(const RawStartup& startup = {}, const QueuePairOptions& options = {}) {
    peer_ = MakePeer();
    ASSERT_TRUE(peer_->Connect(Port()));
    ASSERT_TRUE(peer_->Send(Startup(startup)));
    Accept(options);
    const Octets head = peer_->Receive(20);
    ASSERT_EQ(head.size(), 20u);
    reply_ = head + peer_->Receive(static_cast<size_t>(head[18] << 8 | head[19]));
    ASSERT_TRUE(NextEvent(RendezvousType::kEstablished).has_value());
  }
  void Accept(const QueuePairOptions& options = {}) {
    const auto request = NextEvent(RendezvousType::kConnectRequest);
    ASSERT_TRUE(request.has_value());
    queue_pair_ = *fabric_->CreateQueuePair(options);
    const absl::Status accepted = fabric_->Accept(request->request, queue_pair_, {});
    ASSERT_TRUE(accepted.ok()) << accepted;
  }

  ScatterEntry Entry(size_t offset, size_t length) {
    return {region_, memory_.data() + offset, static_cast<uint32_t>(length)};
  }
  void PostReceive(uint64_t id, size_t offset, size_t length) {
    const ScatterEntry entry = Entry(offset, length);
    const ReceiveWork work{.work_id = id, .entries = &entry, .entry_count = 1};
    const absl::Status posted = fabric_->PostReceive(queue_pair_, {&work, 1});
    ASSERT_TRUE(posted.ok()) << posted;
  }
  absl::Status Post(Opcode opcode, uint64_t id, size_t offset, size_t length,
                    RemoteRange remote = {}) {
    const ScatterEntry entry = Entry(offset, length);
    SendWork work;
    work.work_id = id;
    work.opcode = opcode;
    work.entries = &entry;
    work.entry_count = 1;
    work.remote = remote;
    return fabric_->PostSend(queue_pair_, {&work, 1});
  }
  uint32_t BindWindow(size_t offset, size_t length, Access access) {
    return fabric_->Bind(queue_pair_, region_, memory_.data() + offset, length, access)
        .value_or(RemoteRange{})
        .key;
  }
  Octets MemoryAt(size_t offset, size_t length) const {
    Octets out;
    for (size_t i = 0; i < length; ++i) {
      out.push_back(std::to_integer<uint8_t>(memory_[offset + i]));
    }
    return out;
  }

  // The peer is told this reason (layer and type, code), and the queue pair ends for this cause.
  void ExpectTerminate(uint16_t reason, Cause cause) {
    std::optional<RawSegment> segment = peer_->ReceiveSegment();
    while (segment && segment->opcode != 7) segment = peer_->ReceiveSegment();
    ASSERT_TRUE(segment.has_value()) << "no Terminate came";
    EXPECT_EQ(segment->queue, 2u);
    EXPECT_EQ(segment->sequence, 1u);
    EXPECT_EQ(Octets(segment->payload.begin(), segment->payload.begin() + 2), Number(reason, 2));
    terminate_ = segment->payload;
    EXPECT_TRUE(peer_->ReceiveEnd()) << "a reset may overtake the Terminate";
    ExpectEnd(cause);
  }
  void ExpectEnd(Cause cause) {
    const auto end = NextEvent(RendezvousType::kDisconnected);
    ASSERT_TRUE(end.has_value()) << "no kDisconnected came";
    EXPECT_EQ(end->cause, cause) << ToString(end->cause) << ": " << end->detail;
  }
  // Others may still connect and be served.
  void ExpectTheFabricWorks() {
    Establish();
    PostReceive(99, 0, 16);
    ASSERT_TRUE(peer_->Send(Frame(Untagged({}, Text("still here")))));
    while (true) {
      const Completion completion = NextCompletion();
      if (completion.work_id != 99) continue;
      EXPECT_EQ(completion.status, WorkStatus::kSuccess);
      EXPECT_EQ(MemoryAt(0, 10), Text("still here"));
      return;
    }
  }

  std::vector<std::byte> memory_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<RawPeer> peer_;
  RegionId region_{};
  ListenerId listener_{};
  QueuePairId queue_pair_{};
  Octets reply_;      // the MPA reply of Establish
  Octets terminate_;  // the payload of the last Terminate
  std::deque<RendezvousEvent> events_;
  std::deque<Completion> completions_;
};

}  // namespace esdp::fabric::qpip

#endif  // ESDP_TESTS_FABRIC_QPIP_QPIP_FIXTURE_H_
