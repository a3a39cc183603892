#ifndef ESDP_IMPL_FABRIC_VERBS_LINK_WATCH_H_
#define ESDP_IMPL_FABRIC_VERBS_LINK_WATCH_H_

#include <cstdint>
#include <vector>

#include "impl/base/time.h"

namespace esdp::fabric::verbs {

// The ports of a device whose link is down. A queue pair whose sends are all acknowledged hears
// nothing of that by itself, however long it waits for its peer.
//
//   Owns:     nothing.
//   Threads:  not thread-safe.
//   Blocks:   never.
//   Units:    ports count from 1.
//   Errors:   –
class LinkWatch {
 public:
  // Who pulls a cable and puts it back loses no connection.
  static constexpr Duration kPatience = std::chrono::seconds(10);

  void OnDown(uint8_t port, Time now);
  void OnUp(uint8_t port);

  Time next_deadline() const { return downs_.empty() ? kTimeInfinite : downs_.front().deadline; }
  // A port whose link has been down for too long by `now`, once; 0 when there is none.
  uint8_t TakeLost(Time now);

 private:
  struct Down {
    uint8_t port = 0;
    Time deadline = kTimeInfinite;
  };
  std::vector<Down> downs_;  // in the order of their deadlines
};

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_LINK_WATCH_H_
