#include "tests/sim/plan.h"

#include <algorithm>
#include <chrono>

#include "impl/fabric/sim/sim_fabric.h"

namespace esdp::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

template <typename T, size_t N>
T Pick(Random& random, const T (&values)[N]) {
  return values[random.Below(N)];
}

uint64_t DrawThreshold(Random& random) {
  return Pick<uint64_t>(random, {0, 1, 512, 4096, 4096, 65536, kNever});
}

void DrawLimits(Random& random, bool infiniband, StationPlan& station) {
  fabric::Limits& limits = station.limits = fabric::sim::DefaultSimLimits();
  limits.initiator_speaks_first = !infiniband;
  station.short_limits = random.Chance(1, 2);
  if (!station.short_limits) return;
  limits.send_work_max = Pick<uint32_t>(random, {16, 33, 64, 4096});
  limits.receive_work_max = Pick<uint32_t>(random, {3, 8, 4096});
  limits.scatter_gather_max = Pick<uint32_t>(random, {2, 3, 16});
  limits.read_scatter_gather_max = Pick<uint32_t>(random, {1, 4});
  limits.reads_in_flight_max = Pick<uint32_t>(random, {1, 2, 128});
  limits.message_bytes_max = Pick<uint64_t>(random, {32768, 65537, 1u << 30});
  limits.region_bytes_max = Pick<uint64_t>(random, {1u << 20, uint64_t{1} << 40});
  limits.windows = random.Chance(3, 4);
  limits.remote_invalidate = random.Chance(3, 4);
}

void DrawFaults(Random& random, Plan& plan) {
  if (random.Chance(1, 4)) return;
  fabric::sim::Faults& faults = plan.faults;
  const auto rate = [&](uint64_t times, std::initializer_list<uint32_t> rates) {
    return random.Chance(times, 8) ? rates.begin()[random.Below(rates.size())] : 0;
  };
  faults.delay = rate(4, {10'000, 100'000, 500'000});
  faults.late_news = rate(3, {100'000, 1'000'000});
  faults.not_ready = rate(4, {10'000, 200'000});
  faults.sleep = rate(3, {10'000, 100'000});
  faults.no_region = rate(1, {20'000, 200'000});
  faults.no_window = rate(2, {50'000, 500'000, 1'000'000});
  faults.no_queue_pair = rate(1, {20'000, 200'000});
  faults.reset = rate(1, {100'000, 500'000});
  faults.silence = rate(1, {100'000, 500'000});
  plan.hostile = rate(1, {10'000, 100'000});
  plan.forged = rate(1, {50'000, 500'000});
  if (random.Chance(1, 8)) {
    plan.death_after = microseconds(random.Between(1, 5000));
    plan.death_is_told = random.Chance(1, 2);
  }
  if (random.Chance(1, 16)) {
    faults.registered_bytes_max = kExposures.size() * kRegionBytes + random.Below(1 << 21);
  }
}

void DrawSocket(Random& random, SocketOptions& socket) {
  if (random.Chance(1, 2)) socket.zcopy_send_min = DrawThreshold(random);
  if (random.Chance(1, 2)) socket.zcopy_recv_min = DrawThreshold(random);
  socket.receive_buffers = Pick<uint16_t>(random, {3, 4, 8, 16, 16});
  socket.receive_buffer_bytes = Pick<uint32_t>(random, {1024, 4096, 16384});
  socket.send_buffers = Pick<uint16_t>(random, {1, 2, 8});
  socket.coalesce_max = Pick<uint32_t>(random, {0, 64, 2048});
  socket.keep_alive_idle = absl::Seconds(random.Between(1, 15));
  socket.linger = absl::Seconds(Pick<int>(random, {1, 60}));
  socket.deadline_policy =
      random.Chance(1, 8) ? DeadlinePolicy::kAbortConnection : DeadlinePolicy::kFinish;
}

// What a station's sockets are beyond that: the deployed peers' subset, modes that are wanted,
// receive buffers that change their size. Half of all stations have nothing of it.
void DrawManners(Random& random, StationPlan& station) {
  using Mode = DeliveryMode;
  if (random.Chance(1, 10)) station.context.as_deployed = true;
  station.context.peer_moves = PeerMoves::kGuarded;
  station.context.moves_max = 1'000'000;
  if (random.Chance(1, 5)) {
    station.context.send_mode =
        Pick(random, {Mode::kBuffered, Mode::kCombined, Mode::kPipelined, Mode::kPipelined});
  }
  if (random.Chance(1, 8)) station.context.receive_mode = Mode::kBuffered;
  if (random.Chance(1, 4)) {
    station.peer_receive_buffer_bytes = Pick<uint32_t>(random, {1024, 2000, 5000, 20'000, 70'000});
  }
  if (random.Chance(1, 3)) {
    station.receive_buffer_bytes_max = Pick<uint32_t>(random, {1024, 1500, 4096, 65'536});
  }
}

// Everybody asks for larger buffers, and early: small ones are soon full.
void DrawResizes(Random& random, Plan& plan) {
  plan.socket.receive_buffer_bytes = 1024;
  for (StationPlan& station : plan.stations) {
    station.peer_receive_buffer_bytes = Pick<uint32_t>(random, {2000, 5000});
    station.receive_buffer_bytes_max = Pick<uint32_t>(random, {1500, 65'536});
  }
}

void DrawWorkload(Random& random, Plan& plan) {
  for (uint32_t& weight : plan.weights) weight = Pick<uint32_t>(random, {0, 1, 4});
  plan.weights[static_cast<size_t>(Act::kSend)] = Pick<uint32_t>(random, {4, 16});
  plan.weights[static_cast<size_t>(Act::kSuspend)] = Pick<uint32_t>(random, {0, 0, 1, 2});
  plan.weights[static_cast<size_t>(Act::kReceive)] = Pick<uint32_t>(random, {1, 8, 16});
  plan.leaves = {8, 0, 0, 0};
  if (random.Chance(1, 3)) plan.leaves = {4, 1, 1, 1};
  plan.acts_max = Pick<uint32_t>(random, {2, 6, 12, 30});
  plan.size_max = Pick<uint64_t>(random, {64, 4097, 4097, 20'000, 20'000, 70'000, 1u << 18});
  if (random.Chance(1, 40)) plan.size_max = (1 << 20) + 1;
  plan.deadline_chance = Pick<uint64_t>(random, {0, 0, 5, 30});
  plan.urgent_chance = Pick<uint64_t>(random, {0, 0, 5});
  plan.rest_max = Pick(random, {microseconds(0), microseconds(20), microseconds(300)});
  plan.read_rest_max = Pick(random, {microseconds(0), microseconds(0), microseconds(2000)});
}

// Readers that are ahead of the senders, with room for more than a message: they advertise it.
void DrawEagerReaders(Random& random, Plan& plan) {
  for (StationPlan& station : plan.stations) {
    station.context.zcopy_send_min = station.context.zcopy_recv_min = random.Between(0, 2000);
    station.limits.reads_in_flight_max = 128;
    station.limits.windows = true;
  }
  plan.socket.zcopy_send_min.reset();
  plan.socket.zcopy_recv_min.reset();
  plan.socket.receive_buffer_bytes = 1024;
  plan.socket.receive_buffers = Pick<uint16_t>(random, {4, 8, 16});
  plan.weights = {Pick<uint32_t>(random, {2, 6}),
                  12,
                  Pick<uint32_t>(random, {2, 8}),
                  1,
                  0,
                  2,
                  Pick<uint32_t>(random, {0, 1}),
                  Pick<uint32_t>(random, {0, 2}),
                  Pick<uint32_t>(random, {0, 1, 3})};
  plan.size_max = Pick<uint64_t>(random, {5000, 20'000});
  plan.acts_max = 30;
  plan.wait_all_chance = 0;
}

// A reader with several large receives waiting tells so in its RdmaRdCompl while a second large
// send makes the source change the mode by itself: the two cross.
void DrawBulk(Random& random, Plan& plan) {
  for (StationPlan& station : plan.stations) {
    station.context.zcopy_send_min = station.context.zcopy_recv_min = random.Between(1, 64);
    station.limits.windows = true;
  }
  plan.socket.zcopy_send_min.reset();
  plan.socket.zcopy_recv_min.reset();
  plan.faults.no_window = 0;
  plan.transit_max = microseconds(200);
  plan.rest_max = microseconds(300);
  plan.weights = {6, 18, 0, 0, 0, 0, 0, 0, 0};
  plan.size_max = 20'000;
  plan.acts_max = 30;
  plan.wait_all_chance = 0;
}

// Both send in bursts of small messages and have receives to show: both kinds wait for credits, and
// what comes back is enough for both.
void DrawBursts(Random& random, Plan& plan) {
  DrawEagerReaders(random, plan);
  for (StationPlan& station : plan.stations) {
    station.context.send_mode = DeliveryMode::kPipelined;
    station.context.as_deployed = false;
  }
  plan.socket.receive_buffers = Pick<uint16_t>(random, {3, 4, 6});
  plan.socket.coalesce_max = 2048;
  plan.transit_max = microseconds(200);
  plan.rest_max = microseconds(Pick<int>(random, {0, 20}));
  plan.small_send_chance = 75;
  plan.weights = {8, 8, 1, 0, 0, 1, 0, 0, Pick<uint32_t>(random, {0, 1})};
  plan.size_max = 5000;
}

}  // namespace

Plan DrawPlan(uint64_t seed) {
  Random random(seed);
  Plan plan;
  plan.seed = seed;
  plan.connections = static_cast<uint32_t>(random.Between(1, 6));
  const bool infiniband = random.Chance(1, 3);
  const size_t stations = random.Between(2, 3);
  for (size_t i = 0; i < stations; ++i) {
    StationPlan& station = plan.stations.emplace_back();
    DrawLimits(random, infiniband, station);
    station.context.zcopy_send_min = DrawThreshold(random);
    station.context.zcopy_recv_min = DrawThreshold(random);
    station.context.operations_max = 4096;
    station.context.bounce_pool_bytes = 1 << 18;
  }
  DrawSocket(random, plan.socket);
  plan.queue_depth = Pick<uint32_t>(random, {6, 8, 64});
  plan.transit_max = Pick(random, {microseconds(1), microseconds(5), microseconds(200)});
  DrawFaults(random, plan);
  plan.faults_last = milliseconds(random.Between(1, 50));
  DrawWorkload(random, plan);
  if (random.Chance(1, 3)) DrawEagerReaders(random, plan);
  for (StationPlan& station : plan.stations) DrawManners(random, station);
  switch (random.Below(16)) {
    case 0:
    case 1:
      DrawResizes(random, plan);
      break;
    case 2:
    case 3:
    case 4:
    case 5:
      DrawBulk(random, plan);
      break;
    case 6:
    case 7:
      DrawBursts(random, plan);
      break;
    default:
      break;
  }
  return plan;
}

SocketOptions Plan::SocketOf(size_t station) const {
  const StationPlan& own = stations[station];
  SocketOptions options = socket;
  if (own.receive_buffer_bytes_max > 0) {
    options.receive_buffer_bytes_max = own.receive_buffer_bytes_max;
  }
  if (own.peer_receive_buffer_bytes > 0) {
    options.peer_receive_buffer_bytes = own.peer_receive_buffer_bytes;
  }
  return options;
}

uint64_t DrawSize(const Plan& plan, Random& random) {
  const uint64_t buffer = plan.socket.receive_buffer_bytes;
  const uint64_t near = random.Between(0, 2);
  const uint64_t edges[] = {1,
                            64,
                            plan.socket.coalesce_max + uint64_t{1},
                            512,
                            buffer,
                            2 * buffer,
                            4096,
                            16384,
                            65536,
                            1 << 18,
                            plan.size_max,
                            1 << 20};
  uint64_t size = 0;
  if (random.Chance(1, 2)) {
    size = edges[random.Below(std::size(edges))] + near - 1;
  } else {
    size = random.Between(0, random.Chance(1, 2) ? 300 : plan.size_max);
  }
  return size <= plan.size_max ? size : random.Between(0, plan.size_max);
}

namespace {

// The station's wishes, by the numbers of their values.
std::string DescribeManners(const StationPlan& station) {
  std::string text = station.context.as_deployed ? "deployed" : "full";
  text += " modes " + std::to_string(static_cast<int>(station.context.send_mode)) + "/" +
          std::to_string(static_cast<int>(station.context.receive_mode));
  text += " resizes " + std::to_string(station.receive_buffer_bytes_max) + "/" +
          std::to_string(station.peer_receive_buffer_bytes);
  return " [" + text + "]";
}

}  // namespace

std::string Plan::Describe() const {
  const auto number = [](const char* name, uint64_t value) {
    return value == 0 ? std::string() : std::string(" ") + name + "=" + std::to_string(value);
  };
  std::string manners;
  for (const StationPlan& station : stations) manners += DescribeManners(station);
  return "seed " + std::to_string(seed) + ":" + number("connections", connections) +
         number("stations", stations.size()) + number("delay", faults.delay) +
         number("late_news", faults.late_news) + number("not_ready", faults.not_ready) +
         number("sleep", faults.sleep) + number("no_region", faults.no_region) +
         number("no_window", faults.no_window) + number("no_queue_pair", faults.no_queue_pair) +
         number("reset", faults.reset) + number("silence", faults.silence) +
         number("memory", faults.registered_bytes_max) + number("hostile", hostile) +
         number("forged", forged) +
         number("death_after", static_cast<uint64_t>(death_after.count())) +
         number("size_max", size_max) + number("acts_max", acts_max) +
         number("buffers", socket.receive_buffers) + number("bytes", socket.receive_buffer_bytes) +
         manners;
}

}  // namespace esdp::simulation
