#include "impl/fabric/verbs/device.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/escaping.h"
#include "impl/base/status.h"
#include "impl/fabric/verbs/native_path.h"

namespace esdp::fabric::verbs {
namespace {

constexpr uint32_t kScatterGatherMost = 16;
constexpr uint32_t kWorkMost = 4096;
constexpr uint32_t kReadsInFlightMost = 128;
constexpr uint64_t kMessageBytesMost = uint64_t{1} << 30;
// What rdma_cm leaves of InfiniBand's request behind its own header; iWARP's is longer (sdp wire
// protocol, sections 2.2 and 2.3).
constexpr uint32_t kPrivateDataInfiniBand = 56;
constexpr uint32_t kPrivateDataNative = 92;
constexpr uint32_t kAnswerDataInfiniBand = 196;
constexpr uint32_t kPrivateDataIwarp = 251;

// The descriptor is polled, never waited on in a read.
bool MakeNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

ibv_context* Choose(const Calls& calls, ibv_context* const* devices, int count,
                    const std::string& name, std::string& seen) {
  ibv_context* first = nullptr;
  for (int i = 0; i < count; ++i) {
    const std::string device = devices[i]->device->name;
    seen += (seen.empty() ? "" : ", ") + device;
    if (device == name) return devices[i];
    if (name.empty() && first == nullptr && HasActivePort(calls, devices[i])) first = devices[i];
  }
  return first;
}

uint32_t AtMost(int device, uint32_t most) {
  return std::min(static_cast<uint32_t>(std::max(device, 1)), most);
}

// Linux' rdma_rxe lets a peer that has the key of a window reach the whole region behind it: its
// windows are no protection, so none are used.
bool WindowsHold(const ibv_device_attr& attributes) {
  constexpr uint32_t kRxeVendor = 0xffffff;
  const unsigned flags = attributes.device_cap_flags;
  return attributes.vendor_id != kRxeVendor && attributes.max_mw > 0 &&
         (flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) != 0;
}

Limits LimitsOf(const ibv_device_attr& attributes, uint64_t message_bytes_max, bool iwarp) {
  Limits limits;
  limits.region_bytes_max = attributes.max_mr_size;
  limits.message_bytes_max = std::min(message_bytes_max, kMessageBytesMost);
  // A binding of a window takes a place in the send queue too.
  limits.send_work_max = AtMost(attributes.max_qp_wr / 2, kWorkMost);
  limits.receive_work_max = AtMost(attributes.max_qp_wr, kWorkMost);
  limits.scatter_gather_max = AtMost(attributes.max_sge, kScatterGatherMost);
  limits.read_scatter_gather_max = attributes.max_sge_rd > 0
                                       ? AtMost(attributes.max_sge_rd, limits.scatter_gather_max)
                                   : iwarp ? 1
                                           : limits.scatter_gather_max;
  limits.reads_in_flight_max = AtMost(attributes.max_qp_rd_atom, kReadsInFlightMost);
  limits.private_data_max = iwarp ? kPrivateDataIwarp : kPrivateDataInfiniBand;
  limits.answer_data_max = iwarp ? kPrivateDataIwarp : kAnswerDataInfiniBand;
  limits.pads_private_data = !iwarp;
  limits.tells_why = false;
  limits.windows = WindowsHold(attributes);
  limits.remote_invalidate =
      limits.windows && (attributes.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS) != 0;
  limits.initiator_speaks_first = iwarp;
  limits.sends_wait_for_reads = !iwarp;
  limits.pins_memory = true;
  limits.of_one_device = true;
  return limits;
}

}  // namespace

bool HasActivePort(const Calls& calls, ibv_context* context) {
  ibv_device_attr attributes{};
  if (calls.query_device(context, &attributes) != 0) return false;
  for (int port = 1; port <= attributes.phys_port_cnt; ++port) {
    ibv_port_attr state{};
    if (calls.query_port(context, static_cast<uint8_t>(port), &state) == 0 &&
        state.state == IBV_PORT_ACTIVE) {
      return true;
    }
  }
  return false;
}

absl::StatusOr<std::unique_ptr<Device>> Device::Open(const Calls& calls, const std::string& name) {
  int count = 0;
  ibv_context** const devices = calls.get_devices(&count);
  if (devices == nullptr || count == 0) {
    if (devices != nullptr) calls.free_devices(devices);
    return absl::NotFoundError(
        "no RDMA device: the system has none, or its modules (ib_uverbs, rdma_ucm and the "
        "device's) are not loaded");
  }
  std::string seen;
  ibv_context* const chosen = Choose(calls, devices, count, name, seen);
  calls.free_devices(devices);
  if (chosen == nullptr) {
    return MakeStatus(absl::StatusCode::kNotFound,
                      name.empty()
                          ? "no RDMA device has an active port: there are " + seen
                          : "no RDMA device \"" + absl::CHexEscape(name) + "\": there are " + seen);
  }
  std::unique_ptr<Device> device(new Device(calls, chosen));
  ESDP_RETURN_IF_ERROR(device->Prepare());
  return device;
}

absl::Status Device::Prepare() {
  ibv_device_attr attributes{};
  ibv_port_attr port{};
  if (calls_.query_device(context_, &attributes) != 0 || calls_.query_port(context_, 1, &port)) {
    return MakeStatus(absl::StatusCode::kUnavailable,
                      std::string("the RDMA device ") + name() + " does not answer");
  }
  limits_ = LimitsOf(attributes, port.max_msg_sz,
                     context_->device->transport_type == IBV_TRANSPORT_IWARP);
  completions_max_ = attributes.max_cqe;
  if (!MakeNonBlocking(context_->async_fd)) {
    return absl::UnavailableError("the RDMA device's descriptor of events cannot be polled");
  }
  domain_ = calls_.alloc_pd(context_);
  if (domain_ == nullptr) {
    return MakeStatus(absl::StatusCode::kResourceExhausted,
                      std::string("no protection domain on ") + name() + ": " + strerror(errno));
  }
  return absl::OkStatus();
}

absl::Status Device::UseNativeRequests() {
  if (is_iwarp() || !HasInfiniBand(calls_, context_, 0)) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      std::string(name()) +
                          " has no port of InfiniBand, and SDP's own service ids "
                          "are only there");
  }
  limits_.private_data_max = kPrivateDataNative;
  return absl::OkStatus();
}

Device::~Device() {
  if (domain_ != nullptr) calls_.dealloc_pd(domain_);
}

}  // namespace esdp::fabric::verbs
