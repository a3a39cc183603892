#include "tools/esdp_serve/channel.h"

#include <algorithm>
#include <utility>

namespace esdp_serve {
namespace {

constexpr absl::Duration kClosePatience = absl::Seconds(5);

}  // namespace

Channel::Channel(uint32_t id, esdp::Socket socket, Services& services)
    : id_(id),
      socket_(std::move(socket)),
      services_(services),
      weight_(services.options.weights.Of(socket_.peer())) {}

Channel::~Channel() { services_.shares.Forget(id_); }

esdp::OpArgs Channel::Args(uint32_t slot) const {
  return {.queue = services_.queue, .cookie = uint64_t{id_} << 32 | slot};
}

void Channel::AskShares(uint32_t shares) {
  if (shares > 0) weight_ = std::min(weight_, shares);
}

void Channel::Want(uint64_t bytes) {
  if (wants_slot_) return;
  wants_slot_ = true;
  services_.shares.Want(id_, bytes, weight_);
}

void Channel::TakeSlot() {
  wants_slot_ = false;
  ++held_;
  services_.metrics.slots_in_use += 1;
}

void Channel::Release(uint32_t slot) {
  services_.slots.Return(slot);
  services_.shares.Return(id_, services_.context.Now());
  --held_;
  services_.metrics.slots_in_use -= 1;
}

void Channel::Send(uint32_t slot, std::span<const esdp::Slice> slices) {
  const auto op = socket_.SendV({slices.data(), slices.size()}, esdp::SendFlags::kNone, Args(slot));
  if (op.ok()) return;
  Release(slot);
  Close(esdp::CloseMode::kAbort);
}

bool Channel::SendFile(uint32_t slot, const esdp::FilePlan& plan) {
  return socket_.SendFile(plan, Args(slot)).ok();
}

void Channel::Receive(std::span<std::byte> bytes, esdp::RecvFlags flags) {
  const auto op = socket_.RecvCopy(bytes, flags, Args(kNoSlot));
  if (!op.ok()) Close(esdp::CloseMode::kAbort);
}

bool Channel::ReceiveFile(const esdp::FileSink& sink) {
  const auto op = socket_.RecvFile(sink, Args(kNoSlot));
  if (!op.ok()) Close(esdp::CloseMode::kAbort);
  return op.ok();
}

void Channel::Run(std::function<void()> work, std::function<void()> done) {
  ++jobs_;
  services_.workers.Run(std::move(work), [this, done = std::move(done)] {
    --jobs_;
    done();
  });
}

void Channel::Shutdown() {
  if (!socket_.Shutdown(Args(kNoSlot)).ok()) Close(esdp::CloseMode::kAbort);
}

void Channel::Close(esdp::CloseMode mode) {
  if (closing_ && mode == esdp::CloseMode::kGraceful) return;
  if (wants_slot_) services_.shares.Forget(id_);
  wants_slot_ = false;
  const bool again = std::exchange(closing_, true);
  esdp::OpArgs args = Args(kNoSlot);
  args.deadline = services_.context.Now() + kClosePatience;
  const auto op = socket_.Close(mode, args);
  // Without an event to come the destructor ends it; what was posted has its own events.
  if (!op.ok() && !again) closed_ = true;
}

}  // namespace esdp_serve
