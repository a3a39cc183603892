#include "impl/fabric/verbs/link_watch.h"

#include <algorithm>

namespace esdp::fabric::verbs {

void LinkWatch::OnDown(uint8_t port, Time now) {
  const bool known =
      std::any_of(downs_.begin(), downs_.end(), [port](Down each) { return each.port == port; });
  if (!known) downs_.push_back({port, now + kPatience});
}

void LinkWatch::OnUp(uint8_t port) {
  std::erase_if(downs_, [port](Down each) { return each.port == port; });
}

uint8_t LinkWatch::TakeLost(Time now) {
  if (next_deadline() > now) return 0;
  const uint8_t port = downs_.front().port;
  downs_.erase(downs_.begin());
  return port;
}

}  // namespace esdp::fabric::verbs
