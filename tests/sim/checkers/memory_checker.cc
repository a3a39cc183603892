#include "tests/sim/checkers/memory_checker.h"

#include <iterator>
#include <string>

namespace esdp::simulation {
namespace {

// The entry that begins at or before the address; end() when there is none.
template <typename Map>
auto Below(const Map& map, const std::byte* address) {
  const auto above = map.upper_bound(address);
  return above == map.begin() ? map.end() : std::prev(above);
}

const char* NameOf(fabric::sim::Touch touch) {
  switch (touch) {
    case fabric::sim::Touch::kRemoteRead:
      return "a read of the peer";
    case fabric::sim::Touch::kRemoteWrite:
      return "a write of the peer";
    case fabric::sim::Touch::kReadTarget:
      return "the answer to a read";
  }
  return "";
}

}  // namespace

void MemoryChecker::Lend(std::span<const std::byte> range, bool is_send) {
  if (!range.empty()) lent_[range.data()] = {range.size(), is_send};
}

void MemoryChecker::TakeBack(std::span<const std::byte> range) {
  if (!range.empty()) lent_.erase(range.data());
}

bool MemoryChecker::IsApplicationMemory(const std::byte* address) const {
  const auto arena = Below(arenas_, address);
  return arena != arenas_.end() && address < arena->first + arena->second;
}

void MemoryChecker::OnTouch(const std::byte* address, uint64_t length, fabric::sim::Touch touch) {
  if (length == 0 || !IsApplicationMemory(address)) return;
  ++touches_;
  const auto lent = Below(lent_, address);
  if (lent == lent_.end() || address + length > lent->first + lent->second.length) {
    findings_->Add(std::string(NameOf(touch)) + " of " + std::to_string(length) +
                   " bytes touches memory that is not lent");
    return;
  }
  if (lent->second.is_send != (touch == fabric::sim::Touch::kRemoteRead)) {
    findings_->Add(std::string(NameOf(touch)) +
                   " touches memory that was lent for the other "
                   "direction");
  }
}

}  // namespace esdp::simulation
