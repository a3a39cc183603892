// The queue's descriptor in an epoll loop, beside another descriptor: lines from standard input go
// out over one socket and come in over the other, until the end of the input.

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "esdp/context.h"
#include "samples/arguments.h"

namespace {

using samples::Value;

constexpr size_t kBytes = 4096;

// Two ends of one connection, in one Context.
class Loop {
 public:
  Loop()
      : context_(Value(esdp::Context::Open({.fabric = "qpip"}))),
        queue_(Value(context_.CreateQueue({}))),
        memory_(2 * kBytes),
        region_(Value(context_.Register(absl::MakeSpan(memory_)))) {
    Connect();
    Watch(queue_.fd());
    Watch(STDIN_FILENO);
  }

  ~Loop() { close(epoll_); }

  void Run() {
    while (!ended_) {
      epoll_event ready{};
      if (epoll_wait(epoll_, &ready, 1, -1) < 0 && errno != EINTR) break;
      if (ready.data.fd == queue_.fd()) OnQueue();
      if (ready.data.fd == STDIN_FILENO) OnInput();
    }
  }

 private:
  void Connect() {
    esdp::Socket listener = Value(context_.CreateSocket(esdp::Family::kIpv4));
    samples::Check(listener.Bind(esdp::Address::Loopback(esdp::Family::kIpv4, 0)));
    samples::Check(listener.Listen(1));
    Value(listener.Accept(1, {queue_}));
    out_ = Value(context_.CreateSocket(esdp::Family::kIpv4));
    Value(out_.Connect(listener.local(), {queue_}));
    std::array<esdp::Event, 2> events;
    Value(queue_.Dequeue(absl::MakeSpan(events), {.min_events = 2}));
    for (const esdp::Event& event : events) {
      samples::Check(event.status());
      if (event.type == esdp::EventType::kAccept)
        in_ = Value(context_.TakeAccepted(event.accepted));
    }
    Receive();
  }

  void Watch(int fd) {
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.fd = fd;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &wanted) != 0) {
      samples::Check(absl::ErrnoToStatus(errno, "cannot watch a descriptor"));
    }
  }

  void Ignore(int fd) { epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr); }

  // Readable means that events wait: take all of them without waiting.
  void OnQueue() {
    std::array<esdp::Event, 8> events;
    const size_t count = Value(queue_.TryDequeue(absl::MakeSpan(events)));
    for (size_t i = 0; i < count; ++i) OnEvent(events[i]);
  }

  void OnEvent(const esdp::Event& event) {
    samples::Check(event.status());
    if (event.type == esdp::EventType::kSend) Watch(STDIN_FILENO);
    if (event.type != esdp::EventType::kRecv) return;
    ended_ = event.eof();
    std::printf("%.*s", static_cast<int>(event.bytes), reinterpret_cast<char*>(&memory_[kBytes]));
    if (!ended_) Receive();
  }

  // The buffer is the library's until the send's event: no input is taken meanwhile.
  void OnInput() {
    const ssize_t count = read(STDIN_FILENO, memory_.data(), kBytes);
    Ignore(STDIN_FILENO);
    if (count > 0) {
      const esdp::Slice line = Value(region_.slice(0, static_cast<size_t>(count)));
      Value(out_.Send(line, esdp::SendFlags::kNone, {queue_}));
    } else {
      Value(out_.Shutdown({queue_}));
    }
  }

  void Receive() {
    const esdp::Slice room = Value(region_.slice(kBytes, kBytes));
    Value(in_.Recv(room, esdp::RecvFlags::kNone, {queue_}));
  }

  esdp::Context context_;
  esdp::EventQueue queue_;
  std::vector<std::byte> memory_;
  esdp::Region region_;
  esdp::Socket out_, in_;
  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  bool ended_ = false;
};

}  // namespace

int main() { Loop().Run(); }
