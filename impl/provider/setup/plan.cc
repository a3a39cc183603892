#include "impl/provider/setup/plan.h"

#include <algorithm>

#include "impl/sdp/common/limits.h"
#include "impl/sdp/interface/action.h"

namespace esdp::provider {
namespace {

constexpr uint32_t kSendWork = 64;
constexpr uint32_t kInvalidateWork = 64;  // beside what the core counts: more wait
// What keeps a link of 100 Gb/s busy for 20 microseconds.
constexpr uint64_t kReadAheadBytes = 256 * 1024;
constexpr uint16_t kReceivesAtOnceMax = 4;
constexpr uint32_t kReceiveBuffersMost = 4096;
constexpr uint16_t kReceiveBuffersMin = 3;  // sdp wire protocol, section 4.5

static_assert(static_cast<int>(sdp::ModeWish::kPipelined) ==
              static_cast<int>(ModeWish::kPipelined));
static_assert(static_cast<int>(sdp::PeerMoves::kUnguarded) ==
              static_cast<int>(PeerMoves::kUnguarded));

template <typename T>
T OrDefault(T wish, T fallback) {
  return wish == 0 ? fallback : wish;
}

uint32_t AtMost32(uint64_t value, uint32_t most) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, most));
}

// Where a queue pair has room for all its receives from the start, fewer are worth having.
void PlanWindow(const ConnectionOptions& options, const fabric::Limits& limits, sdp::Config& core) {
  core.receive_window_bytes = options.receive_window_bytes;
  const uint32_t most = limits.pins_memory ? 4u * core.receive_buffers : kReceiveBuffersMost;
  const uint64_t fit = options.receive_window_bytes / core.receive_buffer_bytes;
  core.receive_buffers_max = static_cast<uint16_t>(
      std::min<uint64_t>({fit, most, limits.receive_work_max - sdp::kSpareReceiveBuffers}));
  // Each advert takes a buffer when it arrives, so the window bounds them, too. Devices are on short
  // paths, and there each that is shown takes a place of the work queue.
  if (limits.pins_memory) return;
  core.max_adverts = static_cast<uint8_t>(
      std::clamp<uint16_t>(core.receive_buffers_max, sdp::Config{}.max_adverts, UINT8_MAX));
}

// Where memory is pinned, many times as much for each connection is for the application to decide.
uint32_t PeerBufferWish(const ConnectionOptions& options, const fabric::Limits& limits) {
  const uint32_t wish = options.peer_receive_buffer_bytes;
  if (wish != kByFabric) return AtMost32(limits.message_bytes_max, wish);
  return limits.pins_memory ? 0 : limits.message_bytes_best;
}

void PlanBuffers(const ConnectionOptions& options, const fabric::Limits& limits,
                 sdp::Config& core) {
  const ConnectionOptions defaults;
  core.receive_buffers =
      std::max(OrDefault(options.receive_buffers, defaults.receive_buffers), kReceiveBuffersMin);
  core.receive_buffers =
      static_cast<uint16_t>(AtMost32(limits.receive_work_max, core.receive_buffers));
  core.receives_at_once = std::clamp<uint16_t>(core.receive_buffers / 4, 1, kReceivesAtOnceMax);
  core.receive_buffer_bytes =
      std::max(OrDefault(options.receive_buffer_bytes, defaults.receive_buffer_bytes),
               sdp::wire::kReceiveBufferBytesMin);
  core.receive_buffer_bytes = AtMost32(limits.message_bytes_max, core.receive_buffer_bytes);
  PlanWindow(options, limits, core);
  core.receive_buffer_bytes_max =
      AtMost32(limits.message_bytes_max, options.receive_buffer_bytes_max);
  core.peer_receive_buffer_bytes = PeerBufferWish(options, limits);
  core.peer_receive_buffers_by_need = options.peer_receive_buffer_bytes == kByFabric;
  core.send_buffers = OrDefault(options.send_buffers, defaults.send_buffers);
  core.coalesce_max = std::min(options.coalesce_max, BufferPool::kSendBufferBytes);
}

void PlanWork(const fabric::Limits& limits, Transport::Shape& transport, sdp::Config& core) {
  fabric::QueuePairOptions& queue_pair = transport.queue_pair;
  queue_pair.send_work = AtMost32(limits.send_work_max, kSendWork + kInvalidateWork);
  core.send_work_max = queue_pair.send_work > 2 * kInvalidateWork
                           ? queue_pair.send_work - kInvalidateWork
                           : std::max(queue_pair.send_work / 2, 1u);
  transport.invalidations_max = std::max(queue_pair.send_work - core.send_work_max, 1u);
  // A window that has shrunk may have its spare buffer out, too.
  queue_pair.receive_work = core.receive_buffers_max > core.receive_buffers
                                ? uint32_t{core.receive_buffers_max} + sdp::kSpareReceiveBuffers
                                : core.receive_buffers;
  queue_pair.initiator_depth = std::min(queue_pair.initiator_depth, limits.reads_in_flight_max);
  queue_pair.responder_resources =
      std::min(queue_pair.responder_resources, limits.reads_in_flight_max);
}

}  // namespace

fabric::Limits LimitsOfAll(const Fabrics& fabrics, uint8_t place) {
  fabric::Limits all = fabrics[place]->limits();
  for (const fabric::Fabric* fabric : fabrics) {
    const fabric::Limits& each = fabric->limits();
    all.message_bytes_max = std::min(all.message_bytes_max, each.message_bytes_max);
    all.send_work_max = std::min(all.send_work_max, each.send_work_max);
    all.receive_work_max = std::min(all.receive_work_max, each.receive_work_max);
    all.scatter_gather_max = std::min(all.scatter_gather_max, each.scatter_gather_max);
    all.reads_in_flight_max = std::min(all.reads_in_flight_max, each.reads_in_flight_max);
    all.windows = all.windows && each.windows;
    all.remote_invalidate = all.remote_invalidate && each.remote_invalidate;
    all.initiator_speaks_first = all.initiator_speaks_first || each.initiator_speaks_first;
    all.sends_wait_for_reads = all.sends_wait_for_reads || each.sends_wait_for_reads;
    all.pins_memory = all.pins_memory || each.pins_memory;
  }
  return all;
}

Plan MakePlan(const ConnectionOptions& options, const fabric::Limits& limits, bool connecting,
              const Address& local, const Address& peer, bool remote_invalidate) {
  Plan plan;
  sdp::Config& core = plan.core;
  core.connecting = connecting;
  core.read_bytes_max = AtMost32(limits.message_bytes_max, 1u << 30);
  core.gather_max =
      AtMost32(limits.scatter_gather_max - 1, sdp::kGatherMax);  // the header is one entry
  core.initiator_speaks_first = limits.initiator_speaks_first;
  core.as_deployed = options.as_deployed;
  core.watch_readiness = options.watch_readiness;
  core.mode_send = static_cast<sdp::ModeWish>(options.send_mode);
  core.mode_receive = static_cast<sdp::ModeWish>(options.receive_mode);
  if (limits.sends_wait_for_reads) core.read_ahead_bytes = kReadAheadBytes;
  core.can_expose = limits.reads_in_flight_max > 0;
  core.remote_invalidate = plan.transport.remote_invalidate = remote_invalidate;
  PlanBuffers(options, limits, core);
  PlanWork(limits, plan.transport, core);
  core.linger = options.linger;
  core.cancel_grace = options.cancel_grace;
  core.shows_receives = options.shows_receives;
  core.peer_moves = static_cast<sdp::PeerMoves>(options.peer_moves);
  core.moves_max = options.moves_max;
  core.ip_version = static_cast<uint8_t>(peer.family);
  core.local_port = local.port;
  core.local_address = local.bytes;
  core.peer_address = peer.bytes;
  plan.transport.queue_pair.checksum = options.checksum;
  plan.transport.queue_pair.lend_messages = true;
  plan.transport.queue_pair.keep_alive_idle = options.keep_alive_idle;
  plan.transport.pool = {
      .header_slots = core.send_work_max,
      .send_buffers = core.send_buffers,
      .receive_buffers = uint32_t{core.receive_buffers} + sdp::kSpareReceiveBuffers,
      .receive_buffer_bytes = core.receive_buffer_bytes};
  return plan;
}

}  // namespace esdp::provider
