#include "impl/provider/setup/admission.h"

#include <algorithm>

namespace esdp::provider {

Rejection Admission::Enter(const fabric::AddressKey& address, uint32_t backlog, Time now) {
  if (sources_.size() >= forget_at_) ForgetIdle(now);
  Source& source = sources_[address];
  if (source.open >= of_address_max_) return Rejection::kAddress;
  // Each one takes a part of the burst, which comes back after `between_`.
  const Time begin = std::max(source.whole_at, now);
  if (begin - now > between_ * (int64_t{std::max(burst_, backlog)} - 1)) return Rejection::kRate;
  source.whole_at = AddSaturating(begin, between_);
  ++source.open;
  return Rejection::kNone;
}

void Admission::Leave(const fabric::AddressKey& address) {
  const auto found = sources_.find(address);
  if (found != sources_.end() && found->second.open > 0) --found->second.open;
}

// As often as their number has doubled, so that it costs each of them little.
void Admission::ForgetIdle(Time now) {
  std::erase_if(sources_, [now](const auto& entry) {
    return entry.second.open == 0 && entry.second.whole_at <= now;
  });
  forget_at_ = std::max(kFew, 2 * sources_.size());
}

}  // namespace esdp::provider
