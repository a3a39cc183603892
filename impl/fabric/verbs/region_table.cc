#include "impl/fabric/verbs/region_table.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "impl/base/status.h"

namespace esdp::fabric::verbs {
namespace {

uint64_t AddressOf(const std::byte* pointer) { return reinterpret_cast<uint64_t>(pointer); }

absl::Status RegistrationFailed(int error, uint64_t length) {
  if (error != ENOMEM && error != EAGAIN) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      std::string("the device does not register this memory: ") + strerror(error));
  }
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string now = limit.rlim_cur == RLIM_INFINITY
                              ? std::string("unlimited")
                              : std::to_string(limit.rlim_cur) + " bytes";
  return MakeStatus(absl::StatusCode::kResourceExhausted,
                    "registering " + std::to_string(length) +
                        " bytes needs as much locked memory; the limit (RLIMIT_MEMLOCK) is " + now +
                        ": raise it with ulimit -l, limits.conf or LimitMEMLOCK of the service");
}

unsigned RemoteRights(Access access) {
  unsigned flags = 0;
  if (access.remote_read) flags |= IBV_ACCESS_REMOTE_READ;
  if (access.remote_write) flags |= IBV_ACCESS_REMOTE_WRITE;
  return flags;
}

int RegionRights(Access access, bool windows) {
  unsigned flags = RemoteRights(access);
  if (windows) flags |= IBV_ACCESS_MW_BIND;
  if (access.local_write || access.remote_write) flags |= IBV_ACCESS_LOCAL_WRITE;
  return static_cast<int>(flags);
}

}  // namespace

RegionTable::~RegionTable() {
  const Calls& calls = device_.calls();
  for (const auto& [key, window] : live_) calls.dealloc_mw(window.window);
  for (ibv_mw* window : resting_) calls.dealloc_mw(window);
  regions_.ForEach([&](uint64_t, Region& region) { calls.dereg_mr(region.memory); });
}

absl::StatusOr<RegionId> RegionTable::Register(std::byte* base, uint64_t length, Access access) {
  ESDP_RETURN_IF_ERROR(CheckRange(base, length, device_.limits().region_bytes_max));
  ibv_mr* const memory = device_.calls().reg_mr(device_.domain(), base, length,
                                                RegionRights(access, device_.limits().windows));
  if (memory == nullptr) return RegistrationFailed(errno, length);
  return Keep({{base, length, access}, memory});
}

absl::StatusOr<RegionId> RegionTable::RegisterDmaBuf(const DmaBuf& buffer, std::byte* base,
                                                     uint64_t length, Access access) {
  ESDP_RETURN_IF_ERROR(CheckRange(base, length, device_.limits().region_bytes_max));
  ibv_mr* const memory =
      device_.calls().reg_dmabuf_mr(device_.domain(), buffer.offset, length, AddressOf(base),
                                    buffer.fd, RegionRights(access, device_.limits().windows));
  if (memory != nullptr) {
    return Keep({{base, length, access}, memory, false});
  }
  const int error = errno;
  if (error != EOPNOTSUPP && error != ENOSYS && error != EPROTONOSUPPORT) {
    return RegistrationFailed(error, length);
  }
  return MakeStatus(absl::StatusCode::kUnimplemented,
                    std::string("the device ") + device_.name() +
                        " or its driver takes no dma-buf: " + strerror(error));
}

absl::StatusOr<RegionId> RegionTable::Keep(Region region) {
  const RegionId id{regions_.Insert(region)};
  if (id == RegionId::kNone) {
    device_.calls().dereg_mr(region.memory);
    return absl::ResourceExhaustedError("no more regions");
  }
  if (!region.reachable) ++unreachable_;
  return id;
}

bool RegionTable::AreReachable(const ScatterEntry* entries, uint32_t count) const {
  if (unreachable_ == 0) return true;
  return std::all_of(entries, entries + count, [this](const ScatterEntry& entry) {
    const Region* region = Find(entry.region);
    return region == nullptr || region->reachable;
  });
}

absl::Status RegionTable::Deregister(RegionId id) {
  const Region* region = Find(id);
  ESDP_RETURN_IF_ERROR(CheckUnused(region));
  if (device_.calls().dereg_mr(region->memory) != 0) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      std::string("the device keeps the region: ") + strerror(errno));
  }
  if (!region->reachable) --unreachable_;
  regions_.Erase(static_cast<uint64_t>(id));
  return absl::OkStatus();
}

absl::StatusOr<RemoteRange> RegionTable::RegionKey(RegionId id) const {
  const Region* region = Find(id);
  ESDP_RETURN_IF_ERROR(CheckRegionKey(region));
  return RemoteRange{.key = region->memory->rkey, .address = AddressOf(region->base)};
}

absl::Status RegionTable::CheckLocal(const ScatterEntry& entry, bool writes) const {
  return CheckEntry(Find(entry.region), entry, writes);
}

uint32_t RegionTable::Hold(RegionId id) {
  Region* const region = Find(id);
  ++region->work;
  return region->memory->lkey;
}

void RegionTable::Release(RegionId id) {
  if (Region* region = Find(id); region != nullptr) --region->work;
}

// --- windows ---

ibv_mw* RegionTable::TakeWindow() {
  if (resting_.size() < kRestingMin) {
    ibv_mw* const window = device_.calls().alloc_mw(device_.domain(), IBV_MW_TYPE_2);
    if (window != nullptr || resting_.empty()) return window;
  }
  return resting_.TakeFront();
}

absl::StatusOr<RegionTable::Binding> RegionTable::PrepareBind(RegionId id, std::byte* address,
                                                              uint64_t length, Access access) {
  if (!device_.limits().windows) return absl::UnimplementedError("the device has no windows");
  const Region* region = Find(id);
  ESDP_RETURN_IF_ERROR(CheckWindow(region, address, length, access));
  Binding binding;
  binding.window = TakeWindow();
  if (binding.window == nullptr) return absl::ResourceExhaustedError("no more memory windows");
  binding.key = ibv_inc_rkey(binding.window->rkey);
  binding.info.mr = region->memory;
  binding.info.addr = AddressOf(address);
  binding.info.length = length;
  binding.info.mw_access_flags = RemoteRights(access);
  return binding;
}

void RegionTable::Bound(QueuePairId queue_pair, const Binding& binding, RegionId id) {
  binding.window->rkey = binding.key;
  live_[binding.key] = Window{binding.window, queue_pair, id};
  ++Find(id)->windows;
}

void RegionTable::NotBound(const Binding& binding) { resting_.PushBack(binding.window); }

bool RegionTable::IsWindow(QueuePairId queue_pair, uint32_t key) const {
  const auto found = live_.find(key);
  return found != live_.end() && found->second.queue_pair == queue_pair;
}

bool RegionTable::Invalidated(QueuePairId queue_pair, uint32_t key) {
  if (!IsWindow(queue_pair, key)) return false;
  const auto found = live_.find(key);
  if (Region* region = Find(found->second.region); region != nullptr) --region->windows;
  resting_.PushBack(found->second.window);
  live_.erase(found);
  return true;
}

// A window that may still be valid on the device is given up, for good.
bool RegionTable::Drop(QueuePairId queue_pair, uint32_t key) {
  if (!IsWindow(queue_pair, key)) return false;
  const auto found = live_.find(key);
  if (Region* region = Find(found->second.region); region != nullptr) --region->windows;
  device_.calls().dealloc_mw(found->second.window);
  live_.erase(found);
  return true;
}

void RegionTable::DropAll(QueuePairId queue_pair) {
  std::vector<uint32_t> keys;
  for (const auto& [key, window] : live_) {
    if (window.queue_pair == queue_pair) keys.push_back(key);
  }
  for (const uint32_t key : keys) Drop(queue_pair, key);
}

}  // namespace esdp::fabric::verbs
