// What qpip costs over plain TCP: bandwidth of RDMA reads, writes and sends, and the latency of a
// ping-pong, between two processes on the loopback interface, beside the same by hand on a socket.
//
//   qpip_bench MODE [BYTES] [DEPTH] [SECONDS] [CONGESTION_CONTROL] [spin|wait] [crc]
//   MODE is read, write, send, ping, tcp or tcp_ping.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "impl/fabric/qpip/qpip_fabric.h"
#include "tests/fabric/loopback.h"

namespace esdp::fabric {
namespace {

using Instant = std::chrono::steady_clock::time_point;

struct Plan {
  std::string mode = "read";
  uint32_t bytes = 1 << 20;
  uint32_t depth = 8;
  double seconds = 2;
  std::string congestion_control;
  bool waits = false;
  bool checksum = false;
};

Instant Now() { return std::chrono::steady_clock::now(); }
double SecondsSince(Instant start) { return std::chrono::duration<double>(Now() - start).count(); }

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

double CpuSeconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// One side: a fabric, a queue pair, a region and what has been polled.
class Side {
 public:
  explicit Side(const Plan& plan) : plan_(plan), memory_(size_t{plan.bytes} * plan.depth) {
    qpip::QpipOptions options;
    options.congestion_control = plan.congestion_control;
    options.checksum = plan.checksum;
    auto fabric = qpip::MakeQpipFabric(options);
    if (!fabric.ok()) Fail(fabric.status().ToString());
    fabric_ = *std::move(fabric);
    region_ = *fabric_->Register(memory_.data(), memory_.size(), {true, true, true});
    QueuePairOptions pair;
    pair.send_work = 2 * plan.depth;
    pair.receive_work = 2 * plan.depth;
    queue_pair_ = *fabric_->CreateQueuePair(pair);
  }

  Fabric& fabric() { return *fabric_; }
  QueuePairId queue_pair() const { return queue_pair_; }
  RemoteRange key() { return *fabric_->RegionKey(region_); }
  bool ended() const { return ended_; }

  ScatterEntry Entry(uint64_t id) {
    return {region_, memory_.data() + (id % plan_.depth) * plan_.bytes, plan_.bytes};
  }
  void PostReceive(uint64_t id) {
    const ScatterEntry entry = Entry(id);
    const ReceiveWork work{.work_id = id, .entries = &entry, .entry_count = 1};
    // Refused once the peer has gone: the event says so.
    static_cast<void>(fabric_->PostReceive(queue_pair_, {&work, 1}));
  }
  void Post(Opcode opcode, uint64_t id, RemoteRange remote) {
    const ScatterEntry entry = Entry(id);
    SendWork work;
    work.work_id = id;
    work.opcode = opcode;
    work.entries = &entry;
    work.entry_count = 1;
    work.remote = {remote.key, remote.address + (id % plan_.depth) * plan_.bytes};
    const absl::Status status = fabric_->PostSend(queue_pair_, {&work, 1});
    if (!status.ok() && !absl::IsFailedPrecondition(status)) Fail(status.ToString());
  }

  // Calls visit for each completion; sleeps first if there is none and the plan says so.
  template <typename Visit>
  void Poll(Visit visit) {
    std::array<Completion, 32> batch;
    const size_t count = fabric_->Poll(absl::MakeSpan(batch));
    for (size_t i = 0; i < count; ++i) {
      if (batch[i].status == WorkStatus::kSuccess) visit(batch[i]);
    }
    bool found = count != 0;
    while (fabric_->PollRendezvous(event_)) {
      found = true;
      ended_ = ended_ || event_.type == RendezvousType::kDisconnected;
      established_ = established_ || event_.type == RendezvousType::kEstablished;
      requested_ = requested_ || event_.type == RendezvousType::kConnectRequest;
    }
    if (!found && plan_.waits) {
      pollfd waited{fabric_->fd(), POLLIN, 0};
      poll(&waited, 1, 100);
    }
  }
  void WaitForConnection() {
    while (!established_) Poll([](const Completion&) {});
  }
  RequestId WaitForRequest() {
    while (!requested_) Poll([](const Completion&) {});
    return event_.request;
  }
  const RendezvousEvent& event() const { return event_; }

 private:
  const Plan plan_;
  std::vector<std::byte> memory_;
  std::unique_ptr<Fabric> fabric_;
  RegionId region_{};
  QueuePairId queue_pair_{};
  RendezvousEvent event_;
  bool ended_ = false;
  bool established_ = false;
  bool requested_ = false;
};

// A stream of sends is acknowledged in halves of the receive queue: there is no waiting for a
// receive in iWARP.
uint32_t HalfOf(uint32_t depth) { return std::max<uint32_t>(depth / 2, 1); }

void Serve(const Plan& plan, int port_out) {
  Side side(plan);
  const ListenerId listener = *side.fabric().Listen(Loopback(0), 1);
  const uint16_t port = side.fabric().ListenerAddress(listener)->port;
  if (write(port_out, &port, sizeof(port)) != sizeof(port)) Fail("no pipe");
  const RequestId request = side.WaitForRequest();
  for (uint64_t id = 0; id < plan.depth; ++id) side.PostReceive(id);
  const RemoteRange key = side.key();
  const auto accepted =
      side.fabric().Accept(request, side.queue_pair(), std::as_bytes(std::span(&key, 1)));
  if (!accepted.ok()) Fail(accepted.ToString());
  uint64_t answers = 0;
  uint64_t received = 0;
  while (!side.ended()) {
    side.Poll([&](const Completion& completion) {
      if (completion.opcode != Opcode::kReceive) return;
      side.PostReceive(completion.work_id);
      const bool answers_now = plan.mode == "ping" || ++received % HalfOf(plan.depth) == 0;
      if (answers_now) side.Post(Opcode::kSend, answers++, {});
    });
  }
}

void Connect(const Plan& plan, Side& side, uint16_t port, RemoteRange& key) {
  const auto connecting =
      side.fabric().Connect(side.queue_pair(), Address{}, Loopback(port), {},
                            AddSaturating(side.fabric().Now(), std::chrono::seconds(5)));
  if (!connecting.ok()) Fail(connecting.ToString());
  for (uint64_t id = 0; id < plan.depth; ++id) side.PostReceive(id);
  side.WaitForConnection();
  std::memcpy(&key, side.event().private_data.data(), sizeof(key));
}

uint64_t Stream(const Plan& plan, Side& side, Opcode opcode, RemoteRange key, Instant start) {
  uint64_t posted = 0;
  uint64_t done = 0;
  for (; posted < plan.depth; ++posted) side.Post(opcode, posted, key);
  while (SecondsSince(start) < plan.seconds) {
    side.Poll([&](const Completion&) {
      ++done;
      side.Post(opcode, posted++, key);
    });
    if (side.ended()) Fail(side.event().detail);
  }
  return done;
}

uint64_t StreamSends(const Plan& plan, Side& side, Instant start) {
  uint64_t posted = 0;
  uint64_t acknowledged = 0;
  while (SecondsSince(start) < plan.seconds) {
    for (; posted < acknowledged + plan.depth; ++posted) side.Post(Opcode::kSend, posted, {});
    side.Poll([&](const Completion& completion) {
      if (completion.opcode != Opcode::kReceive) return;
      acknowledged += HalfOf(plan.depth);
      side.PostReceive(completion.work_id);
    });
    if (side.ended()) Fail(side.event().detail);
  }
  return acknowledged;
}

uint64_t PingPong(const Plan& plan, Side& side, Instant start) {
  uint64_t rounds = 0;
  side.Post(Opcode::kSend, 0, {});
  while (SecondsSince(start) < plan.seconds) {
    for (int i = 0; i < 64; ++i) {
      side.Poll([&](const Completion& completion) {
        if (completion.opcode != Opcode::kReceive) return;
        side.PostReceive(completion.work_id);
        side.Post(Opcode::kSend, ++rounds, {});
      });
    }
    if (side.ended()) Fail(side.event().detail);
  }
  return rounds;
}

uint64_t RunQpip(const Plan& plan, uint16_t port, Instant& start) {
  Side side(plan);
  RemoteRange key;
  Connect(plan, side, port, key);
  start = Now();
  if (plan.mode == "ping") return PingPong(plan, side, start);
  if (plan.mode == "send") return StreamSends(plan, side, start);
  return Stream(plan, side, plan.mode == "write" ? Opcode::kWrite : Opcode::kRead, key, start);
}

// --- the same by hand ---

int TcpSocket(const Plan& plan) {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  const int one = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (!plan.congestion_control.empty()) {
    setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, plan.congestion_control.data(),
               static_cast<socklen_t>(plan.congestion_control.size()));
  }
  return descriptor;
}

sockaddr_in TcpAddress(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// False at the end of the stream.
bool Fetch(const Plan& plan, int descriptor, char* buffer) {
  const int flags = plan.mode == "tcp_ping" ? MSG_DONTWAIT : 0;
  for (size_t have = 0; have < plan.bytes;) {
    const ssize_t got = recv(descriptor, buffer + have, plan.bytes - have, flags);
    if (got > 0) have += static_cast<size_t>(got);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
  }
  return true;
}

void Ship(const Plan& plan, int descriptor, const char* buffer) {
  for (size_t gone = 0; gone < plan.bytes;) {
    const ssize_t sent = send(descriptor, buffer + gone, plan.bytes - gone, MSG_NOSIGNAL);
    if (sent <= 0) return;
    gone += static_cast<size_t>(sent);
  }
}

void ServeTcp(const Plan& plan, int port_out) {
  const int listener = TcpSocket(plan);
  sockaddr_in address = TcpAddress(0);
  socklen_t size = sizeof(address);
  bind(listener, reinterpret_cast<sockaddr*>(&address), size);
  listen(listener, 1);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  const uint16_t port = ntohs(address.sin_port);
  if (write(port_out, &port, sizeof(port)) != sizeof(port)) Fail("no pipe");
  const int descriptor = accept(listener, nullptr, nullptr);
  // As many buffers as the other modes use, so that the caches have as much to hold.
  std::vector<char> buffers(size_t{plan.bytes} * plan.depth);
  for (uint64_t round = 0;; ++round) {
    char* buffer = buffers.data() + (round % plan.depth) * plan.bytes;
    if (!Fetch(plan, descriptor, buffer)) return;
    if (plan.mode == "tcp_ping") Ship(plan, descriptor, buffer);
  }
}

uint64_t RunTcp(const Plan& plan, uint16_t port, Instant& start) {
  const int descriptor = TcpSocket(plan);
  sockaddr_in address = TcpAddress(port);
  if (connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    Fail("cannot connect");
  }
  std::vector<char> buffers(size_t{plan.bytes} * plan.depth);
  start = Now();
  uint64_t rounds = 0;
  for (; SecondsSince(start) < plan.seconds; ++rounds) {
    char* buffer = buffers.data() + (rounds % plan.depth) * plan.bytes;
    Ship(plan, descriptor, buffer);
    if (plan.mode == "tcp_ping" && !Fetch(plan, descriptor, buffer)) Fail("lost");
  }
  close(descriptor);
  return rounds;
}

int Main(const Plan& plan) {
  int pipes[2];
  if (pipe(pipes) != 0) Fail("no pipe");
  const bool by_hand = plan.mode.rfind("tcp", 0) == 0;
  const pid_t child = fork();
  if (child == 0) {
    by_hand ? ServeTcp(plan, pipes[1]) : Serve(plan, pipes[1]);
    _exit(0);
  }
  uint16_t port = 0;
  if (read(pipes[0], &port, sizeof(port)) != sizeof(port)) Fail("the other side did not start");
  Instant start;
  const uint64_t count = by_hand ? RunTcp(plan, port, start) : RunQpip(plan, port, start);
  const double seconds = SecondsSince(start);
  int status = 0;
  waitpid(child, &status, 0);
  const double cpu = CpuSeconds(RUSAGE_SELF) + CpuSeconds(RUSAGE_CHILDREN);
  const double bytes = static_cast<double>(count) * plan.bytes;
  const bool ping = plan.mode == "ping" || plan.mode == "tcp_ping";
  if (ping) {
    std::printf("%-8s %8u B  %8.2f us one way\n", plan.mode.c_str(), plan.bytes,
                seconds / static_cast<double>(count) / 2 * 1e6);
  } else {
    std::printf("%-8s %8u B  depth %3u  %8.0f MB/s  %9.0f messages/s  %.3f CPU s/GB\n",
                plan.mode.c_str(), plan.bytes, plan.depth, bytes / seconds / 1e6,
                static_cast<double>(count) / seconds, cpu / (bytes / 1e9));
  }
  return 0;
}

}  // namespace
}  // namespace esdp::fabric

int main(int argc, char** argv) {
  esdp::fabric::Plan plan;
  if (argc > 1) plan.mode = argv[1];
  if (argc > 2) plan.bytes = static_cast<uint32_t>(std::atoi(argv[2]));
  if (argc > 3) plan.depth = static_cast<uint32_t>(std::atoi(argv[3]));
  if (argc > 4) plan.seconds = std::atof(argv[4]);
  if (argc > 5) plan.congestion_control = argv[5];
  if (argc > 6) plan.waits = std::string(argv[6]) == "wait";
  if (argc > 7) plan.checksum = std::string(argv[7]) == "crc";
  return esdp::fabric::Main(plan);
}
