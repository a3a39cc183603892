#include "tests/bench/paper/synchronous.h"

#include <algorithm>
#include <cstring>

#include "tools/testbed/caches.h"

namespace esdp::paper {
namespace {

namespace testbed = fabric::sim::testbed;

// A call goes on until its buffer is full: sender and receiver use the same size.
constexpr RecvFlags kWhole = RecvFlags::kWaitAll;

}  // namespace

SocketOptions SocketOptionsOf(const testbed::Parameters& parameters, Mode mode) {
  SocketOptions options;
  if (mode != Mode::kByThreshold) {
    options.zcopy_send_min = options.zcopy_recv_min = mode == Mode::kZeroCopy ? 0 : kNever;
  }
  options.receive_buffers = static_cast<uint16_t>(parameters.kernel_buffers);
  options.receive_buffer_bytes = static_cast<uint32_t>(parameters.kernel_buffer_kib * 1024);
  options.receive_window_max = 0;
  options.coalesce_max = 0;
  return options;
}

Caller::Caller(Pair::Side& side, Mode mode, uint64_t bytes, size_t sharers)
    : side_(side),
      cookie_(side.threads.size()),
      thread_(side.AddThread()),
      mode_(mode),
      buffer_bytes_(static_cast<uint64_t>(side.host->parameters().kernel_buffer_kib * 1024)),
      missing_(esdp::testbed::MissingInCaches(side.host->parameters(), bytes, sharers)),
      memory_(bytes) {
  if (mode == Mode::kZeroCopy) return;
  slots_free_ = static_cast<uint64_t>(parameters().kernel_buffers);
  slots_.resize(slots_free_ * buffer_bytes_);
  slots_region_ =
      Require(side.context.Register(absl::MakeSpan(slots_), {.exposure = Exposure::kNone}));
  region_ = Require(side.context.Register(absl::MakeSpan(memory_), {.exposure = Exposure::kNone}));
}

void Caller::FreeSlots() {
  std::erase_if(thread_.events, [this](const Event& event) {
    if (event.type != EventType::kSend) return false;
    ++slots_free_;
    return true;
  });
}

Program Caller::Forever(Program (Caller::*call)()) {
  for (;;) co_await (this->*call)();
}

Program Caller::PingPong(bool asks) {
  const auto send = mode_ == Mode::kZeroCopy ? &Caller::SendZeroCopy : &Caller::SendBuffered;
  const auto receive =
      mode_ == Mode::kZeroCopy ? &Caller::ReceiveZeroCopy : &Caller::ReceiveBuffered;
  for (bool sends = asks;; sends = !sends) {
    if (sends) {
      co_await (this->*send)();
      continue;
    }
    for (got_ = 0; got_ < memory_.size();) co_await (this->*receive)();
    answers_.Add(side_.host->world().Now());
  }
}

Program Caller::Enter() {
  co_await thread_.Compute(parameters().kernel_system_call_us);
  side_.host->Lock();
}

Program Caller::Leave() {
  if (side_.host->TakeLeft()) {
    do {
      co_await thread_.Run(
          [this] {
            side_.host->Poll();
            side_.HandOut();
          },
          1);
    } while (side_.host->TakeMoreToPoll());
    side_.host->OnPolledAll();
  }
  side_.host->Unlock();
}

Program Caller::Wait() {
  co_await Leave();
  if (thread_.events.empty()) co_await thread_.Block();
  side_.host->Lock();
}

// --- buffered ------------------------------------------------------------------------------------

Caller::Part Caller::NextPart(uint64_t done) const {
  return {done, std::min(memory_.size() - done, buffer_bytes_)};
}

testbed::Work Caller::CopyIn(const Part& part) const {
  testbed::Work work = side_.host->Copy(part.bytes, missing_, esdp::testbed::kUncached);
  work.nanoseconds += parameters().kernel_fill_us * 1000;
  return work;
}

testbed::Work Caller::CopyOut(uint64_t bytes) const {
  const uint64_t each = std::min<uint64_t>(memory_.size(), buffer_bytes_);
  const auto buffers = static_cast<double>((bytes + each - 1) / each);
  testbed::Work work = side_.host->Copy(bytes, esdp::testbed::kUncached, missing_);
  work.nanoseconds += parameters().kernel_empty_us * 1000 * buffers;
  return work;
}

void Caller::PostPart(const Part& part) {
  const uint64_t at = next_slot_++ % static_cast<uint64_t>(parameters().kernel_buffers);
  std::memcpy(slots_.data() + at * buffer_bytes_, memory_.data() + part.offset, part.bytes);
  const Slice slice = Require(slots_region_.slice(at * buffer_bytes_, part.bytes));
  Require(socket().Send(slice, SendFlags::kNone, Args()).status());
  --slots_free_;
  side_.HandOut();
}

// A stream's bytes: they go to the begin of the buffer, wherever in the message they belong.
void Caller::PostReceive() {
  Require(socket().Recv(region_.slice(), RecvFlags::kNone, Args()).status());
  side_.HandOut();
}

Program Caller::SendBuffered() {
  co_await Enter();
  for (uint64_t done = 0; done < memory_.size();) {
    for (FreeSlots(); slots_free_ == 0; FreeSlots()) co_await Wait();
    const Part part = NextPart(done);
    co_await thread_.Spend(CopyIn(part));
    co_await thread_.Run([this, part] { PostPart(part); });
    done += part.bytes;
  }
  co_await Leave();
}

Program Caller::ReceiveBuffered() {
  co_await Enter();
  co_await thread_.Run([this] { PostReceive(); });
  for (FreeSlots(); thread_.events.empty(); FreeSlots()) co_await Wait();
  const uint64_t bytes = thread_.events.front().bytes;
  thread_.events.pop_front();
  co_await thread_.Spend(CopyOut(bytes));
  co_await Leave();
  got_ += bytes;
}

// --- zero-copy -----------------------------------------------------------------------------------

std::vector<Region> Caller::Pin() {
  const auto most = static_cast<size_t>(parameters().kernel_region_kib * 1024);
  std::vector<Region> regions;
  for (size_t at = 0; at < memory_.size(); at += most) {
    const auto bytes = absl::MakeSpan(memory_).subspan(at, most);
    regions.push_back(Require(side_.context.Register(bytes, {.exposure = Exposure::kRegionKey})));
  }
  return regions;
}

std::vector<Slice> Caller::SlicesOf(const std::vector<Region>& regions) {
  std::vector<Slice> slices;
  for (const Region& region : regions) slices.push_back(region.slice());
  return slices;
}

void Caller::Unpin(std::vector<Region>& regions) {
  for (Region& region : regions) Require(region.Close());
  regions.clear();
}

Program Caller::SendZeroCopy() {
  co_await Enter();
  std::vector<Region> regions;
  co_await thread_.Run([this, &regions] {
    regions = Pin();
    Require(socket().SendV(SlicesOf(regions), SendFlags::kNone, Args()).status());
  });
  while (thread_.events.empty()) co_await Wait();
  thread_.events.pop_front();
  co_await thread_.Run([&regions] { Unpin(regions); });
  co_await Leave();
}

Program Caller::ReceiveZeroCopy() {
  co_await Enter();
  std::vector<Region> regions;
  co_await thread_.Run([this, &regions] {
    regions = Pin();
    Require(socket().RecvV(SlicesOf(regions), kWhole, Args()).status());
    side_.HandOut();
  });
  while (thread_.events.empty()) co_await Wait();
  const uint64_t bytes = thread_.events.front().bytes;
  thread_.events.pop_front();
  co_await thread_.Run([&regions] { Unpin(regions); });
  co_await Leave();
  got_ += bytes;
}

}  // namespace esdp::paper
