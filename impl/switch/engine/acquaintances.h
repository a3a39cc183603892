#ifndef ESDP_IMPL_SWITCH_ENGINE_ACQUAINTANCES_H_
#define ESDP_IMPL_SWITCH_ENGINE_ACQUAINTANCES_H_

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "impl/switch/engine_interface.h"

namespace esdp::switching {

// What this process has learned of peers: whether they speak SDP, and of their hosts whether
// anything better than TCP leads there.
//
//   Owns:     what it has learned.
//   Threads:  any.
//   Blocks:   never.
//   Units:    –
//   Errors:   none; with too many peers it forgets all.
class Acquaintances {
 public:
  Learned Of(const Name& peer);
  // kSilent: for a minute.
  void Learn(const Name& peer, Learned learned);
  // Nothing better than TCP leads to its host; for ten minutes.
  bool Stays(const Name& peer);
  void LearnThatStays(const Name& peer);

 private:
  using Key = std::pair<std::array<uint8_t, 16>, uint16_t>;
  struct Known {
    Learned learned;
    int64_t until;
  };
  static Key KeyOf(const Name& peer);
  static Key KeyOfHost(const Name& peer);

  std::mutex mutex_;
  std::map<Key, Known> known_;
  std::map<Key, int64_t> stays_until_;  // by host
};

Acquaintances& Peers();
// In a child of fork: a thread of the parent may have held the lock.
void ForgetPeers();

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_ACQUAINTANCES_H_
