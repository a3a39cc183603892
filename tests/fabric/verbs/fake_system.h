#ifndef ESDP_TESTS_FABRIC_VERBS_FAKE_SYSTEM_H_
#define ESDP_TESTS_FABRIC_VERBS_FAKE_SYSTEM_H_

#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "impl/fabric/port.h"
#include "impl/fabric/verbs/calls.h"
#include "impl/fabric/verbs/verbs_fabric.h"
#include "tests/base/manual_clock.h"

namespace esdp::fabric::verbs {

// A device and a connection manager that only the test sees. They write down what they are asked.
struct FakeSystem {
  ibv_device device{};
  ibv_device other_device{};  // of the same kind, where a test opens it by its name
  ibv_context context{};
  ibv_context other_context{};
  ibv_context* list[3]{};
  ibv_device_attr attributes{};
  uint8_t link_layer = IBV_LINK_LAYER_UNSPECIFIED;
  ibv_pd domain{};
  ibv_comp_channel completion_channel{};
  ibv_cq queue{};
  ibv_cq other_queue{};
  int queue_entries = 0;
  rdma_event_channel event_channel{};  // the descriptor of all channels
  std::vector<std::unique_ptr<rdma_event_channel>> channels;
  std::deque<ibv_async_event> device_events;
  std::deque<ibv_wc> completions;
  std::deque<ibv_wc> other_completions;  // of the other device
  std::deque<ibv_wc> beside_events;  // completions that come while an event of the device is told
  std::vector<ibv_send_wr> sent;
  std::vector<ibv_qp*> sent_on;  // beside each of them
  struct Receive {
    ibv_qp* queue_pair;
    uint64_t work;
    ibv_sge entry;
  };
  std::deque<Receive> receives;
  std::deque<rdma_cm_event> events;
  std::vector<std::unique_ptr<rdma_cm_id>> ids;
  std::vector<std::unique_ptr<ibv_qp>> queue_pairs;
  std::vector<std::string> asked;
  std::vector<uint16_t> listens;  // the port of each try to listen
  std::vector<std::pair<sockaddr_storage, sockaddr_storage>> resolved;  // source and target
  std::vector<std::byte> private_data;                                  // of the last connect
  uint16_t free_port = 20'000;                                          // where any will do
  int bind_error = 0;
  int bind_errors = 0;               // so many times the manager has the port in use
  int in_use = EADDRINUSE;           // what it says then
  ibv_context* bound_to = &context;  // whose the addresses are that are bound
  int listen_errors = 0;             // so many times the port is taken
  int regions = 0;
  struct DmaBufAsked {
    int fd;
    uint64_t offset;
    uint64_t length;
    uint64_t address;
    int access;
  };
  std::vector<DmaBufAsked> dma_bufs;
  int dma_buf_error = 0;
  uint32_t inline_data_max = 512;

  size_t Count(const std::string& what) const {
    return static_cast<size_t>(std::count(asked.begin(), asked.end(), what));
  }
};
inline FakeSystem* fake = nullptr;

inline int Note(const char* what) {
  fake->asked.emplace_back(what);
  return 0;
}

inline void AddDevice(Calls& calls) {
  calls.get_devices = [](int* count) {
    *count = 2;
    return fake->list;
  };
  calls.free_devices = [](ibv_context**) {};
  calls.query_device = [](ibv_context*, ibv_device_attr* attributes) {
    *attributes = fake->attributes;
    return 0;
  };
  calls.query_port = [](ibv_context*, uint8_t, ibv_port_attr* port) {
    port->link_layer = fake->link_layer;
    port->state = IBV_PORT_ACTIVE;
    port->max_msg_sz = 1u << 20;
    return 0;
  };
  calls.get_async_event = [](ibv_context*, ibv_async_event* event) {
    if (fake->device_events.empty()) return -1;
    *event = fake->device_events.front();
    fake->device_events.pop_front();
    fake->completions.swap(fake->beside_events);
    return 0;
  };
  calls.ack_async_event = [](ibv_async_event*) {};
  calls.alloc_pd = [](ibv_context*) { return &fake->domain; };
  calls.dealloc_pd = [](ibv_pd*) { return 0; };
  calls.reg_mr = [](ibv_pd*, void*, size_t, int) {
    ++fake->regions;
    return new ibv_mr{};
  };
  calls.reg_dmabuf_mr = [](ibv_pd*, uint64_t offset, size_t length, uint64_t address, int fd,
                           int access) -> ibv_mr* {
    errno = fake->dma_buf_error;
    if (fake->dma_buf_error != 0) return nullptr;
    fake->dma_bufs.push_back({fd, offset, length, address, access});
    ++fake->regions;
    return new ibv_mr{};
  };
  calls.dereg_mr = [](ibv_mr* region) {
    --fake->regions;
    delete region;
    return 0;
  };
  calls.create_comp_channel = [](ibv_context*) { return &fake->completion_channel; };
  calls.destroy_comp_channel = [](ibv_comp_channel*) { return 0; };
  calls.create_cq = [](ibv_context* context, int entries, ibv_comp_channel*) {
    fake->queue_entries = entries;
    return context == &fake->context ? &fake->queue : &fake->other_queue;
  };
  calls.destroy_cq = [](ibv_cq*) { return Note("destroy_cq"); };
  calls.get_cq_event = [](ibv_comp_channel*, ibv_cq**) { return -1; };
  calls.request_notify = [](ibv_cq*) { return Note("arm"); };
  calls.poll_cq = [](ibv_cq* queue, int, ibv_wc* completions) {
    auto& come = queue == &fake->queue ? fake->completions : fake->other_completions;
    if (come.empty()) return 0;
    *completions = come.front();
    come.pop_front();
    return 1;
  };
  calls.post_send = [](ibv_qp* queue_pair, ibv_send_wr* work, ibv_send_wr**) {
    for (; work != nullptr; work = work->next) {
      fake->sent.push_back(*work);
      fake->sent_on.push_back(queue_pair);
    }
    return 0;
  };
  calls.post_receive = [](ibv_qp* queue_pair, ibv_recv_wr* work, ibv_recv_wr**) {
    for (; work != nullptr; work = work->next) {
      fake->receives.push_back({queue_pair, work->wr_id, work->sg_list[0]});
    }
    return 0;
  };
  calls.modify_qp = [](ibv_qp*, ibv_qp_attr* attributes, int) {
    return attributes->qp_state == IBV_QPS_ERR ? Note("stop") : -1;
  };
}

inline void AddManager(Calls& calls) {
  calls.create_event_channel = [] {
    return fake->channels.emplace_back(std::make_unique<rdma_event_channel>(fake->event_channel))
        .get();
  };
  calls.destroy_event_channel = [](rdma_event_channel*) {};
  calls.get_cm_event = [](rdma_event_channel* channel, rdma_cm_event** event) {
    errno = EAGAIN;
    if (fake->events.empty()) return -1;
    const rdma_event_channel* const its = fake->events.front().id->channel;
    if (its != nullptr && its != channel) return -1;
    *event = new rdma_cm_event(fake->events.front());
    fake->events.pop_front();
    if (fake->events.empty()) {
      uint64_t count = 0;
      (void)!read(fake->event_channel.fd, &count, sizeof count);
    }
    return 0;
  };
  calls.ack_cm_event = [](rdma_cm_event* event) {
    delete event;
    return 0;
  };
  calls.create_id = [](rdma_event_channel* channel, rdma_cm_id** id, void* context,
                       rdma_port_space space) {
    *id = fake->ids.emplace_back(std::make_unique<rdma_cm_id>()).get();
    (*id)->channel = channel;
    (*id)->context = context;
    (*id)->ps = space;
    (*id)->verbs = &fake->context;
    (*id)->port_num = 1;
    return 0;
  };
  calls.destroy_id = [](rdma_cm_id*) { return Note("destroy_id"); };
  calls.bind_address = [](rdma_cm_id* id, sockaddr* address) {
    std::memcpy(&id->route.addr.src_storage, address, sizeof(sockaddr_in));
    in_port_t& port = id->route.addr.src_sin.sin_port;
    if (port == 0) port = htons(fake->free_port++);
    id->verbs = fake->bound_to;
    (void)Note("bind");
    const bool taken = fake->bind_errors > 0;
    if (taken) --fake->bind_errors;
    errno = taken ? fake->in_use : fake->bind_error;
    return errno == 0 ? 0 : -1;
  };
  calls.listen = [](rdma_cm_id* id, int) {
    const bool taken = fake->listen_errors > 0;
    if (taken) --fake->listen_errors;
    fake->listens.push_back(ntohs(id->route.addr.src_sin.sin_port));
    errno = EADDRINUSE;
    return taken ? -1 : 0;
  };
  calls.resolve_address = [](rdma_cm_id*, sockaddr* source, sockaddr* target, int) {
    const size_t bytes = target->sa_family == AF_IB ? sizeof(sockaddr_ib) : sizeof(sockaddr_in);
    auto& [from, to] = fake->resolved.emplace_back();
    if (source != nullptr) std::memcpy(&from, source, bytes);
    std::memcpy(&to, target, bytes);
    return 0;
  };
  calls.resolve_route = [](rdma_cm_id*, int) { return 0; };
  calls.create_qp = [](rdma_cm_id* id, ibv_pd*, ibv_qp_init_attr* attributes) {
    attributes->cap.max_inline_data =
        std::min(attributes->cap.max_inline_data, fake->inline_data_max);
    id->qp = fake->queue_pairs.emplace_back(std::make_unique<ibv_qp>()).get();
    id->qp->qp_num = static_cast<uint32_t>(fake->queue_pairs.size());
    id->qp->qp_context = attributes->qp_context;
    return 0;
  };
  calls.destroy_qp = [](rdma_cm_id*) { (void)Note("destroy_qp"); };
  calls.connect = [](rdma_cm_id*, rdma_conn_param* parameters) {
    const auto* data = static_cast<const std::byte*>(parameters->private_data);
    fake->private_data.assign(data, data + parameters->private_data_len);
    return Note("connect");
  };
  calls.accept = [](rdma_cm_id*, rdma_conn_param*) { return Note("accept"); };
  calls.reject = [](rdma_cm_id*, const void*, uint8_t) { return Note("reject"); };
  calls.disconnect = [](rdma_cm_id*) { return Note("disconnect"); };
}

// A verbs fabric on such a device, of InfiniBand or of iWARP.
class FakeSystemTest : public ::testing::TestWithParam<ibv_transport_type> {
 protected:
  FakeSystemTest() {
    fake = &system_;
    strcpy(system_.device.name, "fake0");
    system_.device.transport_type = GetParam();
    system_.context.device = &system_.device;
    system_.list[0] = &system_.context;
    strcpy(system_.other_device.name, "fake1");
    system_.other_device.transport_type = GetParam();
    system_.other_context.device = &system_.other_device;
    system_.list[1] = &system_.other_context;
    for (int* fd : {&system_.context.async_fd, &system_.other_context.async_fd,
                    &system_.completion_channel.fd, &system_.event_channel.fd}) {
      *fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    system_.attributes.phys_port_cnt = 1;
    system_.attributes.max_mr_size = 1 << 20;
    system_.attributes.max_qp_wr = 1000;
    system_.attributes.max_sge = 4;
    system_.attributes.max_qp_rd_atom = 16;
    system_.attributes.max_cqe = 1 << 20;
    AddDevice(calls_);
    AddManager(calls_);
    VerbsOptions options;
    options.manager = manager_ = MakeManager(calls_);
    options.calls = &calls_;
    options.clock = &clock_;
    fabric_ = *MakeVerbsFabric(options);
  }
  ~FakeSystemTest() override {
    fabric_.reset();
    for (const int fd : {system_.context.async_fd, system_.other_context.async_fd,
                         system_.completion_channel.fd, system_.event_channel.fd}) {
      close(fd);
    }
  }

  bool IsIwarp() const { return GetParam() == IBV_TRANSPORT_IWARP; }

  void Tell(rdma_cm_event_type type, uint8_t initiator_depth = 0, uint8_t responder_resources = 0) {
    rdma_cm_event event{};
    event.event = type;
    event.id = system_.ids.back().get();
    event.param.conn.initiator_depth = initiator_depth;
    event.param.conn.responder_resources = responder_resources;
    system_.events.push_back(event);
    const uint64_t one = 1;
    ASSERT_EQ(write(system_.event_channel.fd, &one, sizeof one), ssize_t{sizeof one});
    for (int i = 0; i < 20; ++i) EXPECT_EQ(Poll(), 0u);
  }

  // A queue pair whose request has gone to the peer.
  QueuePairId Ask(Duration patience) {
    const QueuePairId id = *fabric_->CreateQueuePair(
        {.send_work = 8, .receive_work = 8, .initiator_depth = 3, .responder_resources = 5});
    Address peer;
    peer.port = 7;
    EXPECT_TRUE(fabric_->Connect(id, {}, peer, {}, fabric_->Now() + patience).ok());
    Tell(RDMA_CM_EVENT_ADDR_RESOLVED);
    Tell(RDMA_CM_EVENT_ROUTE_RESOLVED);
    EXPECT_EQ(system_.Count("connect"), 1u);
    return id;
  }

  size_t Poll() {
    std::array<Completion, 4> completions;
    return fabric_->Poll(absl::MakeSpan(completions));
  }

  RendezvousEvent Next() {
    RendezvousEvent event;
    for (int waits = 0; waits < 1000; ++waits) {
      (void)Poll();
      if (fabric_->PollRendezvous(event)) return event;
      poll(nullptr, 0, 5);
    }
    ADD_FAILURE() << "no event";
    return event;
  }

  FakeSystem system_;
  Calls calls_{};
  ManualClock clock_;
  std::shared_ptr<Manager> manager_;
  std::unique_ptr<Fabric> fabric_;
};

#define ESDP_ON_BOTH_TRANSPORTS(Suite)                                     \
  INSTANTIATE_TEST_SUITE_P(                                                \
      On, Suite, ::testing::Values(IBV_TRANSPORT_IB, IBV_TRANSPORT_IWARP), \
      [](const auto& info) { return info.param == IBV_TRANSPORT_IB ? "InfiniBand" : "Iwarp"; })

}  // namespace esdp::fabric::verbs

#endif  // ESDP_TESTS_FABRIC_VERBS_FAKE_SYSTEM_H_
