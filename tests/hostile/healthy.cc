// A client beside an attack. It talks to the victim as programs do, on a connection that stays and
// on others that come and go, and checks every byte that is sent back. It ends with 0 when its
// standard input ends, and with 1 and a reason as soon as anything is wrong.
//
//   healthy --port PORT
//
// Each line of standard input is answered with counters from the start, and the worst times since
// the line before.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "esdp/context.h"
#include "samples/arguments.h"

namespace {

using samples::Argument;
using samples::Check;
using samples::Value;

constexpr size_t kBulkBytes = 256 * 1024;
constexpr size_t kPingBytes = 100;
constexpr int kPings = 8;
constexpr absl::Duration kLimit = absl::Seconds(120);
constexpr std::chrono::milliseconds kPause(1);

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(1);
}

class Client {
 public:
  explicit Client(const std::string& port)
      : address_(Value(esdp::Address::Parse("127.0.0.1:" + port))),
        context_(Value(esdp::Context::Open({.fabric = "qpip"}))),
        queue_(Value(context_.CreateQueue({.wait = esdp::WaitMode::kNotify}))),
        to_victim_(Value(context_.Register(std::span(out_)))),
        from_victim_(Value(context_.Register(std::span(in_)))),
        steady_(Connect()) {}

  void Round() {
    for (int i = 0; i < kPings; ++i) Ping(steady_);
    Bulk(steady_);
    const absl::Time began = context_.Now();
    esdp::Socket visit = Connect();
    Ping(visit);
    Bulk(visit);
    Value(visit.Close(esdp::CloseMode::kGraceful, {queue_}));
    Await(1);
    worst_visit_ = std::max(worst_visit_, context_.Now() - began);
    ++rounds_;
  }

  void Tell() {
    std::printf("{\"rounds\": %zu, \"echoes\": %zu, \"worst_echo\": %.6f, \"worst_visit\": %.6f}\n",
                rounds_, echoes_, absl::ToDoubleSeconds(worst_echo_),
                absl::ToDoubleSeconds(worst_visit_));
    worst_echo_ = worst_visit_ = absl::ZeroDuration();
  }

  void Close() { Check(context_.Close(context_.After(kLimit))); }

 private:
  esdp::Socket Connect() {
    esdp::Socket socket = Value(context_.CreateSocket(esdp::Family::kIpv4));
    Value(socket.Connect(address_, {queue_}));
    Await(1);
    return socket;
  }

  void Ping(esdp::Socket& socket) {
    Echo(socket, kPingBytes, esdp::Path::kByThreshold);
    std::this_thread::sleep_for(kPause);
  }
  void Bulk(esdp::Socket& socket) { Echo(socket, kBulkBytes, esdp::Path::kZeroCopy); }

  void Echo(esdp::Socket& socket, size_t bytes, esdp::Path path) {
    Fill(bytes);
    const absl::Time began = context_.Now();
    Value(socket.Recv(Value(from_victim_.slice(0, bytes)), esdp::RecvFlags::kWaitAll, {queue_}));
    Value(socket.Send(Value(to_victim_.slice(0, bytes)), esdp::SendFlags::kNone,
                      {.queue = queue_, .path = path}));
    Await(2);
    worst_echo_ = std::max(worst_echo_, context_.Now() - began);
    if (std::memcmp(out_.data(), in_.data(), bytes) != 0) Fail("other bytes came back");
    ++echoes_;
  }

  // Different ones each time, so that old ones are not taken for new ones.
  void Fill(size_t bytes) {
    for (size_t at = 0; at + sizeof(state_) <= bytes; at += sizeof(state_)) {
      state_ = state_ * 6364136223846793005 + 1442695040888963407;
      std::memcpy(out_.data() + at, &state_, sizeof(state_));
    }
    out_[0] = std::byte{'H'};
  }

  void Await(size_t count) {
    std::array<esdp::Event, 2> events;
    const absl::Time deadline = context_.After(kLimit);
    const size_t came =
        Value(queue_.Dequeue(std::span(events), {.min_events = count, .deadline = deadline}));
    for (size_t i = 0; i < came; ++i) Check(events[i].status());
  }

  std::vector<std::byte> out_ = std::vector<std::byte>(kBulkBytes);
  std::vector<std::byte> in_ = std::vector<std::byte>(kBulkBytes);
  esdp::Address address_;
  esdp::Context context_;
  esdp::EventQueue queue_;
  esdp::Region to_victim_;
  esdp::Region from_victim_;
  esdp::Socket steady_;
  uint64_t state_ = 1;
  size_t rounds_ = 0;
  size_t echoes_ = 0;
  absl::Duration worst_echo_;
  absl::Duration worst_visit_;
};

// How many lines have come; -1 at the end of standard input.
int LinesThatCame() {
  int lines = 0;
  for (pollfd input{STDIN_FILENO, POLLIN, 0}; poll(&input, 1, 0) > 0;) {
    std::array<char, 256> text;
    const ssize_t size = read(STDIN_FILENO, text.data(), text.size());
    if (size <= 0) return -1;
    lines += static_cast<int>(std::count(text.begin(), text.begin() + size, '\n'));
  }
  return lines;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // each line at once, also into a pipe
  Client client(Argument(argc, argv, "--port", "0"));
  for (int lines = 0; lines >= 0; lines = LinesThatCame()) {
    for (; lines > 0; --lines) client.Tell();
    client.Round();
  }
  client.Tell();
  client.Close();
}
