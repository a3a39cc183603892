#include "impl/fabric/half_open.h"

namespace esdp::fabric {

uint64_t HalfOpen::Add(uint64_t owner, const Address& peer, Time now) {
  entries_.ReserveOne();
  const AddressKey address = KeyOf(peer);
  ++of_address_[address];
  const uint64_t name = entries_.Insert({owner, address, now, youngest_});
  if (Entry* before = entries_.Find(youngest_)) before->after = name;
  if (oldest_ == kNoHandle) oldest_ = name;
  youngest_ = name;
  return name;
}

void HalfOpen::Remove(uint64_t name) {
  const Entry* entry = entries_.Find(name);
  if (entry == nullptr) return;
  Entry* const before = entries_.Find(entry->before);
  Entry* const after = entries_.Find(entry->after);
  (before == nullptr ? oldest_ : before->after) = entry->after;
  (after == nullptr ? youngest_ : after->before) = entry->before;
  const auto count = of_address_.find(entry->address);
  if (--count->second == 0) of_address_.erase(count);
  entries_.Erase(name);
}

std::optional<uint64_t> HalfOpen::Choose(Time now) const {
  const Entry* chosen = nullptr;
  size_t most = 0;
  for (const Entry* entry = entries_.Find(oldest_); entry != nullptr;
       entry = entries_.Find(entry->after)) {
    const size_t of_address = of_address_.find(entry->address)->second;
    const bool may_go =
        AddSaturating(entry->since, kTimeToSpeak) <= now || IsBeyondShare(of_address);
    if (!may_go || of_address <= most) continue;
    chosen = entry;
    most = of_address;
  }
  return chosen == nullptr ? std::nullopt : std::optional(chosen->owner);
}

}  // namespace esdp::fabric
