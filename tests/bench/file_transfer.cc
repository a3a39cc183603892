// What moves a file from one Context to another, over and over, and what that costs.
//
//   file_transfer memory FILE SECONDS     registered memory, 1 MiB at a time, eight outstanding
//   file_transfer plain|pipelined|direct FILE SECONDS [cold]
//                                         SendFile of the whole file, two outstanding; "cold": one,
//                                         and the page cache forgets the file before each
//   file_transfer receive FILE SECONDS    RecvFile into a new file as long as this one, which is on
//                                         the medium before the next begins; from memory
//   file_transfer echo FILE SECONDS [cold]
//                                         64 bytes there and back on a second connection of the
//                                         same Contexts; "cold": while the first sends the file
//
// Each Context has its own thread. Prints {"bytes_per_second", "cpu_seconds_per_gb"} of both sides,
// or {"p50", "p99"} of round trips in microseconds. With "cold" and "receive" only what is between a
// post and its event is measured, and of the round trips only those meanwhile.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "esdp/context.h"
#include "esdp/file.h"
#include "samples/arguments.h"

namespace {

using samples::Check;
using samples::Value;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kPiece = uint64_t{1} << 20;
constexpr uint64_t kDepth = 8;

double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double SecondsSince(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

// Of the process, while it runs: what is between two files is not measured, as fio does not measure
// what it takes to forget a file or to remove it.
class Stopwatch {
 public:
  void Go() {
    begun_ = Clock::now();
    cpu_begun_ = CpuSeconds();
  }
  void Stop() {
    seconds_ += SecondsSince(begun_);
    cpu_ += CpuSeconds() - cpu_begun_;
  }
  void Print(uint64_t bytes) const {
    const auto moved = static_cast<double>(bytes);
    std::printf("{\"bytes_per_second\": %.0f, \"cpu_seconds_per_gb\": %.4f}\n", moved / seconds_,
                cpu_ / (moved / 1e9));
  }

 private:
  Clock::time_point begun_;
  double cpu_begun_ = 0;
  double seconds_ = 0;
  double cpu_ = 0;
};

void CheckSystem(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::exit(1);
}

// One end: a socket, its queue, and memory for what is outstanding.
struct End {
  explicit End(esdp::Context& context)
      : queue(Value(context.CreateQueue({.depth = 64}))),
        region(Value(context.Allocate(kDepth * kPiece))) {}

  esdp::Slice Place(uint64_t number, uint64_t length) const {
    return Value(region.slice(number % kDepth * kPiece, length));
  }
  esdp::Event Next() {
    std::array<esdp::Event, 1> event;
    Value(queue.Dequeue(absl::MakeSpan(event)));
    return event[0];
  }
  esdp::Event NextGood() {
    const esdp::Event event = Next();
    if (!event.ok()) Check(event.status());
    return event;
  }

  esdp::EventQueue queue;
  esdp::Region region;
  esdp::Socket socket;
};

struct Connection {
  Connection(esdp::Context& from, esdp::Context& to) : sender(from), receiver(to) {
    esdp::Socket listener = Value(to.CreateSocket(esdp::Family::kIpv4));
    Check(listener.Bind(esdp::Address::Loopback(esdp::Family::kIpv4, 0)));
    Check(listener.Listen(1));
    Value(listener.Accept(1, {receiver.queue}));
    sender.socket = Value(from.CreateSocket(esdp::Family::kIpv4));
    Value(sender.socket.Connect(listener.local(), {sender.queue}));
    receiver.socket = Value(to.TakeAccepted(receiver.NextGood().accepted));
    sender.NextGood();
  }

  End sender;
  End receiver;
};

// Until the peer's end of stream; the bytes that came.
uint64_t TakeAll(End& end) {
  uint64_t posted = 0;
  const auto post = [&] {
    Value(end.socket.Recv(end.Place(posted++, kPiece), esdp::RecvFlags::kWaitAll, {end.queue}));
  };
  while (posted < kDepth) post();
  uint64_t bytes = 0;
  for (;;) {
    const esdp::Event event = end.NextGood();
    bytes += event.bytes;
    if (event.bytes < kPiece) return bytes;
    post();
  }
}

// Keeps `outstanding` posts out while `goes_on`, and drains them.
template <typename Post, typename GoesOn>
void KeepPosted(End& end, uint64_t outstanding, const Post& post, const GoesOn& goes_on) {
  uint64_t out = 0;
  for (uint64_t posted = 0;;) {
    while (out < outstanding && goes_on()) {
      post(posted++);
      ++out;
    }
    if (out == 0) return;
    end.NextGood();
    --out;
  }
}

class Files {
 public:
  explicit Files(const char* path) : path_(path), fd_(open(path, O_RDONLY | O_CLOEXEC)) {
    CheckSystem(fd_ >= 0, path);
    struct stat details {};
    CheckSystem(fstat(fd_, &details) == 0, path);
    length_ = static_cast<uint64_t>(details.st_size);
  }
  uint64_t length() const { return length_; }

  void Send(End& end, esdp::FileStrategy strategy, const auto& goes_on) const {
    KeepPosted(
        end, 2, [&](uint64_t) { Post(end, strategy); }, goes_on);
  }

  // One at a time; the page cache forgets the file before each. `until_forgotten` and `until_sent`
  // are called in between.
  void SendCold(End& end, esdp::FileStrategy strategy, const auto& goes_on,
                const auto& until_forgotten, const auto& until_sent) const {
    while (goes_on()) {
      posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
      until_forgotten();
      Post(end, strategy);
      end.NextGood();
      until_sent();
    }
  }

  // A new file, until it is on the medium.
  void Receive(End& end, Stopwatch& watch) const {
    const std::string path = path_ + ".received";
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CheckSystem(fd >= 0, path.c_str());
    unlink(path.c_str());
    watch.Go();
    Value(end.socket.RecvFile({.fd = fd, .length = length_, .sync = esdp::SyncPolicy::kEnd},
                              {end.queue}));
    end.NextGood();
    watch.Stop();
    close(fd);
  }

 private:
  void Post(End& end, esdp::FileStrategy strategy) const {
    const std::array<esdp::FileRange, 1> all = {esdp::FileRange{fd_, 0, length_}};
    Value(end.socket.SendFile({.ranges = all, .strategy = strategy}, {end.queue}));
  }

  const std::string path_;
  const int fd_;
  uint64_t length_ = 0;
};

// One file after the other.
void MoveIntoFiles(Connection& connection, const Files& files, double seconds) {
  End& sender = connection.sender;
  Stopwatch watch;
  const auto begun = Clock::now();
  std::atomic<uint64_t> files_begun{0};
  std::atomic<bool> ended{false};
  std::thread source([&] {
    uint64_t left = 0;
    const auto goes_on = [&] {
      if (left > 0) return true;
      if (SecondsSince(begun) >= seconds) return false;
      left = files.length();
      ++files_begun;
      return true;
    };
    const auto post = [&](uint64_t number) {
      const uint64_t length = std::min(left, kPiece);
      left -= length;
      Value(
          sender.socket.Send(sender.Place(number, length), esdp::SendFlags::kNone, {sender.queue}));
    };
    KeepPosted(sender, kDepth, post, goes_on);
    ended = true;
  });
  uint64_t received = 0;
  while (!ended || received < files_begun) {
    if (received < files_begun) {
      files.Receive(connection.receiver, watch);
      ++received;
    } else {
      std::this_thread::yield();
    }
  }
  source.join();
  watch.Print(received * files.length());
}

void Move(Connection& connection, const Files& files, std::string_view kind, double seconds,
          bool cold) {
  End& sender = connection.sender;
  Stopwatch watch;
  const auto begun = Clock::now();
  if (!cold) watch.Go();
  const auto goes_on = [&] { return SecondsSince(begun) < seconds; };
  uint64_t bytes = 0;
  std::thread sink([&] { bytes = TakeAll(connection.receiver); });
  if (kind == "memory") {
    KeepPosted(
        sender, kDepth,
        [&](uint64_t number) {
          Value(sender.socket.Send(sender.Place(number, kPiece), esdp::SendFlags::kNone,
                                   {sender.queue}));
        },
        goes_on);
  } else {
    const auto strategy = kind == "plain"    ? esdp::FileStrategy::kPlain
                          : kind == "direct" ? esdp::FileStrategy::kDirect
                                             : esdp::FileStrategy::kPipelined;
    if (cold) {
      files.SendCold(
          sender, strategy, goes_on, [&] { watch.Go(); }, [&] { watch.Stop(); });
    } else {
      files.Send(sender, strategy, goes_on);
    }
  }
  Value(sender.socket.Shutdown({sender.queue}));
  sink.join();
  if (!cold) watch.Stop();
  watch.Print(bytes);
}

// Round trips in microseconds: those during which `counts` says so.
std::vector<double> Echo(Connection& connection, double seconds, const auto& counts) {
  constexpr uint64_t kEcho = 64;
  End& client = connection.sender;
  End& server = connection.receiver;
  const auto receive = [](End& end) {
    Value(end.socket.Recv(end.Place(0, kEcho), esdp::RecvFlags::kWaitAll, {end.queue}));
  };
  const auto send = [](End& end) {
    Value(end.socket.Send(end.Place(1, kEcho), esdp::SendFlags::kNone, {end.queue}));
  };
  receive(server);
  std::thread echo([&] {
    for (;;) {
      const esdp::Event event = server.NextGood();
      if (event.type != esdp::EventType::kRecv) continue;
      if (event.bytes < kEcho) return;
      receive(server);
      send(server);
    }
  });
  std::vector<double> trips;
  const auto begun = Clock::now();
  // The first file may begin to move late.
  const auto goes_on = [&] {
    return SecondsSince(begun) < (trips.empty() ? seconds + 30 : seconds);
  };
  while (goes_on()) {
    const bool counted = counts();
    const auto sent = Clock::now();
    receive(client);
    send(client);
    while (client.NextGood().type != esdp::EventType::kRecv) continue;
    const double trip = SecondsSince(sent) * 1e6;
    if (counted && counts()) trips.push_back(trip);
  }
  Value(client.socket.Shutdown({client.queue}));
  echo.join();
  std::ranges::sort(trips);
  return trips;
}

void EchoBeside(esdp::Context& from, esdp::Context& to, const Files& files, double seconds,
                bool cold) {
  Connection quiet(from, to);
  Connection busy(from, to);
  std::atomic<bool> goes_on{cold};
  std::thread sink([&] { TakeAll(busy.receiver); });
  std::atomic<bool> moves{false};
  std::thread source([&] {
    files.SendCold(
        busy.sender, esdp::FileStrategy::kPipelined, [&] { return goes_on.load(); },
        [&] { moves = true; }, [&] { moves = false; });
    Value(busy.sender.socket.Shutdown({busy.sender.queue}));
  });
  const std::vector<double> trips = Echo(quiet, seconds, [&] { return !cold || moves.load(); });
  goes_on = false;
  source.join();
  sink.join();
  if (trips.empty()) {
    std::fprintf(stderr, "no round trip was measured: there is too little time\n");
    std::exit(1);
  }
  std::printf("{\"p50\": %.2f, \"p99\": %.2f}\n", trips[trips.size() / 2],
              trips[trips.size() * 99 / 100]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc > 3 ? argv[1] : "";
  const bool known = kind == "memory" || kind == "plain" || kind == "pipelined" ||
                     kind == "direct" || kind == "receive" || kind == "echo";
  const double seconds = argc > 3 ? std::atof(argv[3]) : 0;
  if (!known || seconds <= 0) {
    std::fprintf(stderr,
                 "usage: file_transfer memory|plain|pipelined|direct|receive|echo FILE SECONDS "
                 "[cold]\n");
    return 2;
  }
  const bool cold = argc > 4 && std::string_view(argv[4]) == "cold";
  const Files files(argv[2]);
  esdp::Context from = Value(esdp::Context::Open({.fabric = "qpip"}));
  esdp::Context to = Value(esdp::Context::Open({.fabric = "qpip"}));
  if (kind == "echo") {
    EchoBeside(from, to, files, seconds, cold);
  } else {
    Connection connection(from, to);
    if (kind == "receive") {
      MoveIntoFiles(connection, files, seconds);
    } else {
      Move(connection, files, kind, seconds, cold);
    }
  }
}
