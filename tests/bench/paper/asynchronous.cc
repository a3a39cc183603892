#include "tests/bench/paper/asynchronous.h"

#include <array>

#include "tools/testbed/caches.h"

namespace esdp::paper {
namespace {

namespace testbed = fabric::sim::testbed;

constexpr size_t kPollsAtOnce = 32;  // as the library's own rounds
constexpr double kLookMicroseconds = 0.5;

}  // namespace

ContextOptions ContextOptionsOf(Means means) {
  return {.adaptive_threshold = means == Means::kAdaptive,
          .show_receives = means == Means::kWritten};
}

SocketOptions SocketOptionsOf(const testbed::Parameters& parameters, Means means) {
  SocketOptions options;
  if (means != Means::kAdaptive) {
    options.zcopy_send_min = options.zcopy_recv_min = means == Means::kCopied ? kNever : 0;
  } else {
    options.zcopy_recv_min = 0;  // the sender decides
  }
  options.receive_buffers = static_cast<uint16_t>(parameters.kernel_buffers);
  options.receive_buffer_bytes = static_cast<uint32_t>(parameters.kernel_buffer_kib * 1024);
  options.receive_window_max = 0;
  options.coalesce_max = 0;
  return options;
}

AsynchronousCaller::AsynchronousCaller(Pair::Side& side, bool sends, const Habit& habit,
                                       uint64_t bytes)
    : side_(side),
      sends_(sends),
      habit_(habit),
      bytes_(bytes),
      thread_(side.AddThread()),
      memory_(habit.outstanding * bytes),
      region_(Require(
          side.context.Register(absl::MakeSpan(memory_), {.exposure = Exposure::kRegionKey}))) {}

void AsynchronousCaller::Start() {
  side_.host->ServeInProcess([this] { thread_.Wake(); });
  thread_.Start(Run());
}

double AsynchronousCaller::MicrosecondsEach() const {
  return ended_ == 0 ? 0 : static_cast<double>(taken_.count()) / 1000 / static_cast<double>(ended_);
}

void AsynchronousCaller::Post() {
  const Slice slice = Require(region_.slice(posted_++ % habit_.outstanding * bytes_, bytes_));
  Socket& socket = side_.socket;
  const OpArgs args{.queue = side_.queue};
  posted_at_ = side_.host->world().Now();
  Require((sends_ ? socket.Send(slice, SendFlags::kNone, args)
                  : socket.Recv(slice, RecvFlags::kNone, args))
              .status());
  ++outstanding_;
}

void AsynchronousCaller::Refill() {
  while (outstanding_ < habit_.outstanding) Post();
}

size_t AsynchronousCaller::Collect() {
  Require(side_.context.Progress().status());
  size_t ended = 0;
  std::array<Event, kPollsAtOnce> events;
  while (side_.queue.Stats().waiting > 0) {
    const size_t count = Require(side_.queue.TryDequeue(absl::MakeSpan(events)));
    for (size_t i = 0; i < count; ++i) Require(events[i].status());
    ended += count;
  }
  ended_ += ended;
  outstanding_ -= ended;
  if (ended > 0) taken_ += side_.host->world().Now() - posted_at_;
  return ended;
}

testbed::Work AsynchronousCaller::Copies() {
  const uint64_t copied = side_.socket.Stats().payload_copy_bytes;
  const uint64_t bytes = copied - copied_;
  copied_ = copied;
  return side_.host->Copy(
      bytes, esdp::testbed::kUncached,
      esdp::testbed::MissingInCaches(side_.host->parameters(), memory_.size(), 1));
}

Program AsynchronousCaller::Run() {
  double idle = 0;
  for (;;) {
    size_t ended = 0;
    co_await thread_.Run(
        [this, &ended] {
          ended = Collect();
          if (habit_.pause_us == 0) Refill();
        },
        kPollsAtOnce);
    co_await thread_.Spend(Copies());
    if (habit_.pause_us > 0 && outstanding_ == 0) {
      co_await thread_.Compute(habit_.pause_us);
      co_await thread_.Run([this] { Refill(); });
    }
    if (ended > 0 || side_.host->TakeMoreToPoll()) {
      idle = 0;
    } else if (idle < habit_.spin_us) {
      co_await thread_.Compute(kLookMicroseconds);
      idle += kLookMicroseconds;
    } else {
      // What came between the last look and the request for an interrupt would wake nobody.
      side_.host->Arm();
      co_await thread_.Compute(side_.host->parameters().kernel_system_call_us);
      if (!side_.host->TakeMoreToPoll()) co_await thread_.Block();
      idle = 0;
    }
  }
}

}  // namespace esdp::paper
