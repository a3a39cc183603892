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

namespace {

constexpr size_t kSharedMin = size_t{64} << 10;  // less is copied, or costs little to copy twice

absl::Status NoMemoryFor(size_t bytes, const std::string& why) {
  return MakeError(ErrorKind::kMemory, "no memory for " + std::to_string(bytes) + " bytes: " + why);
}

bool WantsSharedMemory(ContextState& context, size_t bytes, const AllocateOptions& options) {
  if (options.shareable == Shareable::kAuto) {
    return bytes >= kSharedMin && options.registration.exposure != Exposure::kNone &&
           context.shard().SharesMemory();
  }
  return options.shareable == Shareable::kAlways;
}

// Without a file where it need not be shared.
absl::StatusOr<SharedMemory> MapOwn(ContextState& context, size_t bytes,
                                    const AllocateOptions& options) {
  if (WantsSharedMemory(context, bytes, options)) {
    absl::StatusOr<SharedMemory> shared = MapSharedMemory(bytes);
    if (shared.ok()) return shared;
    const std::string why(shared.status().message());
    if (options.shareable == Shareable::kAlways && absl::IsUnimplemented(shared.status())) {
      return MakeError(ErrorKind::kUnsupported, why);
    }
    if (options.shareable == Shareable::kAlways) return NoMemoryFor(bytes, why);
  }
  SharedMemory own{{}, MapMemory(bytes, Pages::kLarge)};
  if (own.memory == nullptr) return NoMemoryFor(bytes, "ask for less");
  return own;
}

}  // namespace

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
                                OwnedMemory owned, int file) {
  return OrNoMemory([&]() -> absl::StatusOr<Region> {
    const ContextCall call(context.get());
    if (!call.ok()) return call.status();
    if (memory.data() == nullptr || memory.empty()) {
      return MakeError(ErrorKind::kInvalidArgument, "a region needs at least one byte of memory");
    }
    auto registered =
        context->shard().Register({memory.data(), memory.size()}, options.local_write,
                                  static_cast<provider::Exposure>(options.exposure), file);
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
    absl::StatusOr<SharedMemory> own = MapOwn(*context, bytes, options);
    if (!own.ok()) return own.status();
    const auto memory = absl::MakeSpan(own->memory.get(), bytes);
    return Register(context, memory, options.registration, std::move(own->memory),
                    own->file.number());
  });
}

}  // namespace esdp::sockets
