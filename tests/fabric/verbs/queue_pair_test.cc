#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "impl/fabric/port.h"
#include "tests/fabric/verbs/fake_system.h"

namespace esdp::fabric::verbs {
namespace {

class QueuePairTest : public FakeSystemTest {
 protected:
  // A queue pair in the ready state, with one send posted.
  void Connect() {
    id_ = Ask(std::chrono::seconds(60));
    Tell(RDMA_CM_EVENT_ESTABLISHED, 1, 1);
    EXPECT_EQ(Next().type, RendezvousType::kEstablished);
    SendWork work;
    work.work_id = 1;
    ASSERT_TRUE(fabric_->PostSend(id_, {&work, 1}).ok());
  }

  // What the device has to tell of it, all at once.
  void Raise(ibv_event_type type) { Raise(QueuePairEvent(type)); }
  ibv_async_event QueuePairEvent(ibv_event_type type) {
    ibv_async_event event{};
    event.event_type = type;
    event.element.qp = system_.queue_pairs.back().get();
    return event;
  }
  static ibv_async_event PortEvent(ibv_event_type type, int port) {
    ibv_async_event event{};
    event.event_type = type;
    event.element.port_num = port;
    return event;
  }
  void RaiseOfPort(ibv_event_type type, int port) {
    Raise(PortEvent(type, port));
    for (int i = 0; i < 20; ++i) (void)Poll();
  }
  void Raise(const ibv_async_event& event) {
    system_.device_events.push_back(event);
    const uint64_t one = 1;
    ASSERT_EQ(write(system_.context.async_fd, &one, sizeof one), ssize_t{sizeof one});
  }
  std::unique_ptr<Fabric> MakeOther() {
    VerbsOptions options;
    options.manager = MakeManager(calls_);
    options.calls = &calls_;
    options.clock = &clock_;
    return *MakeVerbsFabric(options);
  }
  void RaiseFor(Fabric& reader, const ibv_async_event& event) {
    Raise(event);
    std::array<Completion, 4> completions;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(reader.Poll(absl::MakeSpan(completions)), 0u);
    EXPECT_TRUE(system_.device_events.empty()) << "it has not been read";
    uint64_t count = 0;
    ASSERT_EQ(read(system_.context.async_fd, &count, sizeof count), ssize_t{sizeof count});
  }
  // A send of so many bytes has them in the list itself.
  bool TheListHolds(uint32_t length) {
    Connect();
    alignas(4096) static std::byte memory[4096];
    const ScatterEntry entry{*fabric_->Register(memory, sizeof(memory), {}), memory, length};
    SendWork work;
    work.entries = &entry;
    work.entry_count = 1;
    EXPECT_TRUE(fabric_->PostSend(id_, {&work, 1}).ok());
    return (system_.sent.back().send_flags & IBV_SEND_INLINE) != 0;
  }
  void Complete(ibv_wc_status status) {
    ibv_wc completion{};
    completion.wr_id = system_.sent.back().wr_id;
    completion.status = status;
    completion.qp_num = system_.queue_pairs.back()->qp_num;
    system_.completions.push_back(completion);
  }

  bool HasEnded() {
    for (int i = 0; i < 20; ++i) (void)Poll();
    return system_.Count("disconnect") != 0;
  }

  QueuePairId id_ = QueuePairId::kNone;
};
ESDP_ON_BOTH_TRANSPORTS(QueuePairTest);

TEST_P(QueuePairTest, ARequestThatCouldNotBeServedIsTheEndOfThePeerOnIwarp) {
  Connect();
  Raise(IBV_EVENT_QP_REQ_ERR);
  (void)Poll();
  Complete(IBV_WC_WR_FLUSH_ERR);
  const RendezvousEvent ended = Next();
  EXPECT_EQ(ended.type, RendezvousType::kDisconnected);
  EXPECT_EQ(ended.cause, IsIwarp() ? Cause::kPeerDisconnect : Cause::kProtocol)
      << ToString(ended.cause);
}

TEST_P(QueuePairTest, WhatACompletionTellsOfTheEndComesBeforeTheDevicesWord) {
  Connect();
  Raise(IBV_EVENT_QP_FATAL);
  Complete(IsIwarp() ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_RETRY_EXC_ERR);
  system_.beside_events.swap(system_.completions);
  const RendezvousEvent ended = Next();
  EXPECT_EQ(ended.type, RendezvousType::kDisconnected);
  EXPECT_EQ(ended.cause, Cause::kPeerReset) << ToString(ended.cause);
}

TEST_P(QueuePairTest, ALinkThatStaysDownEndsConnectionsThatHaveNothingToSend) {
  Connect();
  Complete(IBV_WC_SUCCESS);
  EXPECT_EQ(Poll(), 1u);
  RaiseOfPort(IBV_EVENT_PORT_ERR, 1);
  EXPECT_LE(fabric_->NextDeadline(), fabric_->Now() + std::chrono::seconds(10));
  clock_.Pass(std::chrono::seconds(9));
  EXPECT_FALSE(HasEnded());
  clock_.Pass(std::chrono::seconds(1));
  const RendezvousEvent ended = Next();
  EXPECT_EQ(ended.type, RendezvousType::kDisconnected);
  EXPECT_EQ(ended.cause, Cause::kPeerReset) << ToString(ended.cause);
  EXPECT_NE(ended.detail.find("link"), std::string::npos) << ended.detail;
}

// An event can be read once, and librdmacm opens a device once for all of a process.
TEST_P(QueuePairTest, AnEventThatAnotherFabricOnTheDeviceHasReadIsHeardAllTheSame) {
  const std::unique_ptr<Fabric> other = MakeOther();
  Connect();
  Complete(IBV_WC_SUCCESS);
  EXPECT_EQ(Poll(), 1u);
  RaiseFor(*other, PortEvent(IBV_EVENT_PORT_ERR, 1));
  pollfd waits{fabric_->fd(), POLLIN, 0};
  EXPECT_EQ(poll(&waits, 1, 0), 1) << "who waits is not woken";
  for (int i = 0; i < 20; ++i) (void)Poll();
  EXPECT_EQ(poll(&waits, 1, 0), 0) << "who waits is woken for nothing";
  clock_.Pass(std::chrono::seconds(10));
  EXPECT_EQ(Next().type, RendezvousType::kDisconnected);
}

TEST_P(QueuePairTest, WhatAnotherFabricHasReadOfAQueuePairReachesTheOneThatHasIt) {
  const std::unique_ptr<Fabric> other = MakeOther();
  Connect();
  RaiseFor(*other, QueuePairEvent(IBV_EVENT_QP_FATAL));
  (void)Poll();
  Complete(IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(Next().cause, Cause::kDevice);
}

TEST_P(QueuePairTest, WhatIsOfAQueuePairWakesNobodyElse) {
  const std::unique_ptr<Fabric> other = MakeOther();
  Connect();
  RaiseFor(*fabric_, QueuePairEvent(IBV_EVENT_SQ_DRAINED));
  pollfd waits{other->fd(), POLLIN, 0};
  EXPECT_EQ(poll(&waits, 1, 0), 0);
}

// The system lets descriptors of descriptors be five deep. Of these three belong to an application
// that watches a queue from a loop in a loop, and one to the Context.
TEST_P(QueuePairTest, TheDescriptorLeavesRoomForThoseAboveIt) {
  std::vector<int> chain{fabric_->fd()};
  for (int i = 0; i < 4; ++i) {
    const int above = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{.events = EPOLLIN, .data = {}};
    EXPECT_EQ(epoll_ctl(above, EPOLL_CTL_ADD, chain.back(), &event), 0) << "at " << i;
    chain.push_back(above);
  }
  for (size_t i = 1; i < chain.size(); ++i) close(chain[i]);
}

TEST_P(QueuePairTest, AFabricThatIsGoneIsToldNothing) {
  std::unique_ptr<Fabric> other = MakeOther();
  Connect();
  Complete(IBV_WC_SUCCESS);
  EXPECT_EQ(Poll(), 1u);
  other.reset();
  RaiseOfPort(IBV_EVENT_PORT_ERR, 1);
  clock_.Pass(std::chrono::seconds(10));
  EXPECT_EQ(Next().type, RendezvousType::kDisconnected);
}

TEST_P(QueuePairTest, ALinkThatComesBackOrIsAnotherPortsEndsNothing) {
  Connect();
  RaiseOfPort(IBV_EVENT_PORT_ERR, 1);
  clock_.Pass(std::chrono::seconds(9));
  RaiseOfPort(IBV_EVENT_PORT_ACTIVE, 1);
  RaiseOfPort(IBV_EVENT_PORT_ERR, 2);
  clock_.Pass(std::chrono::seconds(30));
  EXPECT_FALSE(HasEnded());
}

TEST_P(QueuePairTest, ADeviceThatFailsEndsItsConnections) {
  Connect();
  RaiseOfPort(IBV_EVENT_DEVICE_FATAL, 0);
  Complete(IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(Next().cause, Cause::kDevice);
}

TEST_P(QueuePairTest, ADeviceThatCannotSendIsNotSaidToProtectMemory) {
  Connect();
  Complete(IBV_WC_LOC_QP_OP_ERR);
  std::array<Completion, 1> failed;
  ASSERT_EQ(fabric_->Poll(absl::MakeSpan(failed)), 1u);
  EXPECT_EQ(failed[0].status, IsIwarp() ? WorkStatus::kFlushed : WorkStatus::kTransport);
  const RendezvousEvent ended = Next();
  EXPECT_EQ(ended.cause, IsIwarp() ? Cause::kPeerReset : Cause::kDevice);
  EXPECT_NE(ended.detail.find("route"), std::string::npos) << ended.detail;
}

TEST_P(QueuePairTest, WhatTheProcessorDoesNotReachIsLeftToTheDevice) {
  Connect();
  alignas(4096) static std::byte names[4096];
  const auto ordinary = fabric_->Register(names, 64, {});
  const auto region = fabric_->RegisterDmaBuf({.fd = 7, .offset = 8192}, names, 4096, {});
  ASSERT_TRUE(region.ok()) << region.status();
  ASSERT_EQ(system_.dma_bufs.size(), 1u);
  EXPECT_EQ(system_.dma_bufs[0].fd, 7);
  EXPECT_EQ(system_.dma_bufs[0].offset, 8192u);
  EXPECT_EQ(system_.dma_bufs[0].length, 4096u);
  EXPECT_EQ(system_.dma_bufs[0].address, reinterpret_cast<uint64_t>(names));
  for (const RegionId from : {*ordinary, *region}) {
    const ScatterEntry entry{from, names, 8};
    SendWork work;
    work.entries = &entry;
    work.entry_count = 1;
    ASSERT_TRUE(fabric_->PostSend(id_, {&work, 1}).ok());
    EXPECT_EQ((system_.sent.back().send_flags & IBV_SEND_INLINE) != 0, from == *ordinary);
  }
}

TEST_P(QueuePairTest, ADeviceThatTakesNoDmaBufSaysSo) {
  alignas(4096) static std::byte names[4096];
  system_.dma_buf_error = EOPNOTSUPP;
  const auto refused = fabric_->RegisterDmaBuf({.fd = 7, .offset = 0}, names, 4096, {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnimplemented) << refused.status();
  EXPECT_NE(refused.status().message().find("fake0"), absl::string_view::npos);
  system_.dma_buf_error = EBADF;
  EXPECT_EQ(fabric_->RegisterDmaBuf({.fd = 7, .offset = 0}, names, 4096, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(system_.regions, 0);
}

TEST_P(QueuePairTest, AMessageOf64BytesGoesInTheListHeaderIncluded) {
  EXPECT_TRUE(TheListHolds(16 + 64));
}

TEST_P(QueuePairTest, NoMoreGoesInTheListThanTheDeviceTakesThere) {
  system_.inline_data_max = 64;
  EXPECT_FALSE(TheListHolds(16 + 64));
}

TEST_P(QueuePairTest, SmallWorkGoesInTheListUnlessItInvalidatesOnIwarp) {
  Connect();
  EXPECT_EQ(system_.sent.back().opcode, IBV_WR_SEND);
  EXPECT_TRUE((system_.sent.back().send_flags & IBV_SEND_INLINE) != 0);

  SendWork work;
  work.has_invalidate = true;
  work.invalidate_key = 7;
  ASSERT_TRUE(fabric_->PostSend(id_, {&work, 1}).ok());
  EXPECT_EQ(system_.sent.back().opcode, IBV_WR_SEND_WITH_INV);
  EXPECT_EQ((system_.sent.back().send_flags & IBV_SEND_INLINE) == 0, IsIwarp());
  EXPECT_EQ(system_.sent.back().invalidate_rkey, 7u);
  EXPECT_EQ(system_.sent.back().wr.rdma.rkey, 7u);
}

// The kernel's siw would answer it from the wrong place.
TEST_P(QueuePairTest, AShortReadAcrossAPageOfThePeerIsTwoOnIwarp) {
  Connect();
  Complete(IBV_WC_SUCCESS);
  EXPECT_EQ(Poll(), 1u);
  std::array<std::byte, 64> memory{};
  const auto region = fabric_->Register(memory.data(), memory.size(), {.local_write = true});
  ASSERT_TRUE(region.ok()) << region.status();
  for (const uint32_t length : {20u, 33u}) {
    const ScatterEntry entry{*region, memory.data(), length};
    SendWork work;
    work.work_id = length;
    work.opcode = Opcode::kRead;
    work.entries = &entry;
    work.entry_count = 1;
    work.remote = {.key = 5, .address = 3 * 4096 - 6};
    system_.sent.clear();
    ASSERT_TRUE(fabric_->PostSend(id_, {&work, 1}).ok());
    if (!IsIwarp() || length > 32) {
      ASSERT_EQ(system_.sent.size(), 1u);
      EXPECT_EQ(system_.sent[0].sg_list[0].length, length);
    } else {
      ASSERT_EQ(system_.sent.size(), 2u);
      const ibv_send_wr &first = system_.sent[0], &second = system_.sent[1];
      EXPECT_EQ(first.sg_list[0].length, 6u);
      EXPECT_EQ(first.wr.rdma.remote_addr, 3u * 4096 - 6);
      EXPECT_EQ(second.sg_list[0].length, 14u);
      EXPECT_EQ(second.sg_list[0].addr, first.sg_list[0].addr + 6);
      EXPECT_EQ(second.wr.rdma.remote_addr, 3u * 4096);
      EXPECT_EQ(second.wr.rdma.rkey, 5u);
      Complete(IBV_WC_SUCCESS);
      EXPECT_EQ(Poll(), 0u) << "the first part is still on its way";
      std::swap(system_.sent[0], system_.sent[1]);
    }
    Complete(IBV_WC_SUCCESS);
    EXPECT_EQ(Poll(), 1u);
  }
  EXPECT_TRUE(fabric_->Deregister(*region).ok()) << "nothing uses it any more";
}

TEST_P(QueuePairTest, ArrivalsAreToldOnlyWhereSomebodyMayWait) {
  Connect();
  Complete(IBV_WC_SUCCESS);
  EXPECT_FALSE(fabric_->ExpectWaits(false));
  system_.asked.clear();
  EXPECT_EQ(Poll(), 1u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Poll(), 0u);
  EXPECT_EQ(system_.Count("arm"), 0u);

  EXPECT_TRUE(fabric_->ExpectWaits(true));
  EXPECT_EQ(Poll(), 0u);
  EXPECT_EQ(Poll(), 0u);
  EXPECT_EQ(system_.Count("arm"), 1u);
  EXPECT_FALSE(fabric_->ExpectWaits(true)) << "it has not been silent";
}

}  // namespace
}  // namespace esdp::fabric::verbs
