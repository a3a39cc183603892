#include "impl/sockets/memory/registration.h"

#include <string>
#include <utility>

#include "impl/base/undo.h"
#include "impl/sockets/context/context_state.h"
#include "impl/sockets/errors.h"
#include "impl/sockets/memory/region_state.h"

namespace esdp::sockets {

static_assert(static_cast<int>(Exposure::kNone) == static_cast<int>(provider::Exposure::kNone));
static_assert(static_cast<int>(Exposure::kRegionKey) ==
              static_cast<int>(provider::Exposure::kRegionKey));

Region RegionOf(const std::shared_ptr<ContextState>& context,
                const std::shared_ptr<provider::MemoryRegion>& memory,
                const RegisterOptions& options, uint64_t length, OwnedMemory owned) {
  Undo undo([&] { (void)context->shard().Deregister(*memory); });
  auto state = std::make_shared<RegionState>(context, memory, options, length, std::move(owned));
  undo.Cancel();
  return SliceAccess::Make(std::move(state));
}

absl::StatusOr<Region> Register(const std::shared_ptr<ContextState>& context,
                                absl::Span<std::byte> memory, const RegisterOptions& options,
                                OwnedMemory owned) {
  return OrNoMemory([&]() -> absl::StatusOr<Region> {
    const ContextCall call(context.get());
    if (!call.ok()) return call.status();
    if (memory.data() == nullptr || memory.empty()) {
      return MakeError(ErrorKind::kInvalidArgument, "a region needs at least one byte of memory");
    }
    auto registered = context->shard().Register({memory.data(), memory.size()}, options.local_write,
                                                static_cast<provider::Exposure>(options.exposure));
    if (!registered.ok()) return Adopt(registered.status());
    return RegionOf(context, *registered, options, memory.size(), std::move(owned));
  });
}

absl::StatusOr<Region> RegisterOwn(const std::shared_ptr<ContextState>& context, size_t bytes,
                                   const AllocateOptions& options) {
  return OrNoMemory([&]() -> absl::StatusOr<Region> {
    const ContextCall call(context.get());
    if (!call.ok()) return call.status();
    if (bytes == 0) return Register(context, {}, options.registration);  // says why not
    OwnedMemory owned = MapMemory(bytes, Pages::kLarge);
    if (owned == nullptr) {
      return MakeError(ErrorKind::kMemory,
                       "no memory for " + std::to_string(bytes) + " bytes: ask for less");
    }
    const auto memory = absl::MakeSpan(owned.get(), bytes);
    return Register(context, memory, options.registration, std::move(owned));
  });
}

}  // namespace esdp::sockets
