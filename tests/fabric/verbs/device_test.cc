#include "impl/fabric/verbs/device.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "impl/base/status.h"
#include "impl/fabric/verbs/completion_queues.h"
#include "impl/fabric/verbs/region_table.h"
#include "impl/fabric/verbs/verbs_fabric.h"

namespace esdp::fabric::verbs {
namespace {

// A system with up to two devices, as the libraries would show it.
struct FakeSystem {
  ibv_device devices[2]{};
  ibv_context contexts[2]{};
  ibv_context* list[3]{};
  int count = 0;
  ibv_device_attr attributes{};
  ibv_port_attr port{};
  ibv_pd domain{};
  ibv_mr region{};
  int register_error = 0;
  int last_access = 0;
  ibv_comp_channel channel{};
  ibv_cq queues[2]{};
  int queues_made = 0;
  std::vector<const ibv_cq*> full_polls;
};
FakeSystem* fake = nullptr;

Calls FakeCalls() {
  Calls calls{};
  calls.get_devices = [](int* count) -> ibv_context** {
    *count = fake->count;
    return fake->count == 0 ? nullptr : fake->list;
  };
  calls.free_devices = [](ibv_context**) {};
  calls.query_device = [](ibv_context*, ibv_device_attr* attributes) {
    *attributes = fake->attributes;
    return 0;
  };
  calls.query_port = [](ibv_context*, uint8_t, ibv_port_attr* port) {
    *port = fake->port;
    return 0;
  };
  calls.alloc_pd = [](ibv_context*) { return &fake->domain; };
  calls.dealloc_pd = [](ibv_pd*) { return 0; };
  calls.reg_mr = [](ibv_pd*, void*, size_t, int access) -> ibv_mr* {
    fake->last_access = access;
    errno = fake->register_error;
    return fake->register_error == 0 ? &fake->region : nullptr;
  };
  calls.dereg_mr = [](ibv_mr*) { return 0; };
  calls.create_comp_channel = [](ibv_context*) { return &fake->channel; };
  calls.destroy_comp_channel = [](ibv_comp_channel*) { return 0; };
  calls.create_cq = [](ibv_context*, int, ibv_comp_channel*) {
    return &fake->queues[fake->queues_made++];
  };
  calls.destroy_cq = [](ibv_cq*) { return 0; };
  calls.poll_cq = [](ibv_cq* queue, int most, ibv_wc*) {
    fake->full_polls.push_back(queue);
    return most;
  };
  return calls;
}

class DeviceTest : public ::testing::Test {
 protected:
  DeviceTest() {
    fake = &system_;
    for (int i = 0; i < 2; ++i) {
      system_.contexts[i].device = &system_.devices[i];
      system_.contexts[i].async_fd = eventfd(0, EFD_CLOEXEC);
      system_.devices[i].transport_type = IBV_TRANSPORT_IB;
      system_.list[i] = &system_.contexts[i];
    }
    strcpy(system_.devices[0].name, "mlx5_0");
    strcpy(system_.devices[1].name, "mlx5_1");
    system_.attributes.phys_port_cnt = 1;
    system_.attributes.max_mr_size = uint64_t{1} << 40;
    system_.attributes.max_qp_wr = 1000;
    system_.attributes.max_sge = 30;
    system_.attributes.max_sge_rd = 30;
    system_.attributes.max_qp_rd_atom = 16;
    system_.attributes.max_cqe = 4096;
    system_.attributes.max_mw = 100;
    system_.attributes.device_cap_flags =
        IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
    system_.port.state = IBV_PORT_ACTIVE;
    system_.port.max_msg_sz = 1u << 20;
  }
  ~DeviceTest() override {
    for (ibv_context& context : system_.contexts) close(context.async_fd);
  }

  absl::StatusOr<std::unique_ptr<Device>> Open(const std::string& name = "") {
    return Device::Open(calls_, name);
  }
  static bool Contains(const absl::Status& status, const std::string& text) {
    return FromAbsl(status.message()).find(text) != std::string_view::npos;
  }

  FakeSystem system_;
  const Calls calls_ = FakeCalls();
};

TEST_F(DeviceTest, ASystemWithoutDevicesNamesTheModulesToLoad) {
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Contains(status, "ib_uverbs")) << status;
  EXPECT_TRUE(Contains(status, "rdma_ucm")) << status;
}

TEST_F(DeviceTest, ADeviceThatIsNotThereIsRefusedWithThoseThatAre) {
  system_.count = 2;
  const absl::Status status = Open("mlx5_7").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Contains(status, "mlx5_7")) << status;
  EXPECT_TRUE(Contains(status, "mlx5_0, mlx5_1")) << status;
}

TEST_F(DeviceTest, ANamedDeviceIsTaken) {
  system_.count = 2;
  EXPECT_STREQ((*Open("mlx5_1"))->name(), "mlx5_1");
}

TEST_F(DeviceTest, TheActiveDevicesAreNamedInTheirOrder) {
  EXPECT_TRUE(ActiveDevices(calls_).empty());
  system_.count = 2;
  EXPECT_EQ(ActiveDevices(calls_), (std::vector<std::string>{"mlx5_0", "mlx5_1"}));
  system_.port.state = IBV_PORT_DOWN;
  EXPECT_TRUE(ActiveDevices(calls_).empty());
}

TEST_F(DeviceTest, WithoutANameTheDeviceNeedsAnActivePort) {
  system_.count = 1;
  EXPECT_STREQ((*Open())->name(), "mlx5_0");
  system_.port.state = IBV_PORT_DOWN;
  EXPECT_TRUE(Contains(Open().status(), "active port")) << Open().status();
}

TEST_F(DeviceTest, LimitsAreThoseOfTheDevice) {
  system_.count = 1;
  const Limits limits = (*Open())->limits();
  EXPECT_EQ(limits.region_bytes_max, uint64_t{1} << 40);
  EXPECT_EQ(limits.message_bytes_max, 1u << 20);
  EXPECT_EQ(limits.send_work_max, 500u);
  EXPECT_EQ(limits.receive_work_max, 1000u);
  EXPECT_EQ(limits.reads_in_flight_max, 16u);
  EXPECT_TRUE(limits.windows);
  EXPECT_TRUE(limits.remote_invalidate);
  EXPECT_FALSE(limits.initiator_speaks_first);
  EXPECT_TRUE(limits.sends_wait_for_reads);
  EXPECT_FALSE(limits.tells_why);
  EXPECT_EQ(limits.private_data_max, 56u);
  EXPECT_EQ(limits.answer_data_max, 196u);
}

TEST_F(DeviceTest, AnIwarpDeviceReadsIntoOneEntryAndItsInitiatorSpeaksFirst) {
  system_.count = 1;
  system_.devices[0].transport_type = IBV_TRANSPORT_IWARP;
  system_.attributes.max_sge_rd = 0;
  const Limits limits = (*Open())->limits();
  EXPECT_EQ(limits.read_scatter_gather_max, 1u);
  EXPECT_TRUE(limits.initiator_speaks_first);
  EXPECT_FALSE(limits.sends_wait_for_reads);
  EXPECT_FALSE(limits.tells_why);
  EXPECT_EQ(limits.private_data_max, 251u);
}

TEST_F(DeviceTest, WindowsThatDoNotCheckTheirRangeAreNotUsed) {
  system_.count = 1;
  system_.attributes.vendor_id = 0xffffff;  // rdma_rxe
  EXPECT_FALSE((*Open())->limits().windows);
  system_.attributes.vendor_id = 0x2c9;
  system_.attributes.max_mw = 0;
  EXPECT_FALSE((*Open())->limits().windows);
}

TEST_F(DeviceTest, TheDescriptorOfItsEventsDoesNotBlock) {
  system_.count = 1;
  const auto device = Open();
  ASSERT_TRUE(device.ok());
  EXPECT_NE(fcntl(system_.contexts[0].async_fd, F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(DeviceTest, ALimitOnLockedMemoryIsNamedWithItsCure) {
  system_.count = 1;
  system_.register_error = ENOMEM;
  const auto device = Open();
  RegionTable regions(**device);
  std::byte memory[64];
  const absl::Status status = regions.Register(memory, sizeof memory, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Contains(status, "RLIMIT_MEMLOCK")) << status;
  EXPECT_TRUE(Contains(status, "ulimit -l")) << status;
}

TEST_F(DeviceTest, RightsAreRegisteredAsTheyWereAskedFor) {
  system_.count = 1;
  system_.attributes.max_mw = 0;
  const auto device = Open();
  RegionTable regions(**device);
  std::byte memory[64];
  ASSERT_TRUE(regions.Register(memory, sizeof memory, {.remote_read = true}).ok());
  EXPECT_EQ(system_.last_access, IBV_ACCESS_REMOTE_READ);
  // The device wants the right to write here from whoever gives it away.
  ASSERT_TRUE(regions.Register(memory, sizeof memory, {.remote_write = true}).ok());
  EXPECT_EQ(system_.last_access, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE);
}

TEST_F(DeviceTest, CompletionQueuesThatAreAlwaysFullArePolledInTurn) {
  system_.count = 1;
  system_.channel.fd = eventfd(0, EFD_CLOEXEC);
  const auto device = *Open();
  CompletionQueues queues(*device);
  ASSERT_TRUE(queues.Open().ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queues.Reserve(system_.attributes.max_cqe).ok());
  std::array<ibv_wc, 4> found;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(queues.Poll(absl::MakeSpan(found)), found.size());
  const ibv_cq* const one = &system_.queues[0];
  const ibv_cq* const two = &system_.queues[1];
  EXPECT_EQ(system_.full_polls, (std::vector<const ibv_cq*>{one, two, one, two}));
  close(system_.channel.fd);
}

}  // namespace
}  // namespace esdp::fabric::verbs
