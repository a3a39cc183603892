#include "esdp/context.h"

#include <string>
#include <utility>

#include "impl/base/bytes.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/convert.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/memory/owned_memory.h"
#include "impl/sockets/memory/registration.h"
#include "impl/sockets/queue/event_queue_state.h"
#include "impl/sockets/socket/socket_access.h"
#include "impl/sockets/socket/socket_state.h"

namespace esdp {
namespace {

using sockets::ContextCall;
using sockets::ContextState;
using sockets::MakeError;

}  // namespace

Context& Context::operator=(Context&& other) noexcept {
  if (this != &other) {
    if (state_ != nullptr) state_->Stop();
    state_ = std::move(other.state_);
  }
  return *this;
}

Context::~Context() {
  if (state_ != nullptr) state_->Stop();
}

absl::StatusOr<Region> Context::Register(absl::Span<std::byte> memory,
                                         const RegisterOptions& options) {
  return sockets::Register(state_, memory, options);
}

absl::StatusOr<Region> Context::RegisterReadOnly(absl::Span<const std::byte> memory,
                                                 RegisterOptions options) {
  options.local_write = false;
  // Nothing writes to a region without local_write.
  auto* const bytes = const_cast<std::byte*>(memory.data());
  return sockets::Register(state_, absl::MakeSpan(bytes, memory.size()), options);
}

absl::StatusOr<Region> Context::Allocate(size_t bytes, const AllocateOptions& options) {
  return sockets::RegisterOwn(state_, bytes, options);
}

absl::StatusOr<Region> Context::RegisterDmaBuf(int fd, uint64_t offset, uint64_t length,
                                               RegisterOptions options) {
  return sockets::OrNoMemory([&]() -> absl::StatusOr<Region> {
    const ContextCall call(state_.get());
    if (!call.ok()) return call.status();
    if (fd < 0 || length == 0 || offset + length < offset) {
      return MakeError(ErrorKind::kInvalidArgument,
                       "a dma-buf needs its descriptor and a range of at least one byte");
    }
    if (options.exposure == Exposure::kNone) {
      return MakeError(ErrorKind::kInvalidArgument,
                       "a dma-buf with the exposure kNone could only be copied, and the processor "
                       "need not reach it");
    }
    options.local_write = false;
    const size_t past = static_cast<size_t>(offset % sockets::kPageBytes);
    sockets::OwnedMemory names = sockets::ReserveAddresses(past + length);
    if (names == nullptr) {
      return MakeError(ErrorKind::kMemory,
                       "no addresses for " + std::to_string(length) + " bytes: ask for less");
    }
    auto registered =
        state_->shard().RegisterDmaBuf({fd, offset}, {names.get() + past, length},
                                       static_cast<provider::Exposure>(options.exposure));
    if (!registered.ok()) return sockets::Adopt(registered.status());
    return sockets::RegionOf(state_, *registered, options, length, std::move(names));
  });
}

absl::StatusOr<EventQueue> Context::CreateQueue(const QueueOptions& options) {
  return sockets::OrNoMemory([&]() -> absl::StatusOr<EventQueue> {
    const ContextCall call(state_.get());
    if (!call.ok()) return call.status();
    auto queue = sockets::QueueState::Create(state_, options);
    if (!queue.ok()) return queue.status();
    return sockets::QueueAccess::Make(*std::move(queue));
  });
}

absl::StatusOr<Socket> Context::CreateSocket(Family family, SocketType,
                                             const SocketOptions& options) {
  return sockets::OrNoMemory([&]() -> absl::StatusOr<Socket> {
    const ContextCall call(state_.get());
    if (!call.ok()) return call.status();
    if (absl::Status status = sockets::SocketState::CheckOptions(options); !status.ok()) {
      return status;
    }
    auto socket =
        std::make_shared<sockets::SocketState>(state_, state_->NewSocketId(), family, options);
    state_->Add(socket);
    return sockets::SocketAccess::Make(std::move(socket));
  });
}

absl::StatusOr<Socket> Context::TakeAccepted(SocketId accepted) {
  return sockets::OrNoMemory([&]() -> absl::StatusOr<Socket> {
    const ContextCall call(state_.get());
    if (!call.ok()) return call.status();
    return state_->TakeAccepted(accepted);
  });
}

absl::Time Context::Now() const { return state_ == nullptr ? absl::InfinitePast() : state_->Now(); }

absl::StatusOr<int> Context::Progress(absl::Duration max) {
  return sockets::OrNoMemory([&]() -> absl::StatusOr<int> {
    const ContextCall call(state_.get());
    if (!call.ok()) return call.status();
    if (!state_->manual()) {
      return MakeError(ErrorKind::kWrongState,
                       "the Context's own thread makes progress: open it with Progress::kManual");
    }
    provider::Shard& shard = state_->shard();
    const Time deadline = AddSaturating(shard.Now(), sockets::ToDuration(max));
    int rounds = 0;
    for (;;) {
      if (shard.Poll()) {
        ++rounds;
      } else if (shard.virtual_time()) {
        if (max <= absl::ZeroDuration() || !shard.Advance(deadline)) break;
        continue;
      }
      if (shard.Now() >= deadline) break;
    }
    state_->left_regions().Reap(*state_);
    return rounds;
  });
}

std::vector<Transport> Context::transports() const {
  return state_ == nullptr ? std::vector<Transport>{} : state_->transports();
}

absl::StatusOr<bool> Context::WaitBeside(int descriptor, const WaitBesideArgs& args) {
  return sockets::OrNoMemory([&]() -> absl::StatusOr<bool> {
    const ContextCall call(state_.get());
    if (!call.ok()) return call.status();
    if (state_->manual()) {
      return MakeError(ErrorKind::kWrongState,
                       "with manual progress the application calls Progress before it waits");
    }
    return state_->WaitBeside({.descriptor = descriptor,
                               .deadline = state_->ToShardTime(args.deadline),
                               .spin = sockets::ToDuration(state_->options().progress_spin),
                               .signals = args.signals,
                               .comes_back = args.comes_back});
  });
}

void Context::WakeWaitBeside() {
  const ContextCall call(state_.get());
  if (call.ok()) state_->WakeWaitBeside();
}

ContextStats Context::Stats() const { return state_ == nullptr ? ContextStats{} : state_->Stats(); }

absl::Status Context::Close(absl::Time deadline) {
  return sockets::OrNoMemory([&]() -> absl::Status {
    Time last;
    {
      const ContextCall call(state_.get());
      if (!call.ok()) return call.status();
      // From here on only the time that passes counts, whatever becomes of the wall clock.
      last = state_->ToShardTime(deadline);
      for (const auto& socket : state_->Sockets()) socket->CloseQuietly();
    }
    bool late = false;
    while (!late && state_->Stats().sockets > 0) late = !state_->Pause(last);
    state_->Stop();
    if (!late) return absl::OkStatus();
    return MakeError(ErrorKind::kDeadlineExceeded,
                     "connections were still open at the deadline and have been aborted");
  });
}

}  // namespace esdp
