// Blocking calls beside what they are held against, between two processes on loopback:
//
//   blocking_calls move streams|posts CONNECTIONS BYTES SECONDS
//   blocking_calls ping streams|tcp BYTES SECONDS CPU CPU
//
// `move` sends transfers of so many bytes, on each connection by a thread of its own with a Stream, or
// as posted zero-copy sends, eight at a time. `ping` has a message go there and back, each end
// pinned to a processor. Prints one JSON object: bytes or round trips per second, and the seconds of
// CPU of both ends for a GB.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "esdp/context.h"
#include "esdp/stream.h"
#include "samples/arguments.h"

namespace {

using samples::Check;
using samples::Value;
using Clock = std::chrono::steady_clock;

constexpr int kDepth = 8;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double CpuSeconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    seconds += static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  }
  return seconds;
}

void PinTo(const std::string& cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(std::atoi(cpu.c_str())), &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) std::exit(1);
}

esdp::Context Open() { return Value(esdp::Context::Open({.fabric = "qpip"})); }

// Runs `server`, which writes its port into the pipe, in a process of its own, and `client`.
void InTwo(const std::function<void(int)>& server, const std::function<void(uint16_t)>& client) {
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    server(pipe_ends[1]);
    std::_Exit(0);
  }
  uint16_t port = 0;
  if (read(pipe_ends[0], &port, sizeof(port)) != sizeof(port)) std::exit(1);
  client(port);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) std::exit(1);
}

void Tell(int pipe_end, uint16_t port) {
  if (write(pipe_end, &port, sizeof(port)) != sizeof(port)) std::exit(1);
}

// --- move ----------------------------------------------------------------------------------------

void ReadToTheEnd(esdp::Stream stream, size_t bytes) {
  std::vector<std::byte> memory(bytes);
  while (Value(stream.Read(absl::MakeSpan(memory), {.min = bytes})) > 0) {
  }
  Check(stream.Close());
}

double WriteFor(esdp::Stream& stream, size_t bytes, double seconds) {
  std::vector<std::byte> memory(bytes, std::byte{1});
  double moved = 0;
  const Clock::time_point start = Clock::now();
  while (SecondsSince(start) < seconds) {
    moved += static_cast<double>(Value(stream.Write(memory)));
  }
  return moved;
}

void OnThreads(size_t count, const std::function<void(size_t)>& run) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back([&run, i] { run(i); });
  for (std::thread& thread : threads) thread.join();
}

void Report(double moved, double seconds) {
  std::printf("{\"bytes_per_second\":%.0f,\"cpu_seconds_per_gb\":%.4f}\n", moved / seconds,
              CpuSeconds() / (moved / 1e9));
}

void MoveByStreams(size_t connections, size_t bytes, double seconds) {
  double moved = 0, took = 0;
  InTwo(
      [&](int pipe_end) {
        esdp::Context context = Open();
        esdp::StreamListener listener = Value(
            esdp::StreamListener::Listen(context, esdp::Address::Loopback(esdp::Family::kIpv4, 0)));
        Tell(pipe_end, listener.local().port());
        std::vector<esdp::Stream> streams;
        for (size_t i = 0; i < connections; ++i) streams.push_back(Value(listener.Accept()));
        OnThreads(connections, [&](size_t i) { ReadToTheEnd(std::move(streams[i]), bytes); });
      },
      [&](uint16_t port) {
        esdp::Context context = Open();
        std::vector<esdp::Stream> streams;
        for (size_t i = 0; i < connections; ++i) {
          streams.push_back(Value(
              esdp::Stream::Connect(context, esdp::Address::Loopback(esdp::Family::kIpv4, port))));
        }
        std::vector<double> of_each(connections);
        const Clock::time_point start = Clock::now();
        OnThreads(connections,
                  [&](size_t i) { of_each[i] = WriteFor(streams[i], bytes, seconds); });
        took = SecondsSince(start);
        for (const double one : of_each) moved += one;
        for (esdp::Stream& stream : streams) Check(stream.ShutdownWrite());
        for (esdp::Stream& stream : streams) Check(stream.Close());
      });
  Report(moved, took);
}

// One end of all posted transfers: so many at a time on each connection.
struct Posts {
  Posts(esdp::Context& context, size_t connections, size_t bytes)
      : queue(Value(context.CreateQueue(
            {.depth = static_cast<uint32_t>(2 * connections * kDepth + connections)}))),
        region(Value(context.Allocate(connections * kDepth * bytes))),
        each(bytes) {}
  esdp::Slice Place(uint64_t place) const { return Value(region.slice(place * each, each)); }
  esdp::EventQueue queue;
  esdp::Region region;
  size_t each;
};

void ReceivePosted(int pipe_end, size_t connections, size_t bytes) {
  esdp::Context context = Open();
  Posts posts(context, connections, bytes);
  esdp::Socket listener = Value(context.CreateSocket(esdp::Family::kIpv4));
  Check(listener.Listen(16));
  Value(listener.Accept(static_cast<int>(connections), {posts.queue}));
  Tell(pipe_end, listener.local().port());
  std::vector<esdp::Socket> sockets;
  const auto receive = [&](uint64_t place) {
    Value(sockets[place / kDepth].Recv(posts.Place(place), esdp::RecvFlags::kWaitAll,
                                       {.queue = posts.queue, .cookie = place}));
  };
  for (size_t open = 0; sockets.size() < connections || open > 0;) {
    std::array<esdp::Event, 16> events;
    const size_t taken = Value(posts.queue.Dequeue(absl::MakeSpan(events)));
    for (size_t i = 0; i < taken; ++i) {
      const esdp::Event& event = events[i];
      if (event.type == esdp::EventType::kAccept) {
        sockets.push_back(Value(context.TakeAccepted(event.accepted)));
        for (uint64_t n = 0; n < kDepth; ++n) receive((sockets.size() - 1) * kDepth + n);
        open += kDepth;
      } else if (!event.ok() || event.eof()) {
        --open;
      } else {
        receive(event.cookie);
      }
    }
  }
}

double SendPosted(esdp::Context& context, uint16_t port, size_t connections, size_t bytes,
                  double seconds) {
  Posts posts(context, connections, bytes);
  std::vector<esdp::Socket> sockets;
  for (size_t i = 0; i < connections; ++i) {
    sockets.push_back(Value(context.CreateSocket(esdp::Family::kIpv4)));
    Value(sockets[i].Connect(esdp::Address::Loopback(esdp::Family::kIpv4, port), {posts.queue}));
  }
  std::array<esdp::Event, 16> events;
  for (size_t i = 0; i < connections;) i += Value(posts.queue.Dequeue(absl::MakeSpan(events)));
  const auto send = [&](uint64_t place) {
    Value(sockets[place / kDepth].Send(
        posts.Place(place), esdp::SendFlags::kNone,
        {.queue = posts.queue, .cookie = place, .path = esdp::Path::kZeroCopy}));
  };
  for (uint64_t place = 0; place < connections * kDepth; ++place) send(place);
  double moved = 0;
  const Clock::time_point start = Clock::now();
  for (size_t open = connections * kDepth; open > 0;) {
    const bool over = SecondsSince(start) >= seconds;
    const size_t taken = Value(posts.queue.Dequeue(absl::MakeSpan(events)));
    for (size_t i = 0; i < taken; ++i) {
      Check(events[i].status());
      moved += static_cast<double>(events[i].bytes);
      if (over) {
        --open;
      } else {
        send(events[i].cookie);
      }
    }
  }
  return moved / SecondsSince(start);
}

void MoveByPosts(size_t connections, size_t bytes, double seconds) {
  double rate = 0;
  InTwo([&](int pipe_end) { ReceivePosted(pipe_end, connections, bytes); },
        [&](uint16_t port) {
          esdp::Context context = Open();
          rate = SendPosted(context, port, connections, bytes, seconds);
        });
  Report(rate * seconds, seconds);
}

// --- ping ----------------------------------------------------------------------------------------

// `move(memory, sends)`: all of it; false at the end.
using Move = std::function<bool(std::vector<std::byte>&, bool)>;

void Echo(const Move& move, size_t bytes) {
  std::vector<std::byte> memory(bytes);
  while (move(memory, false) && move(memory, true)) {
  }
}

void Ask(const Move& move, size_t bytes, double seconds) {
  std::vector<std::byte> memory(bytes);
  double count = 0;
  const Clock::time_point start = Clock::now();
  while (SecondsSince(start) < seconds) {
    if (!move(memory, true) || !move(memory, false)) std::exit(1);
    ++count;
  }
  std::printf("{\"round_trips_per_second\":%.0f}\n", count / SecondsSince(start));
}

Move By(esdp::Stream& stream) {
  return [&stream](std::vector<std::byte>& memory, bool sends) {
    return Value(sends ? stream.Write(absl::MakeConstSpan(memory))
                       : stream.Read(absl::MakeSpan(memory), {.min = memory.size()})) > 0;
  };
}

Move By(int descriptor) {
  return [descriptor](std::vector<std::byte>& memory, bool sends) {
    const ssize_t moved = sends ? ::send(descriptor, memory.data(), memory.size(), 0)
                                : ::recv(descriptor, memory.data(), memory.size(), MSG_WAITALL);
    return moved == static_cast<ssize_t>(memory.size());
  };
}

void PingStreams(size_t bytes, double seconds, const std::string& near, const std::string& far) {
  InTwo(
      [&](int pipe_end) {
        PinTo(far);
        esdp::Context context = Open();
        esdp::StreamListener listener = Value(
            esdp::StreamListener::Listen(context, esdp::Address::Loopback(esdp::Family::kIpv4, 0)));
        Tell(pipe_end, listener.local().port());
        esdp::Stream stream = Value(listener.Accept());
        Echo(By(stream), bytes);
      },
      [&](uint16_t port) {
        PinTo(near);
        esdp::Context context = Open();
        esdp::Stream stream = Value(
            esdp::Stream::Connect(context, esdp::Address::Loopback(esdp::Family::kIpv4, port)));
        Ask(By(stream), bytes, seconds);
        Check(stream.ShutdownWrite());
      });
}

void PingTcp(size_t bytes, double seconds, const std::string& near, const std::string& far) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  const int one = 1;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, name, sizeof(address)) != 0 || listen(listener, 1) != 0) std::exit(1);
  socklen_t length = sizeof(address);
  getsockname(listener, name, &length);
  InTwo(
      [&](int pipe_end) {
        PinTo(far);
        Tell(pipe_end, ntohs(address.sin_port));
        const int descriptor = accept(listener, nullptr, nullptr);
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        Echo(By(descriptor), bytes);
      },
      [&](uint16_t) {
        PinTo(near);
        const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(descriptor, name, sizeof(address)) != 0) std::exit(1);
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        Ask(By(descriptor), bytes, seconds);
        shutdown(descriptor, SHUT_WR);
      });
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (argc == 6 && words[1] == "move") {
    const auto connections = static_cast<size_t>(std::stoul(words[3]));
    const auto move = words[2] == "streams" ? MoveByStreams : MoveByPosts;
    move(connections, std::stoul(words[4]), std::stod(words[5]));
  } else if (argc == 7 && words[1] == "ping") {
    const auto ping = words[2] == "streams" ? PingStreams : PingTcp;
    ping(std::stoul(words[3]), std::stod(words[4]), words[5], words[6]);
  } else {
    std::fprintf(stderr, "%s move streams|posts CONNECTIONS BYTES SECONDS\n", argv[0]);
    std::fprintf(stderr, "%s ping streams|tcp BYTES SECONDS CPU CPU\n", argv[0]);
    return 2;
  }
  return 0;
}
